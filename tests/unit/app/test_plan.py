"""What a search is expected to take; the command `plan` itself: tests/integration/test_cli_on_fakes.py."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.app import plan
from bisector.app.time_left import WorkCounts
from bisector.simulation.summary import PurposeUse


def keep_kernel(cache: Path, number: int, sha: str, recipe: str = "x86_64-small") -> None:
    folder = cache / "kernels" / f"{number:064x}"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps({"sha": sha, "recipe": recipe}))


def test_builds_take_no_time_where_the_kernels_of_both_ends_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = PurposeUse(runs=4, boots=2, builds=2, cost=1)
    found: Any = SimpleNamespace(by_purpose={"verify": verify})
    monkeypatch.setattr(plan, "_estimate", lambda *_: (found, plan.GUESSED))
    wiring: Any = SimpleNamespace(settings=SimpleNamespace(cache_dir=tmp_path))
    accepted: Any = SimpleNamespace(
        good="aa", bad="bb", request=SimpleNamespace(recipe="x86_64-small", find="regression")
    )
    graph: Any = None

    def build_seconds() -> float:
        expected = plan.expected_work(wiring, accepted, graph)
        assert expected.work == {"verify": WorkCounts(2, 2, 4)}
        return expected.build_seconds

    assert build_seconds() == plan.GUESSED.build
    keep_kernel(tmp_path, 1, "aa")
    keep_kernel(tmp_path, 2, "bb", "x86_64-guest")  # another recipe's
    assert build_seconds() == plan.GUESSED.build
    keep_kernel(tmp_path, 3, "bb")
    assert build_seconds() == plan.CACHED_SECONDS

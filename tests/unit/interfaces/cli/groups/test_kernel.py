"""`perfbisect kernel`: what is asked of the use cases, what is printed, and when its exit code is not 0."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisector.app import kernels
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.ports import BuildOrder, Kernel
from bisector.testing.fakes import FakeBuilder, FakeSource
from tests.support import fake_bisection

SHOWN = {
    "good": "v6.1",
    "bad": "v6.2",
    "recipe": "toy",
    "covers": "from v5.4 on",
    "toolchains": ["gcc"],
    "fixups": [],
    "options": [],
    "builders": ["here: ready"],
    "warnings": ["a is new"],
    "broken": False,
}


@pytest.fixture
def orders(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> list[BuildOrder]:
    """The orders that were built, by a fake builder, in a fake history."""
    lab, found = fake_bisection.a_lab(), []
    builder = FakeBuilder(lab, own_folders / "kernels")

    def build(wiring: Wiring, order: BuildOrder, progress: Callable[[str], None], on_fix: object) -> Kernel:
        found.append(order)
        return builder.build(order, progress)

    monkeypatch.setattr(Wiring, "source", lambda wiring, repo=None: FakeSource(lab.graph))
    monkeypatch.setattr(kernels, "build", build)
    return found


def test_build_says_what_was_built_and_what_was_in_the_cache(
    orders: list[BuildOrder], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["kernel", "build", "good", "--recipe", "toy", "--layout", "2"]
    assert run(command) == 0
    assert "in the cache" not in capsys.readouterr().out
    assert run(command) == 0
    assert "nothing, it was in the cache" in capsys.readouterr().out
    assert [(order.recipe, order.layout) for order in orders] == [("toy", 2), ("toy", 2)]


def test_build_as_json_has_every_fact_of_the_kernel(
    orders: list[BuildOrder], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", "build", "bad", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sha"] == orders[0].sha
    assert found["options"] == {"FAKE": "y"}
    assert Path(found["image"]).exists()


@pytest.mark.parametrize("between", ["v6.1", "..v6.2", "v6.1..", "v6.1...v6.2"])
def test_check_refuses_what_is_no_range(
    between: str, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kernel", "check", between]) == 1
    assert f"'{between}' is not a range" in capsys.readouterr().err


@pytest.mark.parametrize(("broken", "code"), [(False, 0), (True, 3)])
@pytest.mark.parametrize("json_wanted", [False, True])
def test_check_ends_with_3_where_something_cannot_be_built(
    broken: bool,
    code: int,
    json_wanted: bool,
    own_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[Any] = []

    def check_range(wiring: Wiring, *arguments: object, install: bool) -> dict[str, object]:
        asked.append((*arguments, install))
        return {**SHOWN, "broken": broken}

    monkeypatch.setattr(kernels, "check_range", check_range)
    assert run(["kernel", "check", "a..b", "--install", *(["--json"] if json_wanted else [])]) == code
    assert asked == [("a", "b", None, True)]
    out = capsys.readouterr().out
    if json_wanted:
        assert json.loads(out)["broken"] is broken
    else:
        assert "v6.1 .. v6.2" in out and "warning: a is new" in out and "the same names all over" in out


@pytest.mark.parametrize(
    ("options", "keep"), [(["--keep", "2.5"], 2_500_000_000), ([], 10_000_000_000), (["--all"], 0)]
)
def test_gc_keeps_as_many_bytes_as_said(
    options: list[str],
    keep: int,
    own_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[int] = []

    def collect(wiring: Wiring, limit: int) -> tuple[int, int]:
        asked.append(limit)
        return 3_000_000, 2

    monkeypatch.setattr(kernels, "collect_kernels", collect)
    assert run(["kernel", "gc", *options]) == 0
    assert asked == [keep]
    assert capsys.readouterr().out == "freed 3 MB; 2 belong to unfinished bisections and stay\n"


def test_gc_refuses_a_negative_limit(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "gc", "--keep", "-1"]) == 1
    assert "--keep: '-1' is not a number from 0 to 1,000,000" in capsys.readouterr().err


def test_list_of_an_empty_cache_is_empty(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kernel", "list"]) == 0
    assert capsys.readouterr().out.endswith("0 kernels, 0 MB\n")

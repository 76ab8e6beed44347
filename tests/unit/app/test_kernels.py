"""Kernels by hand: how a commit is built, whether a range can be; from a repository and shipped tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app import kernels
from bisector.errors import RequestError
from bisector.ports import BuildOrder
from bisector.schemas.kernel.release import Release
from bisector.schemas.settings import Settings
from tests.support.toy_kernel import ToyHistory

OLD_MAKEFILE = "VERSION = 2\nPATCHLEVEL = 6\nSUBLEVEL = 24\n\nconfig %config: scripts_basic\n\t@true\n"
"""With the line that the fixup 'make-mixed-rules' edits."""


@pytest.fixture
def history(tmp_path: Path) -> ToyHistory:
    """The toy kernel under the numbers of v2.6.24, then of v6.1, then no kernel at all."""
    history = ToyHistory.create(tmp_path / "linux")
    for tag, files in (
        ("old", {"Makefile": OLD_MAKEFILE}),
        ("young", {"Makefile": "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n"}),
        ("none", {"Makefile": None}),
    ):
        history.commit(files, tag)
        history.git("tag", tag)
    return history


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    inventory = tmp_path / "lab.yml"
    inventory.write_text(
        "all:\n  children:\n    builders: {hosts: {here: {ansible_connection: local}}}\n"
        "    testbeds: {hosts: {bed: {perfbisect_kind: local}}}\n"
    )
    return Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state", lab=inventory)


def test_a_commit_is_built_as_its_age_needs(settings: Settings, history: ToyHistory) -> None:
    sha = history.git("rev-parse", "old").strip()
    plan, edited = kernels.kernel_plan(settings, history.path, BuildOrder(sha, "x86_64-old"))
    assert plan.release == Release(2, 6, 24)
    assert plan.recipe.name == "x86_64-old"
    assert edited["make-mixed-rules"]
    assert not edited["timeconst-defined-array"], "its file is not in this tree"
    assert set(edited) == {row.name for row in plan.fixups}


def test_a_range_is_checked_between_the_ages_of_its_ends(settings: Settings, history: ToyHistory) -> None:
    found = kernels.check_range(settings, history.path, "old", "young", "x86_64-old")
    assert (found["good"], found["bad"], found["recipe"]) == ("v2.6.24", "v6.1", "x86_64-old")
    assert any("not for v6.1" in warning for warning in found["warnings"])
    assert found["broken"]


def test_an_end_that_is_no_linux_is_a_wrong_request(settings: Settings, history: ToyHistory) -> None:
    with pytest.raises(RequestError):
        kernels.check_range(settings, history.path, "none", "young", "x86_64-guest")

"""Kernels by hand: how a commit is built, whether a range can be; from a repository and shipped tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app import kernels
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.model.facts import KernelFacts
from bisector.model.records import Built
from bisector.ports import BuildOrder, Progress
from bisector.schemas.kernel.release import Release
from bisector.schemas.settings import Settings
from tests.support import fake_bisection
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
def wiring(tmp_path: Path, history: ToyHistory) -> Wiring:
    inventory = tmp_path / "lab.yml"
    inventory.write_text(
        "all:\n  children:\n    builders: {hosts: {here: {ansible_connection: local}}}\n"
        "    testbeds: {hosts: {bed: {perfbisect_kind: local}}}\n"
    )
    return Wiring(
        Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state", lab=inventory, repo=history.path)
    )


def test_a_commit_is_built_as_its_age_needs(wiring: Wiring) -> None:
    plan, edited = kernels.kernel_plan(wiring, kernels.order(wiring, "old", "x86_64-old"))
    assert plan.release == Release(2, 6, 24)
    assert plan.recipe.name == "x86_64-old"
    assert edited["make-mixed-rules"]
    assert not edited["timeconst-defined-array"], "its file is not in this tree"
    assert set(edited) == {row.name for row in plan.fixups}


def test_a_range_is_checked_between_the_ages_of_its_ends(wiring: Wiring) -> None:
    found = kernels.check_range(wiring, "old", "young", "x86_64-old")
    assert (found["good"], found["bad"], found["recipe"]) == ("v2.6.24", "v6.1", "x86_64-old")
    assert any("not for v6.1" in warning for warning in found["warnings"])
    assert found["broken"]


def test_a_range_that_is_backwards_is_a_wrong_request(wiring: Wiring) -> None:
    with pytest.raises(RequestError, match=r"young\.\.old is backwards: v6\.1 is younger") as caught:
        kernels.check_range(wiring, "young", "old", "x86_64-old")
    assert caught.value.cure == "write old..young"
    assert kernels.check_range(wiring, "old", "old", "x86_64-old")["good"] == "v2.6.24", (
        "the same age is fine"
    )


def test_an_end_that_is_no_linux_is_a_wrong_request(wiring: Wiring) -> None:
    with pytest.raises(RequestError):
        kernels.check_range(wiring, "none", "young", "x86_64-guest")


# --- the cache: what an unfinished bisection has built stays ------------------------------------------------

OLD, NEEDED, NEW = (f"{number:064x}" for number in (1, 2, 3))


@pytest.fixture
def full_cache(tmp_path: Path) -> Wiring:
    """Three kernels of 1 MB each in the cache; the records of a bisection name the second."""
    found = Wiring(Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state"))
    for key in (OLD, NEEDED, NEW):
        folder = found.settings.cache_dir / "kernels" / "building"
        folder.mkdir(parents=True)
        (folder / "image").write_bytes(bytes(1_000_000))
        (folder / "config").write_text("CONFIG_A=y\n")
        found.kernel_cache.put(key, folder, {"sha": key[-1] * 40, "release": "6.1", "recipe": "toy"})
    return found


def bisection(full_cache: Wiring, status: str) -> None:
    """Keep a bisection of this status that has built the kernel NEEDED."""
    full_cache.settings.state_dir.mkdir()
    store = full_cache.store
    stored = fake_bisection.begin(store, fake_bisection.a_lab())
    store.append(stored.id, Built(0, True, 9.0, "b", kernel=KernelFacts(key=NEEDED)))
    store.append(stored.id, Built(1, False, 9.0, failure="error"))
    store.set_status(stored.id, status)


def left(full_cache: Wiring) -> set[str]:
    return {entry.key for entry in full_cache.kernel_cache.entries()}


@pytest.mark.parametrize("status", ["new", "running", "interrupted", "failed"])
def test_what_can_be_resumed_keeps_its_kernels(full_cache: Wiring, status: str) -> None:
    """A full disk ends a bisection as 'failed': whoever then makes room must not lose its builds."""
    bisection(full_cache, status)
    freed, kept = kernels.collect_kernels(full_cache, 0)
    assert left(full_cache) == {NEEDED}
    assert kept == 1
    assert freed >= 2_000_000


@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_what_has_ended_keeps_none(full_cache: Wiring, status: str) -> None:
    bisection(full_cache, status)
    assert kernels.collect_kernels(full_cache, 0)[1] == 0
    assert left(full_cache) == set()


def test_without_bisections_the_limit_alone_counts(full_cache: Wiring) -> None:
    kernels.collect_kernels(full_cache, 2_500_000)
    assert len(left(full_cache)) == 2
    assert not full_cache.settings.state_dir.exists(), "asking must not make a state folder"


def test_the_list_says_what_is_kept(full_cache: Wiring) -> None:
    found = full_cache.kernel_cache.inventory()
    assert {kernel["key"] for kernel in found["kernels"]} == {OLD, NEEDED, NEW}
    assert found["bytes"] >= 3_000_000


def test_a_build_begins_when_what_a_killed_one_left_is_gone(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compilers of a killed build would work in the same source tree."""
    done: list[str] = []

    class Builder:
        def build(self, order: BuildOrder, progress: Progress) -> None:
            done.append(f"build {order.recipe}")

    monkeypatch.setattr(kernels, "end_killed_work", lambda cache: done.append(cache.name))
    monkeypatch.setattr(Wiring, "builder", lambda self, **options: Builder())
    kernels.build(wiring, kernels.order(wiring, "old", "x86_64-old"), print, lambda fix, needed: None)
    assert done == ["cache", "build x86_64-old"]

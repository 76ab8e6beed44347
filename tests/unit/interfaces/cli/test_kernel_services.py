"""What `perfbisect kernel gc` and `list` do with the cache: what an unfinished bisection has built stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.build.kernel_cache import KernelCache
from bisector.app import wiring
from bisector.interfaces.cli import kernel_services
from bisector.model.facts import KernelFacts
from bisector.model.records import Built
from bisector.schemas.settings import Settings
from tests.support import fake_bisection

OLD, NEEDED, NEW = (f"{number:064x}" for number in (1, 2, 3))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Three kernels of 1 MB each in the cache; the records of a bisection name the second."""
    found = Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state")
    cache = KernelCache(found.cache_dir / "kernels")
    for key in (OLD, NEEDED, NEW):
        folder = found.cache_dir / "kernels" / "building"
        folder.mkdir(parents=True)
        (folder / "image").write_bytes(bytes(1_000_000))
        (folder / "config").write_text("CONFIG_A=y\n")
        cache.put(key, folder, {"sha": key[-1] * 40, "release": "6.1", "recipe": "toy"})
    return found


def bisection(settings: Settings, status: str) -> None:
    """Keep a bisection of this status that has built the kernel NEEDED."""
    settings.state_dir.mkdir()
    store = wiring.store(settings)
    stored = fake_bisection.begin(store, fake_bisection.a_lab())
    store.append(stored.id, Built(0, True, 9.0, "b", kernel=KernelFacts(key=NEEDED)))
    store.append(stored.id, Built(1, False, 9.0, failure="error"))
    store.set_status(stored.id, status)


def left(settings: Settings) -> set[str]:
    return {entry.key for entry in KernelCache(settings.cache_dir / "kernels").entries()}


@pytest.mark.parametrize("status", ["new", "running", "interrupted", "failed"])
def test_what_can_be_resumed_keeps_its_kernels(settings: Settings, status: str) -> None:
    """A full disk ends a bisection as 'failed': whoever then makes room must not lose its builds."""
    bisection(settings, status)
    freed, kept = kernel_services.collect_kernels(settings, 0)
    assert left(settings) == {NEEDED}
    assert kept == 1
    assert freed >= 2_000_000


@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_what_has_ended_keeps_none(settings: Settings, status: str) -> None:
    bisection(settings, status)
    assert kernel_services.collect_kernels(settings, 0)[1] == 0
    assert left(settings) == set()


def test_without_bisections_the_limit_alone_counts(settings: Settings) -> None:
    kernel_services.collect_kernels(settings, 2_500_000)
    assert len(left(settings)) == 2
    assert not settings.state_dir.exists(), "asking must not make a state folder"


def test_the_list_says_what_is_kept(settings: Settings) -> None:
    found = kernel_services.kernels(settings)
    assert {kernel["key"] for kernel in found["kernels"]} == {OLD, NEEDED, NEW}
    assert found["bytes"] >= 3_000_000

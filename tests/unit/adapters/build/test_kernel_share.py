"""Kernels that hosts build for each other: one builds, the others wait for it or fetch it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.artefacts.memory_artefacts import MemoryArtefacts
from bisector.adapters.build import kernel_share
from bisector.adapters.build.kernel_cache import CachedKernel, KernelCache
from bisector.adapters.build.kernel_share import KernelShare
from bisector.adapters.store.memory_coordinator import MemoryCoordinator
from bisector.errors import BuildFailed, InfrastructureError, Interrupted
from bisector.model.artefacts import Artefact
from tests.support.waiting import until

KEY = "0" * 63 + "1"
KERNEL = Artefact("kernel", KEY)
FACTS = {"binary": "b", "build_id": "i", "release": "6.1.0"}


class Host:
    """A worker's cache and what it builds. gate: awaited in each build."""

    def __init__(self, name: str, folder: Path, store: MemoryArtefacts, leases: MemoryCoordinator) -> None:
        self.name, self.folder = name, folder / name
        self.said: list[str] = []
        self.built = 0
        self.gate = threading.Event()
        self.gate.set()
        self.exchange = Exchange(store, self.folder / "work", self.said.append)
        leases.register(f"{name}-1", name)
        self.share = KernelShare(KernelCache(self.folder / "kernels"), self.exchange, leases, f"{name}-1")

    def build(self) -> CachedKernel:
        self.built += 1
        assert self.gate.wait(30)
        made = self.share.cache.make_workspace() / "kernel"
        made.mkdir()
        for name in ("image", "config", "build.log"):
            (made / name).write_text(f"{name} of {self.name}")
        return self.share.cache.put(KEY, made, FACTS)

    def obtain(self, stop: Callable[[], bool] = lambda: False) -> tuple[CachedKernel, float | None]:
        return self.share.obtain(KEY, self.build, stop, self.said.append)


@pytest.fixture
def store() -> MemoryArtefacts:
    return MemoryArtefacts()


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> MemoryCoordinator:
    monkeypatch.setattr(kernel_share, "_POLL_SECONDS", 0.02)
    return MemoryCoordinator(lambda: 0.0)


@pytest.fixture
def hosts(tmp_path: Path, store: MemoryArtefacts, leases: MemoryCoordinator) -> tuple[Host, Host]:
    return Host("a", tmp_path, store, leases), Host("b", tmp_path, store, leases)


def test_the_second_host_fetches_what_the_first_has_built(
    hosts: tuple[Host, Host], store: MemoryArtefacts
) -> None:
    first, second = hosts
    entry, seconds = first.obtain()
    assert seconds is None and entry.image.read_text() == "image of a"
    first.exchange.close(30)
    entry, seconds = second.obtain()
    assert seconds is not None and seconds > 0 and second.built == 0
    assert entry.folder == second.folder / "kernels" / KEY
    assert entry.image.read_text() == "image of a"
    assert second.share.cache.get(KEY) is not None, "it is whole"
    assert first.said == [] and second.said == ["taking the kernel from the artefact store"]
    store.contents.clear()
    second.share.offer(entry)
    second.exchange.close(30)
    assert not store.has(KERNEL), "what was fetched is not sent back"


def test_of_two_that_want_a_kernel_at_once_one_builds(hosts: tuple[Host, Host]) -> None:
    first, second = hosts
    first.gate.clear()
    answers: list[tuple[CachedKernel, float | None]] = []
    threads = [threading.Thread(target=lambda: answers.append(first.obtain()))]
    threads[0].start()
    until(lambda: first.built == 1, 30)
    threads.append(threading.Thread(target=lambda: answers.append(second.obtain())))
    threads[1].start()
    until(lambda: "another host builds this kernel" in second.said, 30)
    first.gate.set()
    for thread in threads:
        thread.join(30)
    assert (first.built, second.built, len(answers)) == (1, 0, 2)


def test_who_waits_for_a_host_that_fails_or_dies_builds_it_itself(
    hosts: tuple[Host, Host], leases: MemoryCoordinator
) -> None:
    first, second = hosts

    def fail() -> CachedKernel:
        raise BuildFailed("no such compiler flag")

    with pytest.raises(BuildFailed):
        first.share.obtain(KEY, fail, lambda: False, first.said.append)
    assert leases.leases() == []
    assert leases.acquire(f"kernel {KEY}", "a-1") is not None
    waiting = threading.Thread(target=second.obtain)
    waiting.start()
    until(lambda: "another host builds this kernel" in second.said, 30)
    leases.unregister("a-1")
    waiting.join(30)
    assert second.built == 1


def test_a_commit_that_does_not_build_is_told_though_its_lease_cannot_be_given_back(
    hosts: tuple[Host, Host], leases: MemoryCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the builder would seem to fail, and the commit would be built again and again."""

    def fail() -> CachedKernel:
        raise BuildFailed("it does not compile")

    def away(lease: object) -> None:
        raise InfrastructureError("the database does not answer")

    monkeypatch.setattr(leases, "release", away)
    with pytest.raises(BuildFailed):
        hosts[0].share.obtain(KEY, fail, lambda: False, print)


def test_waiting_for_another_host_ends_when_told_to(
    hosts: tuple[Host, Host], leases: MemoryCoordinator
) -> None:
    assert leases.acquire(f"kernel {KEY}", "a-1") is not None
    asked = iter([False, False, False, True])
    with pytest.raises(Interrupted):
        hosts[1].obtain(stop=lambda: next(asked))
    assert hosts[1].built == 0
    assert hosts[1].said == ["another host builds this kernel"], "once, however long it waits"


def test_a_kernel_is_leased_until_it_can_be_fetched(
    hosts: tuple[Host, Host],
    store: MemoryArtefacts,
    leases: MemoryCoordinator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, real = threading.Event(), store.put
    monkeypatch.setattr(store, "put", lambda *args: gate.wait(30) and real(*args))
    hosts[0].obtain()
    assert [lease.resource for lease in leases.leases()] == [f"kernel {KEY}"]
    gate.set()
    until(lambda: leases.leases() == [], 30)
    assert store.has(KERNEL)


def test_where_the_store_is_away_each_host_builds_and_nobody_waits(
    hosts: tuple[Host, Host], store: MemoryArtefacts, leases: MemoryCoordinator
) -> None:
    store.away = InfrastructureError("No space left on device")
    for host in hosts:
        assert host.obtain()[1] is None
        until(lambda: leases.leases() == [], 30)
    assert [host.built for host in hosts] == [1, 1]
    assert [len(host.said) for host in hosts] == [1, 1]


@pytest.mark.parametrize("damage", ["image", "config", "kernel.json", "not whole"])
def test_a_kernel_that_is_not_what_was_built_is_built_again_and_blames_nobody(
    hosts: tuple[Host, Host], store: MemoryArtefacts, damage: str, tmp_path: Path
) -> None:
    first, second = hosts
    folder = first.obtain()[0].folder
    first.exchange.close(30)
    store.contents.clear()
    if damage == "not whole":
        (folder / "image").unlink()
    else:
        (folder / damage).write_text("{}")
    other = Exchange(store, tmp_path / "work", print)  # a host that does not verify what it puts
    other.offer(KERNEL, folder)
    other.close(30)
    entry, seconds = second.obtain()
    assert seconds is None and entry.image.read_text() == "image of b"
    second.exchange.close(30)
    assert "set aside" in second.said[0 if "taking" not in second.said[0] else 1]
    (tmp_path / "c").mkdir()
    third = Host("c", tmp_path / "c", store, MemoryCoordinator(lambda: 0.0))
    assert third.obtain()[1] is not None, "what was made again is in the store"


@pytest.mark.parametrize("database", [False, True])
def test_who_has_no_leases_waits_for_nobody(tmp_path: Path, store: MemoryArtefacts, database: bool) -> None:
    """Without a database there are none; with one they are the executor's, and a process may have none."""
    host = Host("a", tmp_path, store, MemoryCoordinator(lambda: 0.0))
    host.share.executor = ""
    if not database:
        host.share.coordinator = None
    host.obtain()
    host.exchange.close(30)
    assert store.has(KERNEL)


def test_a_kernel_that_is_built_again_is_leased_until_it_can_be_fetched_again(
    hosts: tuple[Host, Host], store: MemoryArtefacts, leases: MemoryCoordinator
) -> None:
    """Else the lease stays for as long as its host runs, and each other host waits for what is not built."""
    host = hosts[0]
    folder = host.obtain()[0].folder
    until(lambda: leases.leases() == [], 30)
    store.contents.clear()
    folder.rename(folder.with_name("removed"))
    assert host.obtain()[1] is None
    until(lambda: leases.leases() == [], 30)
    assert (host.built, store.has(KERNEL)) == (2, True)


def test_a_kernel_from_before_is_offered_once(hosts: tuple[Host, Host], store: MemoryArtefacts) -> None:
    entry = hosts[0].build()
    for _ in range(3):
        hosts[0].share.offer(entry)
    hosts[0].exchange.close(30)
    assert store.has(KERNEL)
    assert len(hosts[0].share._offered) == 1

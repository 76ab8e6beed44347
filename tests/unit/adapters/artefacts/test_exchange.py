"""What a process gives to other hosts and takes from them: nothing that goes wrong there ends its work."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bisector.adapters.artefacts import exchange
from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.artefacts.memory_artefacts import MemoryArtefacts
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.model.artefacts import Artefact, boot_artefact

BOOT = boot_artefact("x", "boot-001")


class World:
    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, MemoryArtefacts()
        self.said: list[str] = []
        self.exchange = Exchange(self.store, folder / "work", self.said.append)

    def a_boot(self) -> Path:
        boot = self.folder / "a" / "boots" / "boot-001"
        (boot / "monitors").mkdir(parents=True)
        (boot / "console.log").write_text("Linux version\n" * 1000)
        (boot / "monitors" / "data").write_bytes(b"\0\1")
        (boot / "scratch.raw").write_bytes(bytes(100_000))
        (boot / "link").symlink_to("/etc/passwd")
        return boot

    def put(self, artefact: Artefact, *members: tuple[tarfile.TarInfo, bytes]) -> None:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            for member, content in members:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        self.store.contents[artefact] = data.getvalue()

    def fetch(self, artefact: Artefact = BOOT) -> Path | None:
        target = self.folder / "b" / "boots" / "boot-001"
        return target if self.exchange.fetch_folder(artefact, target) else None


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_what_one_host_offers_another_one_gets(world: World) -> None:
    called = threading.Event()
    world.exchange.offer(BOOT, world.a_boot(), called.set)
    assert called.wait(30)
    world.exchange.close(30)
    found = world.fetch()
    assert found is not None
    assert (found / "console.log").read_text() == "Linux version\n" * 1000
    names = sorted(str(path.relative_to(found)) for path in found.rglob("*") if path.is_file())
    assert names == ["console.log", "monitors/data", "owner"][:2], "no links, no disks of the boot"
    assert len(world.store.contents[BOOT]) < 2000, "consoles are compressed"
    assert world.said == []
    assert list((world.folder / "work").iterdir()) == []


def test_a_store_that_is_away_is_told_once_and_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(BOOT, (member("console.log"), b"x"))
    world.store.away = InfrastructureError("the store is away", cure="mount it")
    assert world.fetch() is None
    assert world.said == ["warning: the store is away\n  mount it"]
    monkeypatch.setattr(world.store, "has", lambda artefact: pytest.fail("it was asked again"))
    assert world.fetch() is None
    assert len(world.said) == 1


def test_what_cannot_be_put_is_told_and_tried_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "AWAY_SECONDS", 0.05)
    world.store.away = InfrastructureError("No space left on device")
    called = threading.Event()
    put = threading.Event()
    real = world.store.put

    def put_and_tell(artefact: Artefact, file: Path) -> str:
        checksum = real(artefact, file)
        put.set()
        return checksum

    monkeypatch.setattr(world.store, "put", put_and_tell)
    world.exchange.offer(BOOT, world.a_boot(), called.set)
    assert called.wait(30), "whoever waits for it must not wait for the disk"
    assert not world.store.contents
    world.store.away = None
    assert put.wait(30)
    world.exchange.close(30)
    assert BOOT in world.store.contents
    assert world.said == ["warning: No space left on device\n  " + InfrastructureError.usual_cure]


def test_who_offers_is_called_once_and_who_is_told_cannot_end_the_thread(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "AWAY_SECONDS", 0.05)

    def away(text: str) -> None:
        world.said.append(text)
        world.store.away = None
        raise ValueError("the terminal is gone")

    called: list[bool] = []
    asked = Exchange(world.store, world.folder / "work", away)
    world.store.away = InfrastructureError("the store is away")
    put, real = threading.Event(), world.store.put

    def put_and_tell(artefact: Artefact, file: Path) -> str:
        checksum = real(artefact, file)
        put.set()
        return checksum

    monkeypatch.setattr(world.store, "put", put_and_tell)
    asked.offer(BOOT, world.a_boot(), lambda: called.append(True))
    assert put.wait(30)
    asked.close(30)
    assert (called, len(world.said)) == ([True], 1)


def test_an_offer_of_what_is_gone_or_there_is_nothing(world: World) -> None:
    world.store.contents[BOOT] = b"as it is"
    for folder in (world.folder / "gone", world.a_boot()):
        world.exchange.offer(BOOT, folder)
    world.exchange.close(30)
    assert world.store.contents == {BOOT: b"as it is"}
    assert world.said == []


@pytest.mark.parametrize(
    "name", ["../../outside", "/tmp/artefacts-outside", "a/../../../outside"]
)  # where the folder would be left
def test_names_that_lead_out_of_the_folder_are_refused(world: World, name: str) -> None:
    world.put(BOOT, (member(name), b"x"))
    assert world.fetch() is None
    assert "lies outside" in world.said[0]
    assert not world.store.has(BOOT), "it was set aside"
    assert list(world.folder.rglob("outside")) == []


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_do_not_arrive(world: World, kind: bytes) -> None:
    world.put(BOOT, (member("console.log", kind, "/etc/passwd"), b""), (member("run.out"), b"1\n"))
    found = world.fetch()
    assert found is not None
    assert [path.name for path in found.iterdir()] == ["run.out"]


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08 cut short"])
def test_what_is_no_archive_is_set_aside_and_the_store_is_still_used(world: World, content: bytes) -> None:
    world.store.contents[BOOT] = content
    found = world.fetch()
    if content:
        assert found is None
        assert not world.store.has(BOOT)
    world.put(BOOT, (member("run.out"), b"1\n"))
    assert world.exchange.fetch_folder(BOOT, world.folder / "b" / "boots" / "boot-002")


def test_what_the_reader_refuses_is_set_aside(world: World) -> None:
    def refuse(folder: Path) -> None:
        raise DamagedArtefact("that is no kernel")

    world.put(BOOT, (member("x"), b"x"))
    assert not world.exchange.fetch(BOOT, world.folder, refuse)
    assert "that is no kernel" in world.said[0]
    assert not world.store.has(BOOT)


def test_what_unpacks_to_too_much_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from bisector.model import artefacts

    world.put(BOOT, (member("x"), bytes(30_000)))
    monkeypatch.setattr(artefacts, "MAX_BYTES", {"boot": 20_000})
    assert world.fetch() is None


def test_a_folder_that_two_fetch_at_once_is_whole(world: World) -> None:
    world.put(BOOT, (member("run.out"), b"1\n"))
    found: list[Path | None] = []
    fetch: Callable[[], None] = lambda: found.append(world.fetch())  # noqa: E731
    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(path is not None and (path / "run.out").read_text() == "1\n" for path in found), world.said


def test_a_kernel_is_put_before_the_output_of_boots_that_was_offered_earlier(world: World) -> None:
    """Another host may wait for it, with a testbed."""
    boot, began, go, order = world.a_boot(), threading.Event(), threading.Event(), list[str]()

    def first() -> None:
        began.set()
        assert go.wait(30)

    world.exchange.offer(BOOT, boot, first)
    assert began.wait(30)
    for number in (2, 3):
        offered = boot_artefact("x", f"boot-{number:03d}")
        world.exchange.offer(offered, boot, partial(order.append, offered.key))
    world.exchange.offer(Artefact("kernel", "k"), boot, lambda: order.append("kernel"))
    go.set()
    world.exchange.close(30)
    assert order == ["kernel", "x@boot-002", "x@boot-003"], "and all before the end"

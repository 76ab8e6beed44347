"""What every ArtefactStore must do."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.adapters.artefacts.http_artefacts import HttpArtefacts
from bisector.adapters.artefacts.memory_artefacts import MemoryArtefacts
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.model import artefacts
from bisector.model.artefacts import Artefact, boot_artefact
from bisector.store_ports import ArtefactStore
from tests.support.servers.web import make_tokens, serving, wiring_in

KERNEL = Artefact("kernel", "0123")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ArtefactStore]]:
    """A folder, and what a client of the server with that folder has."""
    place = tmp_path_factory.mktemp("served")
    (place / "store").mkdir()
    settings = wiring_in(place).settings.model_copy(update={"artefacts": str(place / "store")})
    wiring = Wiring(settings)
    with serving(wiring) as address:
        yield place / "store", HttpArtefacts(address, make_tokens(wiring)["worker"])


@pytest.fixture(params=["memory", "folder", "http"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtefactStore:
    if request.param == "memory":
        return MemoryArtefacts()
    if request.param == "http":
        folder, client = request.getfixturevalue("served")
        for path in folder.iterdir():
            shutil.rmtree(path)
        return cast(ArtefactStore, client)
    (tmp_path / "store").mkdir()
    return FolderArtefacts(tmp_path / "store")


def a_file(folder: Path, content: bytes = b"a kernel") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "file"
    path.write_bytes(content)
    return path


def test_what_was_put_is_given_with_its_checksum_verified(store: ArtefactStore, tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_000  # of several blocks
    store.check()
    assert not store.has(KERNEL)
    assert not store.get(KERNEL, tmp_path / "target")
    assert store.put(KERNEL, a_file(tmp_path, content)) == hashlib.sha256(content).hexdigest()
    assert store.has(KERNEL)
    assert store.get(KERNEL, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == content


def test_kinds_and_keys_are_apart(store: ArtefactStore, tmp_path: Path) -> None:
    for kind in artefacts.KINDS:
        for key in ("a", "b"):
            store.put(Artefact(kind, key), a_file(tmp_path, f"{kind} {key}".encode()))
    for kind in artefacts.KINDS:
        assert store.get(Artefact(kind, "b"), tmp_path / "target")
        assert (tmp_path / "target").read_bytes() == f"{kind} b".encode()
    assert not store.has(boot_artefact("a", "b"))


def test_of_several_writers_of_one_key_one_is_given(store: ArtefactStore, tmp_path: Path) -> None:
    contents = [bytes([number]) * 300_000 for number in range(6)]
    files = [a_file(tmp_path / str(number), content) for number, content in enumerate(contents)]
    threads = [threading.Thread(target=store.put, args=(KERNEL, file)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(KERNEL, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() in contents


def test_what_was_set_aside_is_given_no_more_and_may_be_put_again(
    store: ArtefactStore, tmp_path: Path
) -> None:
    store.put(KERNEL, a_file(tmp_path, b"wrong"))
    store.set_aside(KERNEL)
    store.set_aside(Artefact("kernel", "of-nobody"))
    assert not store.has(KERNEL)
    assert not store.get(KERNEL, tmp_path / "target")
    store.put(KERNEL, a_file(tmp_path, b"right"))
    assert store.get(KERNEL, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"right"


def test_what_is_too_large_is_not_put(
    store: ArtefactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefacts, "MAX_BYTES", {"kernel": 7, "image": 8, "boot": 8})
    with pytest.raises(InfrastructureError):
        store.put(KERNEL, a_file(tmp_path, b"8 bytes."))
    assert not store.has(KERNEL)
    store.put(Artefact("boot", "0123"), a_file(tmp_path, b"8 bytes."))


@pytest.mark.parametrize("key", ["", ".", "..", "../x", "a/b", ".hidden", "a\n", "a\0", "x" * 241, "ä"])
def test_a_key_is_a_files_name_and_no_path(key: str) -> None:
    with pytest.raises(ValueError):
        Artefact("kernel", key)

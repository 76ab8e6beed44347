"""Artefacts in a shared folder: what disks and networks do to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bisector.adapters.artefacts import folder_artefacts
from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.adapters.system.files import sha256_of
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.model import artefacts
from bisector.model.artefacts import Artefact
from tests.support.small_disk import fill, mounted

KERNEL = Artefact("kernel", "0123")


@pytest.fixture
def store(tmp_path: Path) -> FolderArtefacts:
    (tmp_path / "store").mkdir()
    (tmp_path / "file").write_bytes(b"a kernel")
    return FolderArtefacts(tmp_path / "store")


@pytest.mark.parametrize("content", [b"a kernal", b"a ker", b"", b"a kernel and more"])
def test_a_damaged_file_is_named_and_set_aside(
    store: FolderArtefacts, tmp_path: Path, content: bytes
) -> None:
    path = store.root / "kernel" / "0123" / store.put(KERNEL, tmp_path / "file")
    path.write_bytes(content)
    with pytest.raises(DamagedArtefact) as error:
        store.get(KERNEL, tmp_path / "target")
    assert str(path) in error.value.message
    assert not (tmp_path / "target").exists()
    assert not store.has(KERNEL)
    assert [p.read_bytes() for p in path.parent.iterdir()] == [content], "people can look at it"
    store.put(KERNEL, tmp_path / "file")
    assert store.get(KERNEL, tmp_path / "target")


def test_what_grew_too_large_is_damaged_and_read_no_further(
    store: FolderArtefacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.root / "kernel" / "0123" / store.put(KERNEL, tmp_path / "file")
    os.truncate(path, 10 << 20)
    monkeypatch.setattr(artefacts, "MAX_BYTES", {"kernel": 2 << 20})
    with pytest.raises(DamagedArtefact, match="checksum is wrong") as error:
        store.get(KERNEL, tmp_path / "target")
    assert "not computed: it is too large" in error.value.details


def test_what_changes_while_it_is_put_is_not_kept(
    store: FolderArtefacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"

    def change_behind(path: Path) -> str:
        checksum = sha256_of(path)
        file.write_bytes(b"another kernel")
        return checksum

    monkeypatch.setattr(folder_artefacts, "sha256_of", change_behind)
    with pytest.raises(InfrastructureError, match="was changed while it was put"):
        store.put(KERNEL, file)
    assert not store.has(KERNEL)


def test_a_folder_that_is_missing_is_not_made(tmp_path: Path) -> None:
    store = FolderArtefacts(tmp_path / "mount")
    (tmp_path / "file").write_bytes(b"x")
    for do in (
        store.check,
        lambda: store.has(KERNEL),
        lambda: store.put(KERNEL, tmp_path / "file"),
        lambda: store.get(KERNEL, tmp_path / "target"),
    ):
        with pytest.raises(InfrastructureError, match="is not there") as error:
            do()
        assert "mount it" in error.value.cure
    assert not (tmp_path / "mount").exists()


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(3 << 20))
    with mounted(tmp_path / "disk", 2) as disk:
        store = FolderArtefacts(disk)
        with pytest.raises(InfrastructureError, match=r"No space left"):
            store.put(KERNEL, tmp_path / "file")
        assert not store.has(KERNEL)
        assert [path for path in disk.rglob("*") if path.is_file()] == []
        fill(disk)
        with pytest.raises(InfrastructureError, match=r"cannot be written"):
            store.check()


def test_other_users_cannot_read_artefacts(store: FolderArtefacts, tmp_path: Path) -> None:
    path = store.root / "kernel" / "0123" / store.put(KERNEL, tmp_path / "file")
    assert path.stat().st_mode & 0o007 == 0


def test_what_is_kept_is_listed_with_its_last_use(store: FolderArtefacts, tmp_path: Path) -> None:
    path = store.root / "kernel" / "0123" / store.put(KERNEL, tmp_path / "file")
    (store.root / "kernel" / "not a key").mkdir()
    (store.root / "strangers").mkdir()
    for one in (path, path.parent):
        os.utime(one, (1e9, 1e9))
    (kept,) = store.kept()
    assert (kept.artefact, kept.used, kept.path) == (KERNEL, 1e9, path.parent)
    assert kept.bytes > 0
    store.get(KERNEL, tmp_path / "target")
    (kept,) = store.kept()
    assert kept.used > 1e9, "read is used"

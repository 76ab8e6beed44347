"""The guest image: found again by its ingredients, and never a half-made one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.artefacts.memory_artefacts import MemoryArtefacts
from bisector.adapters.guest import rootfs
from bisector.adapters.guest.rootfs import GuestImage, GuestImages
from bisector.errors import InfrastructureError
from bisector.model.artefacts import Artefact


def place(cache: Path, packages: tuple[str, ...] = ()) -> Path:
    """Return where the image with these packages is, with all that it has."""
    folder = cache / "images" / rootfs._key((*rootfs.PACKAGES, *packages))  # type: ignore[attr-defined]
    folder.mkdir(parents=True)
    for name in ("root.ext2", "client_key"):
        (folder / name).write_text(name)
    (folder / "image.json").write_text(json.dumps({"host_key": "ssh-ed25519 AAAA", "checksum": "c" * 64}))
    return folder


def test_an_image_is_found_by_its_set_of_packages(tmp_path: Path) -> None:
    assert GuestImages(tmp_path).present() is None
    folder = place(tmp_path, ("fio", "sysstat"))
    assert GuestImages(tmp_path).present() is None
    image = GuestImages(tmp_path, ("sysstat", "fio", "python3", "fio")).present()
    assert image is not None
    assert image.disk == folder / "root.ext2"


@pytest.mark.parametrize("missing", ["root.ext2", "client_key", "image.json"])
def test_half_an_image_is_none(tmp_path: Path, missing: str) -> None:
    (place(tmp_path) / missing).unlink()
    assert GuestImages(tmp_path).present() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host_key": "x"}'])
def test_an_image_without_its_facts_is_none(tmp_path: Path, text: str) -> None:
    (place(tmp_path) / "image.json").write_text(text)
    assert GuestImages(tmp_path).present() is None


def test_other_ingredients_are_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path)
    monkeypatch.setattr(rootfs, "_LAYOUT", rootfs._LAYOUT + 1)
    assert GuestImages(tmp_path).present() is None


def test_an_image_is_not_begun_without_its_tools_or_a_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> NoReturn:
        raise InfrastructureError("no namespace", cure="install uidmap")

    monkeypatch.setattr(rootfs, "root_namespace", refuse)
    with pytest.raises(InfrastructureError, match="no namespace"):
        GuestImages(tmp_path).ensure(lambda _: None)
    monkeypatch.setattr(rootfs, "find_program", lambda tool: None)
    with pytest.raises(InfrastructureError, match="'mmdebstrap' is not installed"):
        GuestImages(tmp_path).ensure(lambda _: None)
    assert not any(tmp_path.iterdir())


def test_tools_of_the_image_are_found_where_ordinary_users_do_not_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mke2fs lies in /usr/sbin, which Debian gives root alone; 'doctor' found it and --fix did not."""
    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    image = GuestImage(Path("/images/root.ext2"), Path("/images/key"), "ssh-ed25519 AA", "5" * 64)
    monkeypatch.setattr(rootfs.GuestImages, "_build", lambda *_: image)
    monkeypatch.setattr(rootfs, "root_namespace", lambda: ())
    assert GuestImages(tmp_path)._make(print) is image


def test_the_way_in_pins_the_host_key_of_the_image(tmp_path: Path) -> None:
    place(tmp_path)
    image = GuestImages(tmp_path).present()
    assert image is not None
    host = image.ssh_host("127.0.0.1", 2222, tmp_path)
    assert host.known_hosts.read_text() == "[127.0.0.1]:2222 ssh-ed25519 AAAA\n"
    assert (host.user, host.port) == ("root", 2222)


def host(folder: Path, store: MemoryArtefacts, said: list[str]) -> tuple[Path, Exchange]:
    return folder, Exchange(store, folder / "work", said.append)


def test_an_image_that_another_host_has_built_is_fetched_and_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    store = MemoryArtefacts()
    first, given = host(tmp_path / "a", store, said)
    folder = place(first)
    about = {"host_key": "ssh-ed25519 AAAA", "checksum": hashlib.sha256(b"root.ext2").hexdigest()}
    (folder / "image.json").write_text(json.dumps(about))
    GuestImages(first, (), given).ensure(print)
    given.close(30)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)  # nobody who could build one
    second, taken = host(tmp_path / "b", store, said)
    image = GuestImages(second, (), taken).ensure(print)
    assert image.disk.is_relative_to(second) and image.disk.read_text() == "root.ext2"
    assert image.checksum == about["checksum"]
    assert image.key.stat().st_mode & 0o777 == 0o600, "ssh takes no key that others can read"
    assert said == []


@pytest.mark.parametrize("damage", ["root.ext2", "image.json"])
def test_what_is_not_the_image_that_was_built_is_set_aside(tmp_path: Path, damage: str) -> None:
    said: list[str] = []
    store = MemoryArtefacts()
    folder = place(tmp_path / "a")  # its checksum is that of no disk
    if damage == "image.json":
        (folder / damage).write_text("{}")
    other = host(tmp_path / "a", store, said)[1]
    other.offer(Artefact("image", folder.name), folder)
    other.close(30)
    cache, exchange = host(tmp_path / "b", store, said)
    assert GuestImages(cache, (), exchange)._fetch(print) is None
    assert "what came as the guest image is none" in said[0]
    assert not store.has(Artefact("image", folder.name))

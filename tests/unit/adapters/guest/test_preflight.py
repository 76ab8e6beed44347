"""Whether guests can be booted here, as `doctor` prints it. Libvirt, the image and KVM's probe are given."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from bisector.adapters.guest import preflight
from bisector.adapters.guest.kvm_probe import KvmAnswer, KvmProbe
from bisector.adapters.guest.rootfs import GuestImage, GuestImages
from bisector.adapters.system.architectures import Machine
from bisector.adapters.system.host_requirements import Check
from bisector.errors import InfrastructureError


class Hypervisor:
    """A libvirt that answers."""

    uri = "qemu:///session"
    are_open = 0

    def __init__(self) -> None:
        Hypervisor.are_open += 1

    def close(self) -> None:
        Hypervisor.are_open -= 1


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host on which libvirt answers, no image is built, and KVM works."""
    monkeypatch.setattr(Hypervisor, "are_open", 0)
    monkeypatch.setattr(preflight, "Hypervisor", Hypervisor)
    monkeypatch.setattr(GuestImages, "present", lambda _: None)
    monkeypatch.setattr(preflight, "root_namespace", lambda: ())
    monkeypatch.setattr(preflight, "counting_plugin", lambda cache, machine: cache / f"{machine.arch}.so")
    monkeypatch.setattr(preflight, "find_program", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(KvmProbe, "ask", lambda *_, **__: KvmAnswer(True, True, "a kernel booted"))


def checks(tmp_path: Path) -> dict[str, Check]:
    return {c.name: c for c in preflight.guest_checks(tmp_path / "not" / "there", lambda _: None)}


def test_an_image_that_is_not_built_yet_is_no_obstacle(tmp_path: Path) -> None:
    found = checks(tmp_path)
    assert [name for name, check in found.items() if not check.ok] == ["guest image"]
    assert found["guest image"].optional
    assert found["guest image"].cure == "perfbisect doctor --fix"
    assert found["libvirt answers"].found == Hypervisor.uri


@pytest.mark.parametrize("shared", [False, True])
def test_a_user_who_cannot_build_the_image_hears_it_before_kernels_are_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Where hosts share images, another may have built it."""

    def refuse() -> NoReturn:
        raise InfrastructureError("this user has no namespace", details="no line", cure="usermod")

    monkeypatch.setattr(preflight, "root_namespace", refuse)
    found = {c.name: c for c in preflight.guest_checks(tmp_path, lambda _: None, shared=shared)}
    image = found["guest image"]
    assert image.wrong == "not built yet, and this user has no namespace: no line"
    assert (image.cure, image.optional) == ("usermod", shared)


def test_an_answer_that_cannot_be_kept_is_told_among_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the cache folder cannot be written, doctor says all that is wrong: it ended with this error."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise InfrastructureError("cannot write kvm.json", cure="set another folder")

    monkeypatch.setattr(KvmProbe, "ask", refuse)
    found = checks(tmp_path)
    assert (found["KVM"].wrong, found["KVM"].optional) == ("cannot write kvm.json", True)
    assert "libvirt answers" in found


def test_no_connection_to_libvirt_is_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker asks before each bisection, and libvirt takes no more than a number of clients."""
    monkeypatch.setattr(GuestImages, "ensure", lambda *_: None)
    checks(tmp_path)
    assert Hypervisor.are_open == 0
    preflight.prepare_guests(tmp_path, lambda _: None)
    assert Hypervisor.are_open == 0


def test_an_image_that_is_built_is_named_with_its_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, key = tmp_path / "root.ext2", tmp_path / "key"
    monkeypatch.setattr(GuestImages, "present", lambda _: GuestImage(disk, key, "ssh-ed25519 AA", "5" * 64))
    monkeypatch.setattr(os, "access", lambda *_: True)
    assert checks(tmp_path)["guest image"].found == f"{disk} (sha256 555555555555)"
    for unreadable in (disk, key):  # as after 'doctor --fix' of root with the same cache folder
        monkeypatch.setattr(os, "access", lambda path, _, unreadable=unreadable: path != unreadable)
        image = checks(tmp_path)["guest image"]
        assert image.wrong == f"{unreadable} may not be read by this user"
        assert f"rm -r {tmp_path}" in image.cure and not image.optional


def test_an_image_that_has_no_room_is_an_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = (preflight.IMAGE_MIB << 20) - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    image = checks(tmp_path)["guest image"]
    assert not image.ok
    assert not image.optional
    assert str(tmp_path) in image.wrong, "the folder that is there, not the one to be made"


def test_a_libvirt_that_does_not_answer_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise InfrastructureError("libvirtd does not start", details="no such file", cure="make deps")

    monkeypatch.setattr(preflight, "Hypervisor", refuse)
    libvirt = checks(tmp_path)["libvirt answers"]
    assert (libvirt.wrong, libvirt.cure) == ("libvirtd does not start: no such file", "make deps")
    assert not libvirt.optional


@pytest.mark.parametrize("known", [True, False])
def test_without_kvm_guests_are_emulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    monkeypatch.setattr(KvmProbe, "ask", lambda *_, **__: KvmAnswer(False, known, "no /dev/kvm"))
    kvm = checks(tmp_path)["KVM"]
    assert kvm.optional
    assert kvm.wrong == "no /dev/kvm"
    assert ("doctor --probe" in kvm.cure) is not known, "asked again only where it was never tried"


def test_a_host_without_a_free_port_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(*_: object) -> NoReturn:
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(socket.socket, "bind", bind)
    port = checks(tmp_path)["a free port on loopback"]
    assert port.wrong == "Address already in use"
    assert "ip_local_port_range" in port.cure


def test_a_qemu_that_cannot_count_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(tmp_path)["counters"].ok

    def refuse(cache: Path, machine: object) -> NoReturn:
        raise InfrastructureError("it does not load plugins", cure="install another QEMU")

    monkeypatch.setattr(preflight, "counting_plugin", refuse)
    found = checks(tmp_path)["counters"]
    assert (found.wrong, found.cure, found.optional) == (
        "it does not load plugins",
        "install another QEMU",
        True,
    )


def test_counters_are_asked_for_each_architecture_that_recipes_and_emulators_here_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {name: check for name, check in checks(tmp_path).items() if name.startswith("counters")}
    assert {name: Path(check.found).name for name, check in here.items()} == {
        "counters": "x86_64.so",
        "counters (arm64)": "arm64.so",
    }
    assert here["counters (arm64)"].needed == "counting in arm64 guests"
    monkeypatch.setattr(preflight, "find_program", lambda _: None)
    assert [name for name in checks(tmp_path) if name.startswith("counters")] == ["counters"]


def test_preparing_guests_compiles_their_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[str]()

    def compile_for(cache: Path, machine: Machine) -> Path:
        compiled.append(machine.arch)
        return cache / "counters.so"

    did = list[str]()
    monkeypatch.setattr(GuestImages, "ensure", lambda *_: did.append("image"))
    monkeypatch.setattr(KvmProbe, "ask", lambda *_: did.append("KVM"))
    monkeypatch.setattr(Hypervisor, "close", lambda _: did.append("libvirt"))
    monkeypatch.setattr(preflight, "counting_plugin", compile_for)
    preflight.prepare_guests(tmp_path, lambda _: None)
    assert compiled == ["x86_64", "arm64"]
    assert did == ["libvirt", "image", "KVM"], "what --fix promises; no connection stays open"


@pytest.mark.parametrize("probe", [False, True])
def test_kvm_is_tried_again_only_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probe: bool
) -> None:
    """A try boots a kernel, and takes a minute of an emulated one."""
    again = list[bool]()

    def ask(_: KvmProbe, progress: object, *, again: bool, asked: list[bool] = again) -> KvmAnswer:
        asked.append(again)
        return KvmAnswer(True, True, "a kernel booted")

    monkeypatch.setattr(KvmProbe, "ask", ask)
    preflight.guest_checks(tmp_path, lambda _: None, probe=probe)
    assert again == [probe]

"""The files of a network boot, which are there for one boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.machine.boot.netboot import Netboot
from bisector.errors import InfrastructureError
from bisector.schemas.machine.netboot_variables import NetbootVariables


def served(folder: Path) -> Netboot:
    return Netboot(NetbootVariables(folder=str(folder), url="tftp://10.0.2.2/", mac="52:54:00:AB:CD:EF"))


def test_the_machine_finds_a_script_by_its_address_until_the_boot_is_over(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"kernel")
    (tmp_path / "initramfs").write_bytes(b"initramfs")
    folder = tmp_path / "tftp"
    netboot = served(folder)
    netboot.publish(tmp_path / "image", tmp_path / "initramfs", "root=/dev/sda1 panic=10")
    script = folder / "perfbisect/52-54-00-ab-cd-ef.ipxe"
    base = "tftp://10.0.2.2/perfbisect/52-54-00-ab-cd-ef"
    assert script.read_text() == (
        f"#!ipxe\nkernel {base}/perfbisect.image root=/dev/sda1 panic=10 initrd=initrd\n"
        f"initrd --name initrd {base}/initrd\nboot\n"
    )
    assert (folder / "perfbisect/52-54-00-ab-cd-ef/initrd").read_bytes() == b"initramfs"
    netboot.publish(tmp_path / "image", None, "root=/dev/sda1")
    assert script.read_text() == f"#!ipxe\nkernel {base}/perfbisect.image root=/dev/sda1\nboot\n"
    assert not (folder / "perfbisect/52-54-00-ab-cd-ef/initrd").exists(), "of the kernel before"
    for _ in range(2):
        netboot.withdraw()
        assert list((folder / "perfbisect").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_this_hosts_fault(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"kernel")
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="cannot"):
        served(tmp_path / "file").publish(tmp_path / "image", None, "")


def test_a_folder_of_ones_home_is_not_one_of_that_name_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "image").write_bytes(b"kernel")
    served(Path("~/tftp")).publish(tmp_path / "image", None, "root=/dev/sda1")
    assert list(tmp_path.glob("tftp/perfbisect/*.ipxe")) and not (tmp_path / "~").exists()

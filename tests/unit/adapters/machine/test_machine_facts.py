"""What a machine tells of itself, by the real script in a real shell."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from bisector.adapters.machine.machine_facts import MachineFacts, read_machine_facts
from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError


@dataclass
class HereAsSSH:
    """Runs commands here; answers with a text of its own if there is one."""

    answer: str = ""
    host: str = "root@box"

    def run(self, command: Sequence[str], *, timeout: float) -> CompletedCommand:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout)
        return CompletedCommand(tuple(command), 0, self.answer or done.stdout)


def read(ssh: HereAsSSH) -> MachineFacts:
    return read_machine_facts(cast(SSH, ssh), "/var/tmp/not/there/yet", ["sh", "no-such-tool"])


def test_this_machine_told_by_the_script() -> None:
    facts = read(HereAsSSH())
    assert facts.has("sh") and not facts.has("no-such-tool") and not facts.has("tar")
    assert (facts.free_mib("boot") or 0) > 0 and (facts.free_mib("work") or 0) > 0
    assert "rw" in facts.get("work.options").split(",")
    assert facts.get("firmware") in ("bios", "uefi") and facts.get("release") and facts.get("cmdline")
    assert abs(facts.skew) <= facts.uncertainty + 0.1


def test_what_firmware_and_distribution_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    efivars = tmp_path / "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    initrd = tmp_path / "boot" / f"initrd-{os.uname().release}"  # as SUSE calls it
    lockdown = tmp_path / "sys/kernel/security/lockdown"
    for path in (efivars, initrd, lockdown):
        path.parent.mkdir(parents=True)
    efivars.write_bytes(b"\6\0\0\0\1")
    lockdown.write_text("none [integrity] confidentiality\n")
    initrd.touch()
    monkeypatch.setenv("PB_ROOT", str(tmp_path))
    facts = read(HereAsSSH())
    assert facts.get("secure_boot") == "on" and "[integrity]" in facts.get("lockdown")
    assert facts.get("initrd") == f"/boot/{initrd.name}"
    efivars.write_bytes(b"\6\0\0\0\0")
    assert read(HereAsSSH()).get("secure_boot") == ""


def test_which_menu_grub_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PB_ROOT", str(tmp_path))
    (tmp_path / "sys/firmware/efi").mkdir(parents=True)
    usual, on_efi = tmp_path / "boot/grub2/grub.cfg", tmp_path / "boot/efi/EFI/redhat/grub.cfg"
    for path in (usual, on_efi):
        path.parent.mkdir(parents=True)
    on_efi.write_text("### BEGIN /etc/grub.d/00_header ###\nnext_entry\ncustom.cfg\n")
    facts = read(HereAsSSH())
    assert (facts.get("grub_apart"), facts.get("grub_menu")) == ("/boot/efi/EFI/redhat/grub.cfg", "")
    (usual.parent / "grubenv").symlink_to("../efi/EFI/redhat/grubenv")
    usual.write_text("by hand")
    facts = read(HereAsSSH())
    assert (facts.get("grub_menu"), facts.get("grub_once")) == ("/boot/efi/EFI/redhat/grub.cfg", "yes")
    assert not facts.get("grub_apart")
    on_efi.write_text("configfile $prefix/grub.cfg")
    facts = read(HereAsSSH())
    assert (facts.get("grub_menu"), facts.get("grub_once")) == ("/boot/grub2/grub.cfg", "")


def test_the_skew_is_of_the_middle_of_question_and_answer() -> None:
    facts = read(HereAsSSH(f"now={time.time() + 100:.0f}\nuid=0\n"))
    assert 98 < facts.skew < 102


@pytest.mark.parametrize(
    "answer",
    ["This account is not available", "now=soon\n", "now=\N{SUPERSCRIPT TWO}\n", f"now={'9' * 5000}\n"],
)
def test_a_machine_without_a_shell(answer: str) -> None:
    with pytest.raises(InfrastructureError, match="does not tell its time"):
        read(HereAsSSH(answer))


@pytest.mark.parametrize("text", ["-", "\N{SUPERSCRIPT TWO}", "9" * 5000])
def test_a_size_that_is_none_is_not_known(text: str) -> None:
    assert MachineFacts({"boot.free_kib": text}).free_mib("boot") is None


def test_no_value_is_longer_than_a_kernels_command_line() -> None:
    assert len(read(HereAsSSH(f"now={time.time():.0f}\ncmdline={'x' * 9000}\n")).get("cmdline")) < 4096

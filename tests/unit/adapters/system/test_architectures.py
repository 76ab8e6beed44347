"""The rows of the machines that guests are, and what is told when this machine lacks something for one."""

from __future__ import annotations

import platform
import shutil

import pytest

from bisector.adapters.system import architectures
from bisector.adapters.system.architectures import ARM64, MACHINES, X86_64, machine_for
from bisector.errors import InfrastructureError


def test_each_row_is_found_by_its_name_and_others_are_refused() -> None:
    assert {arch: machine_for(arch) for arch in MACHINES} == {"x86_64": X86_64, "arm64": ARM64}
    with pytest.raises(InfrastructureError, match="there are no riscv64 guests") as error:
        machine_for("riscv64")
    assert "x86_64, arm64" in error.value.details


@pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
def test_console_and_agent_have_a_port_each(machine: architectures.Machine) -> None:
    assert machine.console.terminal != machine.line.terminal
    assert machine.console.number != machine.line.number


def test_native_is_what_this_processor_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert (X86_64.native, ARM64.native) == (False, True)


def test_the_first_compiler_that_is_installed_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: set[str] = {"gcc", "musl-gcc"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in installed else None)
    assert X86_64.compiler()[0] == "musl-gcc"
    installed.remove("musl-gcc")
    assert X86_64.compiler() == ("gcc", "-static")
    with pytest.raises(InfrastructureError, match="no C compiler for static arm64 programs") as error:
        ARM64.compiler()
    assert "gcc-aarch64-linux-gnu" in error.value.cure
    with pytest.raises(InfrastructureError, match="'qemu-system-aarch64', which runs") as missing:
        ARM64.require_emulator()
    assert "qemu-system-arm" in missing.value.cure
    installed.add("qemu-system-aarch64")
    ARM64.require_emulator()

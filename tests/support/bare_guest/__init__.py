"""Guests without a kernel, for the counters: each does one pattern of accesses or branches."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("bare_guest.c")
KERNEL = Path(__file__).with_name("bare_kernel.S")

_COMMON = (
    "-O2",
    "-ffreestanding",
    "-fno-pie",
    "-no-pie",
    "-nostdlib",
    "-static",
    "-fno-stack-protector",
    "-w",
)
COMPILERS = {
    "x86_64": ("gcc", "-m32", "-fcf-protection=none", "-Wl,-Ttext=0x100000", "-Wl,-z,max-page-size=4096"),
    "arm64": ("aarch64-linux-gnu-gcc", "-mgeneral-regs-only", "-Wl,-Ttext=0x40100000"),
}
_MACHINES = {
    "x86_64": (
        *("qemu-system-x86_64", "-machine", "q35", "-m", "128"),
        *("-device", "isa-debug-exit,iobase=0x501"),
    ),
    "arm64": ("qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-m", "128", "-semihosting"),
}


def execute(
    arch: str, folder: Path, plugin: str, *, pattern: str, size: int, stride: int, passes: int
) -> list[dict[str, Any]]:
    """Execute one pattern (see the source) under a plugin; return the lines that it wrote below `folder`.

    plugin: the value of -plugin but for 'out'.
    """
    image, out = folder / "bare", folder / "out.jsonl"
    defined = {"PATTERN": pattern, "BYTES": size, "STRIDE": stride, "PASSES": passes}
    words = [f"-D{name}={value}" for name, value in defined.items()]
    subprocess.run([*COMPILERS[arch], *_COMMON, *words, "-o", image, SOURCE], check=True)
    return _run(arch, image, plugin, out)


def build_kernel(folder: Path) -> tuple[Path, str]:
    """Build the kernel (see the source); return its image, and its symbols as System.map has them."""
    linked, image = folder / "kernel.elf", folder / "kernel"
    words = [
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,-Ttext=0xffffffff80100000",
        "-Wl,--build-id=none",
        "-Wl,-e0",
    ]
    subprocess.run(["gcc", *words, "-o", linked, KERNEL], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", linked, image], check=True)
    return image, subprocess.run(["nm", linked], check=True, capture_output=True, text=True).stdout


def execute_kernel(image: Path, plugin: str) -> list[dict[str, Any]]:
    """Execute that kernel under a plugin; return the lines that it wrote."""
    return _run("x86_64", image, plugin, image.with_name("out.jsonl"))


def _run(arch: str, image: Path, plugin: str, out: Path) -> list[dict[str, Any]]:
    out.write_text("")
    command = [*_MACHINES[arch], "-nodefaults", "-display", "none", "-icount", "shift=0,sleep=off"]
    command += ["-kernel", os.fspath(image), "-plugin", f"{plugin},out={out}"]
    subprocess.run(command, check=False, timeout=60)
    return [json.loads(line) for line in out.read_text().splitlines()]

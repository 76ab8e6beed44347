"""One static program under QEMU's user mode with the counters, and under cachegrind, same geometry."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("user_program.c")
PROGRAMS = ("gcc", "qemu-x86_64", "valgrind")

FIRST, LAST = (32768, 8, 64), (1 << 20, 16, 64)
"""Bytes, ways, bytes of a line. The last level is small, so that programs of a second miss it."""

_COMPILE = ("gcc", "-O1", "-static", "-w")
_SECONDS = 600
_LINE = re.compile(r"(D1 +misses|LLd misses):\s+([\d,]+)")


@dataclass(frozen=True)
class Misses:
    """Of data, in the first and in the last level."""

    first: int
    last: int


def compile_program(folder: Path, pattern: str, size: int) -> Path:
    """Return the program for a pattern of user_program.c on so many bytes."""
    program = folder / f"{pattern}-{size}"
    subprocess.run([*_COMPILE, f"-DPATTERN={pattern}", f"-DBYTES={size}", SOURCE, "-o", program], check=True)
    return program


def counted(program: Path, plugin: Path, folder: Path) -> Misses:
    """Return what the plugin's model counts between the markers: user mode, virtual addresses."""
    out = folder / "counts.jsonl"
    out.write_text("")
    levels = {"L1d": FIRST, "L1i": FIRST, "LL": LAST}
    words = [f"{name}={':'.join(map(str, level))}" for name, level in levels.items()]
    option = ",".join([f"file={plugin}", f"out={out}", "virtual=on", *words])
    subprocess.run(["qemu-x86_64", "-plugin", option, program], check=True, timeout=_SECONDS)
    _, line = out.read_text().splitlines()
    found = json.loads(line)
    return Misses(found["L1d_misses"], found["LL_misses"])


def simulated(program: Path) -> Misses:
    """Return what cachegrind says of the whole program, its start and its end too."""
    levels = {"D1": FIRST, "I1": FIRST, "LL": LAST}
    words = [f"--{name}={','.join(map(str, level))}" for name, level in levels.items()]
    command: list[str | Path] = [
        "valgrind",
        "--tool=cachegrind",
        *words,
        f"--cachegrind-out-file={os.devnull}",
        program,
    ]
    done = subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True, text=True)
    first, last = (int(number.replace(",", "")) for _, number in _LINE.findall(done.stderr))
    return Misses(first, last)

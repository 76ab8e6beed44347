"""Static programs for guests, compiled on this machine and kept in the cache."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bisector.adapters.system.architectures import Machine
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import CACHE_CURE, os_errors_reported, replacing

SOURCES = Path(__file__).parent / "files"
"""The C sources, and what else goes into a guest."""

_COMPILE_SECONDS = 120.0
"""Timeout of the compilation of one C file on an overloaded machine; an idle one takes less than a second."""


def compile_static(source: str, cache: Path, machine: Machine) -> bytes:
    """Return the program of one C file in `SOURCES`, compiled if the cache has none of this version of it.

    Raises InfrastructureError: no compiler, or no space.
    """
    path = SOURCES / source
    command = [*machine.compiler(), "-Os", "-s", "-Wall"]
    with os_errors_reported(f"cannot compile {path} below {cache}", CACHE_CURE):
        key = hashlib.sha256(" ".join(command).encode() + path.read_bytes()).hexdigest()[:16]
        program = cache / "images" / f"{path.stem.replace('_', '-')}-{key}"
        if not program.is_file():
            with replacing(program) as partial:
                run_command([*command, "-o", partial, path], timeout=_COMPILE_SECONDS)
        return program.read_bytes()

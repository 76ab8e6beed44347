"""The plugin with which QEMU counts what a guest executes: compiled, kept in the cache, and its arguments.

Its sources (`files/counters`) are under the GPL, version 2 or later, because it runs inside QEMU. A QEMU that
was built without plugins, or has another interface of them than version 1 (4.2 to 8.2), cannot load it.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.architectures import Machine
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import CACHE_CURE, os_errors_reported, replacing
from bisector.adapters.system.host_requirements import install
from bisector.errors import InfrastructureError
from bisector.ports import Counting
from bisector.schemas.kernel.cpu_model import cpu_model
from bisector.schemas.workload.counted_metrics import (
    CACHES,
    FUNCTIONS,
    MEMORY,
    PREDICTOR,
    needs_of,
)

SOURCES = Path(__file__).parent.parent / "files" / "counters"

_COMPILE = ("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden")
_COMPILE_SECONDS = 120.0
"""Timeout of the compilation on an overloaded machine; an idle one takes a second."""
_QEMU_SECONDS = 60.0
"""The same of QEMU without a machine, which ends at once."""
_LOADED = "perfbisect counters: this QEMU has plugins"
"""What the plugin says with 'check=on' (counters.c)."""


def counting_plugin(cache: Path, machine: Machine) -> Path:
    """Return the plugin, compiled and tried with this machine's QEMU if the cache has none for both.

    Raises InfrastructureError: no compiler, no space, or a QEMU that cannot load it.
    """
    machine.require_emulator()
    if shutil.which(_COMPILE[0]) is None:
        raise InfrastructureError("no compiler for the counters of guests is installed", cure=install("gcc"))
    qemu = run_command([machine.emulator, "--version"], timeout=_QEMU_SECONDS).output
    with os_errors_reported(f"cannot compile {SOURCES} below {cache}", CACHE_CURE):
        sources = sorted(SOURCES.glob("*.[ch]"))
        text = b"".join(path.read_bytes() for path in sources)
        key = hashlib.sha256(f"{_COMPILE}\n{machine.emulator}\n{qemu}\n".encode() + text).hexdigest()[:16]
        plugin = cache / "images" / f"counters-{machine.arch}-{key}.so"
        if not plugin.is_file():
            with replacing(plugin) as partial:
                units = [path for path in sources if path.suffix == ".c"]
                run_command([*_COMPILE, "-o", partial, *units], timeout=_COMPILE_SECONDS)
                _try(partial, machine, qemu)
    return plugin


def _try(plugin: Path, machine: Machine, qemu: str) -> None:
    """Raise InfrastructureError unless this machine's QEMU loads the plugin."""
    words = [machine.emulator, "-machine", "none", "-display", "none", "-plugin", f"{_file(plugin)},check=on"]
    done = run_command(words, timeout=_QEMU_SECONDS, check=False)
    if _LOADED not in done.output:
        version = (qemu.splitlines() or ["an unknown version"])[0]
        raise InfrastructureError(
            f"'{machine.emulator}' ({version}) cannot count: it does not load plugins of version 1",
            details=done.output.strip()[-2000:],
            cure="install a QEMU of 4.2 to 8.2 with plugins, as Debian 12 has it; or leave out --monitor "
            "counters and metrics that are counted",
        )


def counts_caches(counting: Counting) -> bool:
    """Return whether each block of code has its modelled misses."""
    return counting.models or CACHES in needs_of(counting.metrics)


@dataclass(frozen=True, slots=True)
class Followed:
    """The run whose calls are followed, by its number. functions: file of the kernel's (call_paths.py)."""

    functions: Path
    run: int


def plugin_argument(plugin: Path, counting: Counting, out: Path, followed: Followed | None = None) -> str:
    """Return the value of QEMU's option -plugin. out: an empty file that the plugin fills."""
    needs = needs_of(counting.metrics)
    if counting.models or CACHES in needs:
        needs |= {CACHES, PREDICTOR}  # the cycles of functions have both
    words = [_file(plugin), f"out={_escaped(out)}"]
    if counting.profile or FUNCTIONS in needs:
        words.append("profile=on")
    if followed is not None:
        words += [f"functions={_escaped(followed.functions)}", f"follow={followed.run}"]
    if MEMORY in needs:
        words.append("memory=on")
    cpu = cpu_model(counting.cpu)
    if PREDICTOR in needs:
        words.append(f"predictor={cpu.predictor.argument()}")
    if CACHES in needs:
        words += [f"{level}={geometry}" for level, geometry in cpu.arguments().items()]
    return ",".join(words)


def _file(plugin: Path) -> str:
    return f"file={_escaped(plugin)}"


def _escaped(path: Path) -> str:
    """Return a path inside a QEMU option, where a comma is written twice."""
    return str(path).replace(",", ",,")

"""Functions of a counted profile, instruction by instruction: blocks of the boot, code of the kernel's image.

What is shown was linked. A kernel changes its code as it boots (alternatives, jump labels, tracing): another
instruction may have been executed than the one that is shown. The executions are those of its place.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bisector.adapters.guest.counting.kernel_code import KernelCode, kernel_code
from bisector.adapters.guest.counting.symbol_table import SymbolTable, read_symbols
from bisector.adapters.system.archive import ArchiveError, read_compressed
from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import os_errors_reported, sha256_of
from bisector.adapters.system.host_requirements import install
from bisector.errors import InfrastructureError, RequestError
from bisector.linux.annotated_code import AnnotatedFunction, CodePart, annotate
from bisector.linux.profile import Profile, Symbol
from bisector.schemas.counted_functions import MAX_BYTES, CountedBlocks

_SECONDS = 60.0
"""Timeout of a disassembly; a function takes milliseconds."""
_PART_BYTES_MAX = 1 << 20
"""The largest function of a kernel has some 30 KB; behind the last one there may be megabytes of data."""

_DISASSEMBLERS = {
    "x86_64": (("objdump", "x86_64-linux-gnu-objdump"), ("-m", "i386:x86-64"), "binutils"),
    "arm64": (("aarch64-linux-gnu-objdump", "objdump"), ("-m", "aarch64"), "binutils-aarch64-linux-gnu"),
}
"""By architecture: programs, the words that choose it, and the Debian package."""

_LINE = re.compile(r"^ *([0-9a-f]+):\t(.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"0x[89a-f][0-9a-f]{15}\b")


def annotated_functions(profile: Profile, names: Sequence[str]) -> list[AnnotatedFunction]:
    """Return functions' instructions with their executions in a run, in the order of their names.

    Raises RequestError: the profile has no blocks, or the kernel is gone; InfrastructureError: no objdump.
    """
    counted = _blocks(profile)
    image = Path(counted.image)
    _require(image, counted)
    try:
        symbols = read_symbols(image)
    except ArchiveError as error:
        raise _missing_kernel(counted, "its symbols cannot be read") from error
    code = kernel_code(image, symbols.first)
    return [_annotated(profile, name, counted, symbols, code) for name in names]


def _annotated(
    profile: Profile, name: str, counted: CountedBlocks, symbols: SymbolTable, code: KernelCode
) -> AnnotatedFunction:
    ranges = symbols.ranges(name)
    parts: list[CodePart] = []
    odd = 0
    for begin, end in ranges:
        near = [one for one in counted.blocks if one[0] < end and one[0] + one[1] > begin]
        if near:
            text = list(
                _disassemble(code.at(begin, min(end, begin + _PART_BYTES_MAX)), begin, counted.arch, symbols)
            )
            part, within = annotate(text, near)
            parts.append(part)
            odd += within
    own = profile.own.get(Symbol(name, "kernel"), 0.0)
    return AnnotatedFunction(profile.name, name, bool(ranges), tuple(parts), own, odd, counted.left_out)


def _blocks(profile: Profile) -> CountedBlocks:
    """Return the executions of blocks. Raises RequestError."""
    again = "count it again: perfbisect workload run WORKLOAD --rev REV --monitor counters --keep FOLDER"
    if not profile.exact:
        raise RequestError(f"{profile.name} is no counted profile: nothing tells executions", cure=again)
    if not profile.blocks:
        raise RequestError(
            f"{profile.name} has no counts of blocks: an earlier version, or a server, has it", cure=again
        )
    try:
        return CountedBlocks.model_validate_json(read_compressed(Path(profile.blocks), MAX_BYTES))
    except (ArchiveError, ValueError) as error:
        raise RequestError(f"{profile.blocks} cannot be read", details=str(error), cure=again) from error


def _require(image: Path, counted: CountedBlocks) -> None:
    """Raise RequestError unless the kernel that was counted is still where it was."""
    if not image.is_file():
        raise _missing_kernel(counted, "it is not on this machine")
    with os_errors_reported(f"cannot read {image}"):
        if sha256_of(image) != counted.sha256:
            raise _missing_kernel(counted, "another kernel is there now")


def _missing_kernel(counted: CountedBlocks, why: str) -> RequestError:
    return RequestError(
        f"the kernel that was counted was {counted.image}: {why}",
        cure=f"build it again: perfbisect kernel build {counted.sha} --recipe {counted.recipe}",
    )


def _disassemble(code: bytes, begin: int, arch: str, symbols: SymbolTable) -> Iterator[tuple[int, str]]:
    """Yield (address, instruction) of some code; addresses in it become functions and offsets."""
    programs, words, package = _DISASSEMBLERS[arch]
    program = next((one for one in programs if shutil.which(one)), None)
    if program is None:
        raise InfrastructureError("no objdump for the kernel's code is installed", cure=install(package))
    with tempfile.NamedTemporaryFile(prefix="perfbisect-") as file:
        file.write(code)
        file.flush()
        flags = ["-D", "-w", "--no-show-raw-insn", "-b", "binary", *words, f"--adjust-vma={begin:#x}"]
        output = run_command([program, *flags, file.name], timeout=_SECONDS).output
    for address, text in _LINE.findall(output):
        yield int(address, 16), _ADDRESS.sub(lambda found: _named(found[0], symbols), " ".join(text.split()))


def _named(address: str, symbols: SymbolTable) -> str:
    return symbols.place(int(address, 16)) or address

"""The functions of a kernel by address.

Addresses are those of the linked kernel: where the kernel moves itself (CONFIG_RANDOMIZE_BASE without
'nokaslr') nothing can be told.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from pathlib import Path

from bisector.adapters.system.archive import ArchiveError, read_compressed
from bisector.linux.profile import source_name
from bisector.model.commit_graph import is_listed, short_name
from bisector.ports import Kernel
from bisector.schemas.counted_functions import MAX_NAME

SYMBOLS = "System.map.gz"
"""Beside a kernel's image in the cache; entries of earlier versions and of some packages have none."""

_SYMBOLS_BYTES_MAX = 256 << 20
"""A kernel of a distribution has 10 MB."""

_TEXT = re.compile(r"^([0-9a-f]{16}) ([tTwW]) (\S+)$", re.MULTILINE)
_LABEL = re.compile(r"_?_?[se]?text|\w+_(start|begin|end)|startup_64")
"""Symbols that say where a section begins or ends; the function at the same address has the better name."""
_ENDS = {"_etext", "__entry_text_end", "_einittext", "__end_rodata"}
ELSEWHERE = "[outside of the kernel's own text]"
"""What of modules has no symbol, and code that the kernel writes itself (eBPF)."""


class SymbolTable:
    """The functions of a kernel by address."""

    def __init__(self, text: str) -> None:
        """Read a System.map; of several names of one address the first one in the alphabet counts."""
        found: dict[int, str] = {}
        for address, _, name in _TEXT.findall(text):
            place = int(address, 16)
            if place >> 63:
                found[place] = min(found.get(place, name), name, key=_rank)
        self._addresses = sorted(found)
        self._names = [found[address] for address in self._addresses]
        self._entries = {address for address, name in found.items() if ".cold" not in name}

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield where each function begins, by rising addresses, and its name."""
        for address in self._addresses:
            yield address, self.function(address)

    def entries(self, names: Collection[str]) -> frozenset[int]:
        """Return where functions of these names begin."""
        return frozenset(place for place in self._entries if self.function(place) in names)

    @property
    def first(self) -> int:
        """The lowest address; 0 without any function."""
        return self._addresses[0] if self._addresses else 0

    def ranges(self, name: str) -> list[tuple[int, int]]:
        """Return the stretches of code of the functions of a name and of their parts: (begin, end)."""
        ends = [*self._addresses[1:], 0]
        pairs = zip(self._addresses, ends, strict=True)
        return [(begin, end) for begin, end in pairs if self.function(begin) == name]

    def place(self, address: int) -> str:
        """Return 'function+0x1c' for an address; '' outside of the kernel's own text."""
        at = bisect_right(self._addresses, address) - 1
        if at < 0 or self.function(address) == ELSEWHERE:
            return ""
        offset = address - self._addresses[at]
        return f"{self._names[at]}+{offset:#x}" if offset else self._names[at]

    def is_entry(self, address: int) -> bool:
        """Return whether a function begins there; its part for unlikely cases (foo.cold) is none."""
        return address in self._entries

    def function(self, address: int) -> str:
        """Return the function that an address lies in, by its name in the source."""
        at = bisect_right(self._addresses, address) - 1
        name = self._names[at] if at >= 0 else ELSEWHERE
        last = at == len(self._names) - 1
        return ELSEWHERE if last or name in _ENDS else source_name(name)[:MAX_NAME]


def _rank(name: str) -> tuple[bool, str]:
    return _LABEL.fullmatch(name) is not None, name


def symbols_of(kernel: Kernel, cmdline: str) -> SymbolTable | str:
    """Return a kernel's functions, or why they cannot be read. cmdline: the one that it was booted with."""
    if kernel.options.get("RANDOMIZE_BASE") == "y" and "nokaslr" not in cmdline.split():
        return (
            "the kernel moves itself at each boot (CONFIG_RANDOMIZE_BASE): add 'kaslr: off' to 'environment' "
            "of the manifest"
        )
    symbols = kernel.image.with_name(SYMBOLS)
    try:
        return read_symbols(kernel.image)
    except ArchiveError as error:
        if symbols.exists():
            return f"the kernel's symbols cannot be read: {error.message}"
        if is_listed(kernel.sha):
            return (
                f"{short_name(kernel.sha)} came without its symbols: list it as a folder with vmlinuz, "
                "config and System.map, which Debian has in the package of debug information"
            )
        return (
            f"the kernel in {kernel.image.parent} was built by an earlier version, which kept no symbols: "
            "remove this folder, so that it is built again"
        )


def read_symbols(image: Path) -> SymbolTable:
    """Return the functions of a kernel of the cache, by its image. Raises ArchiveError."""
    text = read_compressed(image.with_name(SYMBOLS), _SYMBOLS_BYTES_MAX)
    return SymbolTable(text.decode("utf-8", "replace"))

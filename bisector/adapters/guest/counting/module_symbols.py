"""The functions of a guest's modules by address, as its own kernel lists them (/proc/kallsyms).

A module lies elsewhere in each boot, so the list is that of the boot whose blocks it names.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from bisector.linux.profile import source_name
from bisector.schemas.counted_functions import MAX_NAME

_LINE = re.compile(r"^([0-9a-f]{16}) [tTwW] (\S+)\t\[([\w-]+)\]$", re.MULTILINE)
_PAGE = 4096


class ModuleSymbols:
    """Functions of modules, and of code that the kernel lists as if it were one's: eBPF programs."""

    def __init__(self, text: str = "") -> None:
        """Read lines of /proc/kallsyms; of several names of one address the first in the alphabet counts."""
        found: dict[int, tuple[str, str]] = {}
        for address, name, module in _LINE.findall(text):
            place = int(address, 16)
            if place >> 63:  # all are 0 where the kernel hides them
                found[place] = min(found.get(place, (name, module)), (name, module))
        self._addresses = sorted(found)
        self._symbols = [found[address] for address in self._addresses]
        self._entries = {address for address, (name, _) in found.items() if ".cold" not in name}

    def function(self, address: int) -> tuple[str, str] | None:
        """Return the function that an address lies in, by its name in the source, and its module.

        The list has no lengths: the last function of a module is taken to end with the page that it begins
        in, since what comes behind may be anything.
        """
        at = bisect_right(self._addresses, address) - 1
        if at < 0:
            return None
        name, module = self._symbols[at]
        begin = self._addresses[at]
        is_last = at + 1 == len(self._symbols) or self._symbols[at + 1][1] != module
        if is_last and address >= begin - begin % _PAGE + _PAGE:
            return None
        return source_name(name)[:MAX_NAME], module

    def is_entry(self, address: int) -> bool:
        """Return whether a function begins there; its part for unlikely cases (foo.cold) is none."""
        return address in self._entries

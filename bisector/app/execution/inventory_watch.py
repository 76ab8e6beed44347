"""The inventory as it is now: a worker runs for months; machines come, go and get other names meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bisector.app.accept import workload_of
from bisector.app.testbeds.testbed_choice import joining_testbeds
from bisector.app.testbeds.testbed_hosts import bind_testbeds
from bisector.errors import PerfbisectError
from bisector.schemas.request import read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.schemas.lab import Lab

INVENTORY = "inventory"
"""Stands for the bisection's id in events about the inventory; real ids contain a '-'."""
_REREAD_SECONDS = 1.0
"""Least time between two looks at the modification times of the inventory's files."""
_ASK_SECONDS = 60.0
"""How often an inventory that is a program is run: Ansible takes 1 to 2 s for it."""


class InventoryWatch:
    """Which testbeds are ours, by the inventory of the moment. Used by one thread."""

    def __init__(self, wiring: Wiring, worker: str, tell: Callable[[str], object]) -> None:
        """worker: the name of ours; tell: called with what has changed."""
        self._wiring, self._worker, self._tell = wiring, worker, tell
        self._read_at = float("-inf")
        self._wrong = ""
        self._lab: Lab | None = None
        self._names: frozenset[str] = frozenset()
        self._joined: dict[
            str, tuple[Lab | None, list[str]]
        ] = {}  # bisection -> by which inventory, testbeds
        self._refused: dict[str, str] = {}  # testbed -> why it is another host's, as it was told

    def ours(self, wanted: Sequence[str]) -> list[str]:
        """Return those of the testbeds that the inventory has, and gives to this worker."""
        self._reread()
        return [name for name in wanted if name in self._names]

    def of_bisection(self, identity: str, testbeds: Sequence[str]) -> list[str]:
        """Return those of a bisection's testbeds that are ours, and those of ours that have joined them."""
        self._reread()
        lab, joined = self._joined.get(identity, (None, []))
        if lab is not self._lab:
            with suppress(PerfbisectError):  # the bisection or its workload was removed
                accepted = read_accepted(self._wiring.store.load(identity).request)
                joined = joining_testbeds(self._wiring, accepted, workload_of(accepted.request))
            self._joined[identity] = self._lab, joined
        return self.ours((*testbeds, *joined))

    def _reread(self) -> None:
        """Read the inventory again if it has changed. One that cannot be read changes nothing."""
        lab = self._wiring.lab
        program = lab.inventory.is_file() and os.access(lab.inventory, os.X_OK)
        if time.monotonic() > self._read_at + (_ASK_SECONDS if program else _REREAD_SECONDS):
            first, self._read_at = self._lab is None, time.monotonic()
            try:
                new = lab if first else self._wiring.read_lab()
            except PerfbisectError as error:
                if error.message != self._wrong:
                    self._wrong = error.message
                    self._tell(f"the inventory cannot be read; what it said before holds: {error.message}")
                return
            if self._wrong:
                self._wrong = ""
                self._tell("the inventory can be read again")
            if new != lab:
                self._wiring.lab = new
                self._tell(f"the inventory has changed: {_difference(lab, new)}")
        if self._lab is not self._wiring.lab:
            self._lab = self._wiring.lab
            self._names = self._own(self._lab)

    def _own(self, lab: Lab) -> frozenset[str]:
        """Return the testbeds of this worker; report those that are another host's, once each."""
        if self._wiring.settings.database is None:
            return frozenset(spec.name for spec in lab.testbeds)
        specs = lab.testbeds_of(self._worker)
        refused = bind_testbeds(self._wiring, specs, self._worker)
        for name, error in refused.items():
            if self._refused.get(name) != error.message:
                self._tell(f"{error.message}; {error.cure}")
        self._refused = {name: error.message for name, error in refused.items()}
        return frozenset(spec.name for spec in specs if spec.name not in refused)


def _difference(old: Lab, new: Lab) -> str:
    """Return in words what two inventories differ by."""
    before, after = ({spec.name: spec for spec in lab.testbeds} for lab in (old, new))
    common = before.keys() & after.keys()
    found = {
        "new testbeds": sorted(after.keys() - before.keys()),
        "testbeds that are gone": sorted(before.keys() - after.keys()),
        "testbeds with other variables": sorted(name for name in common if before[name] != after[name]),
    }
    words = [f"{what}: {', '.join(names)}" for what, names in found.items() if names]
    return "; ".join(words) or "builders"

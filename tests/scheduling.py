"""Which of two processes a test belongs to, for pytest-xdist."""

from __future__ import annotations

from xdist.scheduler.loadscope import LoadScopeScheduling

APART = ("unit", "golden", "bad_input")
"""Folders whose tests share nothing with others: no guest, no machine, no server of this host."""
BUILDS = "tests/integration/builds/"
"""Its tests compile and boot nothing. They share a user of this host with each other, so they stay together;
what uses the machine takes the longest, and these six minutes are no part of it."""


class MachineTestsTogether(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no annotations
    """Tests that use the machine run one after the other, in one process, and so do builds.

    All others run by files, beside them.

    Marks of groups (`xdist_group`) would say it, but pytest-xdist 3.8 does not see them under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


def scope(nodeid: str) -> str:
    """Return what a test stays together with. nodeid: 'tests/FOLDER/.../FILE.py::NAME'."""
    file = nodeid.partition("::")[0]
    if file.startswith(BUILDS):
        return "builds"
    folder = file.split("/")[1:2]
    return file if folder and folder[0] in APART else "machine"

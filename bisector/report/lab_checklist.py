"""Checks of machines as a checklist that a lab owner can send along: what was tried, what not, evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.report import phrases

_MARKS = {"ok": "[x]", "doubtful": "[?]", "wrong": "[!]", "not tried": "[ ]"}
_LEGEND = "[x] ok   [?] works, and may hurt later   [!] wrong   [ ] not tried"


def render(machines: Sequence[MachineFindings], at: float, version: str) -> str:
    """Return the checklist as text. at: seconds since the epoch; version: of this program."""
    title = f"Machines of a lab, checked by perfbisect {version}, {phrases.date(at)}"
    return "\n".join(_lines(machines, title)) + "\n"


def _lines(machines: Sequence[MachineFindings], title: str) -> Iterator[str]:
    yield title
    yield "=" * len(title)
    yield ""
    yield _LEGEND
    for machine in machines:
        yield ""
        yield machine.name
        yield "-" * len(machine.name)
        for one in machine.findings:
            yield from _one(one)
        untried = [one.check for one in machine.findings if one.result == "not tried"]
        yield ""
        yield f"Not tried: {', '.join(untried)}." if untried else "Everything was tried."


def _one(one: LabFinding) -> Iterator[str]:
    seconds = f" ({one.seconds:.1f} s)" if one.seconds >= 0.1 else ""
    yield f"{_MARKS[one.result]} {one.check}: {one.found}{seconds}"
    if one.cure:
        yield f"    cure: {one.cure}"
    for line in one.details.rstrip().splitlines():
        yield f"    | {line}"

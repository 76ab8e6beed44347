"""`perfbisect testbed`: what each testbed may be used for, by whom, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion, number_options, text_options
from bisector.report import phrases

if TYPE_CHECKING:
    from bisector.model.leases import TestbedState

Name = Annotated[
    str,
    typer.Argument(metavar="TESTBED", help="A testbed of the lab.", autocompletion=completion.testbeds),
]
_MOST_HOURS = 24.0 * 365
"""Longest reservation, and longest time until one: a year, chosen. Whoever wants more drains the testbed."""


def list_(lab: options.Lab = None, as_json: options.Json = False) -> None:
    """Show the testbeds with their state, who has reserved them, and who uses them now.

    That is a bisection, or else the process or worker that has the machine, such as for a check.

    Examples:

      perfbisect testbed list

      perfbisect testbed list --json
    """
    found = ask.operations(lab).testbeds()
    if as_json:
        output.print_json(found["testbeds"])
        return
    cells = []
    for row in found["testbeds"]:
        until = _reserved(row, future=row["reserved_from"] > found["now"]) if row["reserved_by"] else ""
        why = ""
        if row["since"] is not None:
            why = f"{row['reason']} ({row['by']}, {phrases.date(row['since'])})".strip()
        cells.append((row["name"], row["state"], until, row["used_by"] or row.get("held_by") or "", why))
    header = ("NAME", "STATE", "RESERVED", "USED BY", "WHY")
    print(output.table(header, cells, wrapped=["WHY", "RESERVED"], dropped=["USED BY"]))


def drain(
    name: Name,
    reason: Annotated[str, text_options.option("Why, for those who wait for it.")] = "",
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Take a testbed out of use after its current boot, until 'testbed release'.

    Example:

      perfbisect testbed drain box --reason 'new memory'
    """
    _set(name, "maintenance", reason, lab, as_json=as_json)


def retire(
    name: Name,
    reason: Annotated[str, text_options.option("Why, for those who look for it.")] = "",
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Take a testbed out of use for good; what it has measured stays. 'testbed release' brings it back.

    Example:

      perfbisect testbed retire box --reason 'fans are broken'
    """
    _set(name, "retired", reason, lab, as_json=as_json)


def release(name: Name, lab: options.Lab = None, as_json: options.Json = False) -> None:
    """Let a testbed be used again, whatever its state was, and end your reservations of it.

    Example:

      perfbisect testbed release box
    """
    _set(name, "good", "", lab, as_json=as_json)


def reserve(
    name: Name,
    hours: Annotated[float, number_options.real(0, _MOST_HOURS, "For so many hours.", above=True)] = 8.0,
    wait: Annotated[
        float,
        number_options.option(
            number_options.Range(float, 0, _MOST_HOURS), "Begin in so many hours; at once by default.", "--in"
        ),
    ] = 0.0,
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Keep a testbed for yourself for a while; bisections leave it after their current boot.

    Your own 'start', 'calibrate' and 'workload run' may use it meanwhile; a worker does not.

    Examples:

      perfbisect testbed reserve box --hours 2

      perfbisect testbed reserve box --in 12 --hours 8
    """
    made = ask.operations(lab).reserve_testbed(name, hours, wait)
    if as_json:
        output.print_json(made)
    else:
        output.print_note(f"{made['name']} is reserved by {_reserved(made, future=wait > 0)}")


def health(
    name: Name,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="It has changed: its next boots are the reference.")
    ] = False,
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Check a testbed now: boot its fixed kernel, run pipe-test, and compare with its first boots.

    A testbed that stands out in two boots in a row, or fails twice to boot, is suspect from then on:
    bisections leave it until 'testbed release'. One that only failed to boot returns by itself when it
    measures as before.

    Examples:

      perfbisect testbed health box

      perfbisect testbed health box --fresh
    """
    import dataclasses

    from bisector.app.execution.health_check import check_now

    wiring = options.make_wiring(
        lab=lab, why_here="it boots the testbed and waits; workers check each of theirs once a day"
    )
    found = check_now(wiring, name, output.print_note, fresh=fresh)
    if as_json:
        output.print_json(dataclasses.asdict(found))
    else:
        print(f"{found.testbed}: {found.outcome}; {found.words}")
        if found.state != "good":
            cure = f"; 'perfbisect testbed release {found.testbed}' lets it be used"
            print(f"{found.testbed} is {found.state}{cure}")
    if found.outcome != "sound":
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _set(name: str, state: TestbedState, reason: str, lab: Path | None, *, as_json: bool) -> None:
    made = ask.operations(lab).set_testbed(name, state, reason)
    ended, reserved = made.pop("ended"), made.pop("reserved")
    if as_json:
        output.print_json(made)
        return
    more = "; no reservation of yours is left" if ended else ""
    if state == "good" and reserved is not None:
        more += f"; still reserved by {_reserved(reserved, future=False)}"
    output.print_note(f"{made['name']}: {state}{more}")


def _reserved(row: Mapping[str, Any], *, future: bool) -> str:
    """Return who has reserved a testbed, and for which time."""
    start = f"from {phrases.date(row['reserved_from'])} " if future else ""
    return f"{row['reserved_by']} {start}until {phrases.date(row['reserved_until'])}"

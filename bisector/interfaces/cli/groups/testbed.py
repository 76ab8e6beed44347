"""`perfbisect testbed`: what each testbed may be used for, by whom, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion, number_options

if TYPE_CHECKING:
    from bisector.model.leases import TestbedState

Name = Annotated[
    str,
    typer.Argument(metavar="TESTBED", help="A testbed of the lab.", autocompletion=completion.testbeds),
]
_HOUR_SECONDS = 3600.0
_MOST_HOURS = 24.0 * 365


def list_(lab: options.Lab = None, as_json: options.Json = False) -> None:
    """Show the testbeds with their state, who has reserved them, and which bisection measures there.

    Examples:

      perfbisect testbed list

      perfbisect testbed list --json
    """
    from bisector.app.execution.queue_state import read_queue

    wiring = options.make_wiring(lab=lab)
    users = {testbed: e.summary.id for e in read_queue(wiring).entries for testbed in e.measures_on}
    states = {s.name: s for s in wiring.coordinator.testbeds()} if wiring.has_store else {}
    reservations = wiring.coordinator.reservations() if wiring.has_store else ()
    rows, cells = [], []
    for spec in wiring.lab.testbeds:
        status = states.get(spec.name)
        reserved = next((r for r in reservations if r.testbed == spec.name), None)
        user = users.get(spec.name)
        rows.append(
            {
                "name": spec.name,
                "state": status.state if status else "good",
                "reason": status.reason if status else "",
                "by": status.by if status else "",
                "since": status.since if status else None,
                "reserved_by": reserved.who if reserved else None,
                "reserved_until": reserved.end if reserved else None,
                "used_by": user,
                "worker": spec.variables.worker,
            }
        )
        until = f"{reserved.who} until {_time(reserved.end)}" if reserved else ""
        why = f"{status.reason} ({status.by}, {_time(status.since)})".strip() if status else ""
        cells.append((spec.name, status.state if status else "good", until, user or "", why))
    if as_json:
        output.print_json(rows)
        return
    header = ("NAME", "STATE", "RESERVED", "USED BY", "WHY")
    print(output.table(header, cells, wrapped=["WHY"], dropped=["USED BY"]))


def drain(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why, for those who wait for it.")] = "",
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Take a testbed out of use after its current boot, until 'testbed release'.

    Example:

      perfbisect testbed drain box --reason 'new memory'
    """
    _set(name, "maintenance", reason, lab, as_json=as_json)


def release(name: Name, lab: options.Lab = None, as_json: options.Json = False) -> None:
    """Let a testbed be used again, and end your reservations of it.

    Example:

      perfbisect testbed release box
    """
    _set(name, "good", "", lab, as_json=as_json)


def reserve(
    name: Name,
    hours: Annotated[
        float, number_options.real(0, _MOST_HOURS, "For so long, from now on.", above=True)
    ] = 8.0,
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Keep a testbed for yourself for a while; bisections leave it after their current boot.

    Example:

      perfbisect testbed reserve box --hours 2
    """
    wiring = options.make_wiring(lab=lab)
    spec = wiring.lab.testbed(name)
    coordinator = wiring.coordinator
    made = coordinator.reserve(spec.name, options.person(), coordinator.now() + hours * _HOUR_SECONDS)
    if as_json:
        output.print_json({"name": spec.name, "reserved_by": made.who, "reserved_until": made.end})
    else:
        output.print_note(f"{spec.name} is reserved by {made.who} until {_time(made.end)}")


def _set(name: str, state: TestbedState, reason: str, lab: Path | None, *, as_json: bool) -> None:
    wiring = options.make_wiring(lab=lab)
    spec = wiring.lab.testbed(name)
    wiring.coordinator.set_testbed(spec.name, state, reason, options.person())
    ended = wiring.coordinator.unreserve(spec.name, options.person()) if state == "good" else 0
    if as_json:
        output.print_json({"name": spec.name, "state": state, "reason": reason, "by": options.person()})
    else:
        more = "; your reservation has ended" if ended else ""
        output.print_note(f"{spec.name}: {state}{more}")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

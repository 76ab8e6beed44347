"""`perfbisect testbed`: what each testbed may be used for, by whom, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion, number_options

if TYPE_CHECKING:
    from bisector.model.leases import Reservation, TestbedState

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
    now = wiring.coordinator.now() if reservations else 0.0
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
                "reserved_from": reserved.start if reserved else None,
                "reserved_until": reserved.end if reserved else None,
                "used_by": user,
                "worker": spec.variables.worker,
            }
        )
        until = "" if reserved is None else _reserved(reserved, future=reserved.start > now)
        why = f"{status.reason} ({status.by}, {_time(status.since)})".strip() if status else ""
        cells.append((spec.name, status.state if status else "good", until, user or "", why))
    if as_json:
        output.print_json(rows)
        return
    header = ("NAME", "STATE", "RESERVED", "USED BY", "WHY")
    print(output.table(header, cells, wrapped=["WHY", "RESERVED"], dropped=["USED BY"]))


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


def retire(
    name: Name,
    reason: Annotated[str, typer.Option(help="Why, for those who look for it.")] = "",
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
    wiring = options.make_wiring(lab=lab)
    spec = wiring.lab.testbed(name)
    coordinator = wiring.coordinator
    begin = coordinator.now() + wait * _HOUR_SECONDS
    end = begin + hours * _HOUR_SECONDS
    made = coordinator.reserve(spec.name, wiring.settings.owner, end, begin if wait else None)
    if as_json:
        row = {"reserved_by": made.who, "reserved_from": made.start, "reserved_until": made.end}
        output.print_json({"name": spec.name, **row})
    else:
        output.print_note(f"{spec.name} is reserved by {_reserved(made, future=wait > 0)}")


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

    wiring = options.make_wiring(lab=lab)
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
    wiring = options.make_wiring(lab=lab)
    spec = wiring.lab.testbed(name)
    coordinator, by = wiring.coordinator, wiring.settings.owner
    coordinator.set_testbed(spec.name, state, reason, by)
    ended = coordinator.unreserve(spec.name, by) if state == "good" else 0
    if as_json:
        output.print_json({"name": spec.name, "state": state, "reason": reason, "by": by})
        return
    more = "; your reservation has ended" if ended else ""
    now = coordinator.now()
    others = [r for r in coordinator.reservations() if r.testbed == spec.name and r.start <= now]
    if state == "good" and others:
        more += f"; still reserved by {_reserved(others[0], future=False)}"
    output.print_note(f"{spec.name}: {state}{more}")


def _reserved(one: Reservation, *, future: bool) -> str:
    """Return who has reserved a testbed, and for which time."""
    start = f"from {_time(one.start)} " if future else ""
    return f"{one.who} {start}until {_time(one.end)}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

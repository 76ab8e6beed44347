"""`perfbisect lab`: the machines that build and measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bisector import __version__
from bisector.app.output_file import require_writable, write_output_file
from bisector.errors import ExitCode, RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import ages, completion
from bisector.interfaces.cli.arguments.questions import is_answered
from bisector.report.phrases import duration

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.machines.lab_findings import MachineFindings


def list_(lab: options.Lab = None, as_json: options.Json = False) -> None:
    """List testbeds and builders.

    Examples:

      perfbisect lab list

      perfbisect lab list --lab my-lab.yml --json
    """
    wiring = options.make_wiring(lab=lab)
    found = wiring.lab
    rows: list[dict[str, Any]] = [
        {
            "name": t.name,
            "role": "testbed",
            "kind": t.variables.kind,
            "clock": t.variables.clock,
            "address": t.guest_host
            or (t.connection.address if t.variables.kind == "ssh" else "this machine"),
            "checked": _last_check(wiring, t.name),
        }
        for t in found.testbeds
    ] + [
        {
            "name": b.name,
            "role": "builder",
            "kind": "local" if b.connection.local else "ssh",
            "clock": "",
            "address": "this machine" if b.connection.local else b.connection.address,
            "checked": None,
        }
        for b in found.builders
    ]
    if as_json:
        output.print_json({"inventory": str(found.inventory), "machines": rows})
        return
    header = ["NAME", "ROLE", "KIND", "CLOCK", "ADDRESS"]
    cells = [[row[name.lower()] for name in header] for row in rows]
    if any(row["checked"] for row in rows):
        header.append("DEEP CHECK")
        cells = [[*cell, _words(row["checked"])] for cell, row in zip(cells, rows, strict=True)]
    print(output.table(header, cells, dropped=["CLOCK", "KIND"]))
    print(f"from {found.inventory}")


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Machines of the lab; all by default.", autocompletion=completion.machines
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also switch testbeds off and on, boot and measure them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --deep: do not ask before.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a checklist: what was tried, what not, evidence."),
    ] = None,
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Check that every machine of the lab is reached and has what a trial needs.

    Nothing is booted or changed, unless --deep asks for it: testbeds over SSH are then switched off and on,
    boot their own kernel there and back, and run pipe-test in five boots. Exit code 3 if something is wrong.
    What is doubtful works, and may hurt later.

    Examples:

      perfbisect lab check

      perfbisect lab check box1 --json

      perfbisect lab check --deep box1 --report box1.txt
    """
    from bisector.app.machines.check_machines import check_machines

    if yes and not deep:
        raise RequestError("--yes is for --deep", cure="leave it out, or add --deep")
    if report is not None:
        require_writable(report)
    wiring = options.make_wiring(lab=lab)
    started = wiring.clock.now()
    results: list[MachineFindings] = []
    try:
        looks = _deep(wiring, names, yes=yes) if deep else check_machines(wiring, output.print_note, names)
        for found in looks:
            results.append(found)  # what was found before an interrupt is reported, too
    finally:
        if report is not None and results:
            from bisector.report import lab_checklist

            write_output_file(report, lab_checklist.render(results, started, __version__))
    if as_json:
        output.print_json(machine_rows(results))
    else:
        print(machine_table(results))
    if not all(r.ok for r in results):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _deep(wiring: Wiring, names: Sequence[str] | None, *, yes: bool) -> Iterator[MachineFindings]:
    """Ask before machines are switched, then check one after the other."""
    from bisector.app.machines.deep_check import NOISE_BOOTS, deep_checks, require_usable

    specs = [wiring.lab.testbed(name) for name in names] if names else list(wiring.lab.testbeds)
    require_usable(wiring, [spec.name for spec in specs])
    switched = [spec for spec in specs if spec.variables.kind == "ssh"]
    if switched and not yes:
        if not is_answered():
            raise RequestError(
                "--deep switches machines off and on, and there is no terminal to ask first",
                cure="add --yes where that may be",
            )
        longest = sum(
            ((NOISE_BOOTS + 2) * 2 + len(spec.variables.power)) * spec.variables.boot_timeout
            for spec in switched
        )
        output.print_note(
            f"{', '.join(spec.name for spec in switched)}: switched off and on, then booted "
            f"{NOISE_BOOTS} times and measured, one machine after the other; at most "
            f"{duration(longest)}, mostly far less"
        )
        if not typer.confirm("Go on?", err=True):
            raise RequestError("nothing was done", cure="'perfbisect lab check' changes nothing")
    return deep_checks(wiring, [spec.name for spec in specs], output.print_note)


def _last_check(wiring: Wiring, testbed: str) -> dict[str, Any] | None:
    from bisector.app.machines.kept_checks import last_check
    from bisector.model.machines.lab_findings import worst

    kept = last_check(wiring, testbed)
    if kept is None:
        return None
    first = kept.machine.first_wrong()
    return {
        "at": kept.at,
        "result": worst(kept.machine.findings),
        "wrong": f"{first.check}: {first.found}" if first is not None else "",
        "noise": next((one.found for one in kept.machine.findings if one.check == "noise"), ""),
    }


def _words(checked: dict[str, Any] | None) -> str:
    if checked is None:
        return ""
    return f"{checked['result']} on {ages.day(checked['at'])}" + (
        f": {checked['wrong']}" if checked["wrong"] else ""
    )


def power(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A testbed.", autocompletion=completion.testbeds)
    ],
    action: Annotated[
        Literal["on", "off", "cycle", "status"],
        typer.Argument(metavar="ACTION", help="on, off, cycle or status."),
    ],
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Switch a testbed on or off by its BMC or power strip, or ask for its state.

    It is switched at once, without a shutdown, after the bisection that uses it has ended; Ctrl-C ends the
    waiting. The stages of perfbisect_power are tried in turn.

    Examples:

      perfbisect lab power box1 status

      perfbisect lab power box1 cycle
    """
    from bisector.app.machines.switch_power import switch_power

    done = switch_power(options.make_wiring(lab=lab), name, action, output.print_note)
    if as_json:
        output.print_json({"name": name, "power": done.state, "stage": done.stage})
    else:
        by = f"; stage {done.stage} of its perfbisect_power switched it" if done.stage else ""
        print(f"{_power_message(name, action, done.state)}{by}")


def _power_message(name: str, action: str, state: str) -> str:
    """Say what was done and what is known of the machine's power now."""
    if action == "status" or state != "unknown":
        return f"{name} is {state}"
    done = {"on": "was switched on", "off": "was switched off", "cycle": "was switched off and on"}[action]
    return f"{name} {done}; nothing in its perfbisect_power tells whether it is on"


def machine_rows(machines: Sequence[MachineFindings]) -> list[dict[str, Any]]:
    """Return what was found on machines, for JSON."""
    return [
        {
            "name": machine.name,
            "ok": machine.ok,
            "wrong": wrong.found if (wrong := machine.first_wrong()) is not None else "",
            "seconds": machine.seconds,
            "checks": [dataclasses.asdict(one) for one in machine.findings],
        }
        for machine in machines
    ]


def machine_table(machines: Sequence[MachineFindings]) -> str:
    """Return what was found on machines, a check a row, with what mends it."""
    rows = []
    for machine in machines:
        for at, one in enumerate(machine.findings):
            words = one.found + (f"; cure: {one.cure}" if one.cure else "")
            rows.append((machine.name if at == 0 else "", one.check, one.result, words))
    lines = [output.table(("MACHINE", "CHECK", "RESULT", "FOUND"), rows, wrapped=["FOUND"])]
    for machine in machines:
        for one in machine.findings:
            if one.details and one.result != "ok":
                lines.append(f"\n{machine.name}, {one.check}:")
                lines += [f"  {line}" for line in one.details.rstrip().splitlines()]
    return "\n".join(lines)

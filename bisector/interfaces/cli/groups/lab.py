"""`perfbisect lab`: the machines that build and measure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion

if TYPE_CHECKING:
    from bisector.model.machines.lab_findings import MachineFindings


def list_(lab: options.Lab = None, as_json: options.Json = False) -> None:
    """List testbeds and builders.

    Examples:

      perfbisect lab list

      perfbisect lab list --lab my-lab.yml --json
    """
    found = options.make_wiring(lab=lab).lab
    rows = [
        {
            "name": t.name,
            "role": "testbed",
            "kind": t.variables.kind,
            "clock": t.variables.clock,
            "address": "this machine" if t.variables.kind != "ssh" else t.connection.address,
        }
        for t in found.testbeds
    ] + [
        {
            "name": b.name,
            "role": "builder",
            "kind": "local" if b.connection.local else "ssh",
            "clock": "",
            "address": "this machine" if b.connection.local else b.connection.address,
        }
        for b in found.builders
    ]
    if as_json:
        output.print_json({"inventory": str(found.inventory), "machines": rows})
        return
    header = ("NAME", "ROLE", "KIND", "CLOCK", "ADDRESS")
    print(
        output.table(
            header, [tuple(row[name.lower()] for name in header) for row in rows], dropped=["CLOCK", "KIND"]
        )
    )
    print(f"from {found.inventory}")


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Machines of the lab; all by default.", autocompletion=completion.testbeds
        ),
    ] = None,
    lab: options.Lab = None,
    as_json: options.Json = False,
) -> None:
    """Check that every machine of the lab is reached and has what a trial needs; boots and changes nothing.

    Exit code 3 if something is wrong. What is doubtful works, and may hurt later.

    Examples:

      perfbisect lab check

      perfbisect lab check box1 --json
    """
    from bisector.app.machines.check_machines import check_machines

    results = check_machines(options.make_wiring(lab=lab), output.print_note, names)
    if as_json:
        output.print_json(machine_rows(results))
    else:
        print(machine_table(results))
    if not all(r.ok for r in results):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


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

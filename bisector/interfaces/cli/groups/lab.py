"""`perfbisect lab`: the machines that build and measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import options, output
from bisector.report.phrases import duration

if TYPE_CHECKING:
    from bisector.app.doctor import MachineAnswer


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


def check(lab: options.Lab = None, as_json: options.Json = False) -> None:
    """Check that every machine of the lab answers; boots and changes nothing.

    Example:

      perfbisect lab check
    """
    from bisector.app.doctor import check_lab

    results = check_lab(options.make_wiring(lab=lab))
    if as_json:
        output.print_json(machine_rows(results))
    else:
        print("\n".join(machine_lines(results)))
    if not all(r.ok for r in results):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def machine_rows(answers: Sequence[MachineAnswer]) -> list[dict[str, Any]]:
    """Return what machines answered, for JSON."""
    return [{"name": a.name, "ok": a.ok, "wrong": a.wrong, "seconds": a.seconds} for a in answers]


def machine_lines(answers: Sequence[MachineAnswer]) -> Iterator[str]:
    """Yield what machines answered, with what mends it."""
    for answer in answers:
        said = output.good("answers") if answer.ok else output.bad(answer.wrong)
        yield f"{answer.name}: {said} ({duration(answer.seconds)})"
        yield from (f"  {line}" for line in answer.details.splitlines())

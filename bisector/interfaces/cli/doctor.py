"""`perfbisect doctor`: what this machine lacks, and the commands that install it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bisector.errors import ExitCode, PerfbisectError
from bisector.interfaces.cli import options, output

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring


def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Start libvirt and build the guest image if they are missing.")
    ] = False,
    probe: Annotated[bool, typer.Option("--probe", help="Boot again to see whether KVM works.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only what is wrong.")] = False,
    as_json: options.Json = False,
) -> None:
    """Check what building, booting and measuring need, and print how to install what is missing.

    A guest is booted once to see whether KVM works; the answer is stored. Exit code 3 if anything is
    missing.

    Examples:

      perfbisect doctor

      perfbisect doctor --fix

      perfbisect doctor --json
    """
    from bisector.app.doctor import check_host

    wiring = options.make_wiring()
    if fix:
        _fix(wiring)
    checks = check_host(wiring, output.print_note, probe=probe)
    bad = [check for check in checks if not check.ok]
    if as_json:
        output.print_json(
            [
                {
                    "name": c.name,
                    "ok": c.ok,
                    "found": c.found,
                    "wrong": c.wrong,
                    "cure": c.cure,
                    "needed_for": c.needed,
                    "optional": c.optional,
                }
                for c in checks
            ]
        )
    else:
        width = max(len(c.name) for c in checks)
        for check in checks:
            if check.ok and not quiet:
                print(f"{output.good('ok     ')} {check.name.ljust(width)}  {check.found}".rstrip())
            elif not check.ok:
                mark = output.doubtful("note   ") if check.optional else output.bad("missing")
                print(f"{mark} {check.name.ljust(width)}  {check.wrong} (needed for {check.needed})")
                for line in check.cure.splitlines():
                    print(f"        {line}")
        needed = [c for c in bad if not c.optional]
        if needed:
            print(f"\n{len(needed)} of {len(checks)} are missing.")
        elif not quiet:
            print("\nEverything is there.")
    if any(not c.optional for c in bad):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _fix(wiring: Wiring) -> None:
    """Do what needs no package to be installed. The checks that follow report what still fails."""
    from bisector.app.doctor import prepare_guests

    try:
        prepare_guests(wiring, output.print_note)
    except PerfbisectError as error:
        output.print_error(error.message, error.details, error.cure)

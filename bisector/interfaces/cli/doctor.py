"""`perfbisect doctor`: what this machine lacks, and the commands that install it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import ExitCode, PerfbisectError
from bisector.interfaces.cli import options, output
from bisector.model.format import size

if TYPE_CHECKING:
    from bisector.app.doctor import DiskUse
    from bisector.app.wiring import Wiring


def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Install what is missing (with sudo, or as root), start libvirt, and build the guest image.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --fix: print the commands that install packages, run none."),
    ] = False,
    probe: Annotated[bool, typer.Option("--probe", help="Boot again to see whether KVM works.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only what is wrong.")] = False,
    as_json: options.Json = False,
) -> None:
    """Check what building, booting and measuring need, and print how to install what is missing.

    A guest is booted once to see whether KVM works; the answer is stored. Exit code 3 if anything is
    missing. At the end stands what perfbisect's files take on the disk, and what 'prune' would free.

    Examples:

      perfbisect doctor

      perfbisect doctor --fix --dry-run

      perfbisect doctor --fix

      perfbisect doctor --json
    """
    from bisector.app.doctor import check_host, disk_use, unusable_records

    wiring = options.make_wiring()
    fixed = _fix(wiring, dry_run=dry_run) if fix else True
    checks = [*check_host(wiring, output.print_note, probe=probe)]
    disk: list[DiskUse] = []
    try:
        disk = disk_use(wiring)
    except (PerfbisectError, OSError) as error:
        checks.append(unusable_records(error))
    bad = [check for check in checks if not check.ok]
    if as_json:
        output.print_json([*map(check_row, checks), *map(_disk_row, disk)])
    else:
        print_checks(checks, quiet=quiet)
        if disk and not quiet:
            rows = [(d.name, size(d.bytes), size(d.prunable), str(d.path)) for d in disk]
            header = ("DISK USE", "SIZE", "'PRUNE' FREES", "WHERE")
            print("\n" + output.table(header, rows, dropped=["WHERE"]))
        needed = [c for c in bad if not c.optional]
        if needed:
            print(
                f"\n{len(needed)} of {len(checks)} are missing. 'perfbisect doctor --fix' installs packages."
            )
        elif not fixed:
            print("\nNothing is missing, but not all could be prepared: the error above says what.")
        elif not quiet:
            print("\nEverything is there.")
    if not fixed or any(not c.optional for c in bad):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def print_checks(checks: Sequence[Any], *, quiet: bool = False) -> None:
    """Print a line for each check, and the cure of what is wrong. quiet: only what is wrong."""
    width = max(len(c.name) for c in checks)
    for check in checks:
        if check.ok and not quiet:
            print(output.good("ok      ") + _line(check.name.ljust(width), check.found))
        elif not check.ok:
            mark = output.doubtful("note    ") if check.optional else output.bad("missing ")
            print(mark + _line(check.name.ljust(width), f"{check.wrong} (needed for {check.needed})"))
            for line in check.cure.splitlines():
                print(f"        {line}")


def _line(name: str, text: str) -> str:
    """Return a name and a text, wrapped, without the eight columns before the name."""
    return output.pairs({name: text}, " " * 8)[8:]


def _fix(wiring: Wiring, *, dry_run: bool) -> bool:
    """Make this machine ready, or say how. Returns whether all went well; the checks say what still fails."""
    from bisector.app import doctor as ready

    def install() -> None:
        ready.install_packages(output.print_note)

    def prepare() -> None:
        ready.prepare_guests(wiring, output.print_note)

    def say() -> None:
        for command in ready.missing_packages():
            output.print_note(f"would run: {command}")

    if dry_run:
        return _printing_errors(say)
    installed = _printing_errors(install)
    return _printing_errors(prepare) and installed


def _printing_errors(step: Callable[[], None]) -> bool:
    """Print an error and go on. Returns whether there was none."""
    try:
        step()
    except PerfbisectError as error:
        output.print_error(error.message, error.details, error.cure)
        return False
    return True


def check_row(check: Any) -> dict[str, Any]:  # noqa: ANN401 - an adapter's, which interfaces never import
    """Return a check for JSON."""
    return {
        "name": check.name,
        "ok": check.ok,
        "found": check.found,
        "wrong": check.wrong,
        "cure": check.cure,
        "needed_for": check.needed,
        "optional": check.optional,
    }


def _disk_row(use: DiskUse) -> dict[str, Any]:
    """Return a row with the keys of a check, and its own."""
    return {
        "name": f"disk use: {use.name}",
        "ok": True,
        "found": f"{size(use.bytes)} in {use.path}",
        "wrong": "",
        "cure": "",
        "needed_for": "",
        "optional": True,
        "bytes": use.bytes,
        "prunable_bytes": use.prunable,
    }

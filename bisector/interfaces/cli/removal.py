"""Commands that free disk space: rm, prune."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import ages, completion
from bisector.model.format import count, size

if TYPE_CHECKING:
    from bisector.app.upkeep.retention import Removable
    from bisector.app.wiring import Wiring

_MAX_PRINTED = 20
"""Lines of what is removed; --json has all of them."""

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. Needed where there is no terminal.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be removed; change nothing.")]


def rm(
    identities: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="Ids of bisections, or their beginnings.",
            autocompletion=completion.bisections,
        ),
    ],
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Remove bisections that have ended: records, raw output, consoles and reports.

    One that can still be resumed is refused; 'perfbisect cancel' ends it for good. Kernels and guest images
    belong to no bisection alone: 'perfbisect prune' and 'kernel gc' remove those.

    Examples:

      perfbisect rm pipe-test-3f2a

      perfbisect rm pipe-test-3f2a db-aio-77 --yes
    """
    from bisector.app.upkeep import retention

    wiring = options.make_wiring()
    _remove(wiring, retention.to_remove(wiring, identities), yes=yes, dry_run=dry_run, as_json=as_json)


def prune(
    keep: Annotated[
        str,
        typer.Option(metavar="AGE", help="Remove what has not been used for so long: '90d', '12w'; from 1d."),
    ] = "90d",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Remove what nobody has used for long: ended bisections with their files, kernels, images, logs.

    What a bisection that runs or can be resumed needs is never removed, however old it is. Calibrations and
    the compiler cache stay; 'perfbisect doctor' says what takes how much.

    Examples:

      perfbisect prune --dry-run

      perfbisect prune --keep 30d --yes
    """
    from bisector.app.upkeep import retention

    wiring = options.make_wiring()
    found = retention.find_removable(wiring, ages.days(keep, "--keep"))
    _remove(wiring, found, yes=yes, dry_run=dry_run, as_json=as_json)


def _remove(wiring: Wiring, items: Sequence[Removable], *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Show what is to be removed, ask, and remove it."""
    from bisector.app.upkeep import retention

    removed: list[Removable] = []
    given_back = 0
    if not as_json:
        _show(items)
    if items and not dry_run:
        if not yes:
            _ask(items)
        try:
            removed = [item for item in items if retention.remove_one(wiring, item)]
        finally:
            given_back = wiring.store.give_back() if wiring.has_store else 0
    freed = sum(item.bytes for item in removed) + given_back
    if as_json:
        gone = frozenset(removed)
        found = [_row(item, item in gone) for item in items]
        output.print_json({"dry_run": dry_run, "items": found, "freed_bytes": freed})
    elif items and dry_run:
        print(f"at least {size(sum(item.bytes for item in items))} would be freed")
    elif items:
        print(f"freed {size(freed)}")


def _show(items: Sequence[Removable]) -> None:
    if not items:
        print("Nothing to remove.")
        return
    rows = [(item.kind, item.name, ages.day(item.used), size(item.bytes)) for item in items[:_MAX_PRINTED]]
    print(output.table(("KIND", "NAME", "LAST USED", "SIZE"), rows, dropped=["LAST USED"]))
    if len(items) > _MAX_PRINTED:
        print(f"and {len(items) - _MAX_PRINTED:,} more; --json lists all")


def _ask(items: Sequence[Removable]) -> None:
    """Go on if a person agrees. Raises RequestError where there is nobody to ask, Abort if not."""
    if not sys.stdin.isatty():
        raise RequestError("nothing was removed: nobody can be asked here", cure="say --yes, or --dry-run")
    print(f"Remove {count(len(items), 'item')}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RequestError("nothing was removed", cure="answer y, or say --yes")


def _row(item: Removable, removed: bool) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "name": item.name,
        "bytes": item.bytes,
        "last_used": ages.day(item.used),
        "path": str(item.path),
        "removed": removed,
    }

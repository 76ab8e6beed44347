"""Commands that free disk space: rm, prune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import ages, completion
from bisector.interfaces.cli.arguments.questions import Yes, require_agreement
from bisector.model.format import count, size

Item = dict[str, Any]
"""JSON values of something that may be removed."""
_MAX_PRINTED = 20
"""Lines of what is removed; --json has all of them."""

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
    operations = ask.operations()
    found = operations.remove(identities, dry_run=True)["items"]
    names = [item["name"] for item in found]
    _remove(found, lambda: operations.remove(names, dry_run=False), yes=yes, dry_run=dry_run, as_json=as_json)


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
    _remove(
        retention.values(found),
        lambda: retention.remove_all(wiring, found),
        yes=yes,
        dry_run=dry_run,
        as_json=as_json,
    )


def _remove(
    found: Sequence[Item], remove: Callable[[], Item], *, yes: bool, dry_run: bool, as_json: bool
) -> None:
    """Show what is to be removed, ask, and remove it."""
    made: Item = {"items": found, "freed_bytes": 0}
    if not as_json:
        _show(found)
    if found and not dry_run:
        if not yes:
            require_agreement(f"Remove {count(len(found), 'item')}?", "nothing was removed")
        made = remove()
    if as_json:
        items = [_row(item) for item in made["items"]]
        output.print_json({"dry_run": dry_run, "items": items, "freed_bytes": made["freed_bytes"]})
    elif found and dry_run:
        print(f"at least {size(sum(item['bytes'] for item in found))} would be freed")
    elif found:
        print(f"freed {size(made['freed_bytes'])}")


def _show(items: Sequence[Item]) -> None:
    if not items:
        print("Nothing to remove.")
        return
    rows = [
        (item["kind"], item["name"], ages.day(item["used"]), size(item["bytes"]))
        for item in items[:_MAX_PRINTED]
    ]
    print(output.table(("KIND", "NAME", "LAST USED", "SIZE"), rows, dropped=["LAST USED"]))
    if len(items) > _MAX_PRINTED:
        print(f"and {len(items) - _MAX_PRINTED:,} more; --json lists all")


def _row(item: Item) -> Item:
    """Return an item as --json prints it."""
    return {
        "kind": item["kind"],
        "name": item["name"],
        "bytes": item["bytes"],
        "last_used": ages.day(item["used"]),
        "path": item["path"],
        "removed": item["removed"],
    }

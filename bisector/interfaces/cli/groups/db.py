"""`perfbisect db`: the database of bisections."""

from __future__ import annotations

from typing import Annotated

import typer

from bisector.errors import ExitCode
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import ages
from bisector.interfaces.cli.arguments.questions import Yes, require_agreement
from bisector.model.format import count, size

_MAX_PRINTED = 20
"""Problems that are printed; --json has all of them."""

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")]


def upgrade(yes: Yes = False, dry_run: DryRun = False, as_json: options.Json = False) -> None:
    """Make the tables in a new database, or bring those of an earlier version to this one.

    A file in the state folder is upgraded by any command; a PostgreSQL database by this one only, since older
    programs cannot use it afterwards. Stop the workers and make a backup first. All happens, or nothing.

    Examples:

      perfbisect db upgrade --dry-run

      perfbisect db upgrade --yes
    """
    from bisector.app.upkeep import database_care

    wiring = options.make_wiring()
    name, version, newest = database_care.versions(wiring)
    needed = version < newest
    if not as_json:
        was = f"version {version}" if version else "without tables"
        print(f"{name}: {was}; {'to be brought to' if needed else 'this program uses'} version {newest}")
    if needed and not dry_run:
        if not yes:
            require_agreement("Upgrade it?", "nothing was changed")
        database_care.upgrade(wiring)
    if as_json:
        done = newest if needed and not dry_run else version
        output.print_json({"database": name, "before": version, "version": done, "newest": newest})
    elif needed and not dry_run:
        print("upgraded" if version else "the tables are made")


def check(as_json: options.Json = False) -> None:
    """Check the database: its version, numbers without gaps, graphs, requests and events that can be read.

    Exit code 3 if something is wrong.

    Example:

      perfbisect db check
    """
    from bisector.app.upkeep import database_care

    found = database_care.check(options.make_wiring())
    if as_json:
        output.print_json(
            {
                "database": found.name,
                "version": found.version,
                "newest": found.newest,
                "bisections": found.bisections,
                "events": found.events,
                "problems": list(found.problems),
            }
        )
    else:
        told = ""
        if found.bisections is not None and found.events is not None:
            told = f", {count(found.bisections, 'bisection')}, {count(found.events, 'event')}"
        print(f"{found.name}: version {found.version}{told}")
        for problem in found.problems[:_MAX_PRINTED]:
            print(output.bad(problem))
        if len(found.problems) > _MAX_PRINTED:
            print(f"and {len(found.problems) - _MAX_PRINTED:,} more; --json lists all")
        if not found.problems:
            print(output.good("nothing is wrong"))
    if found.problems:
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def move(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="postgresql://USER@HOST/NAME, or the path of a SQLite file."),
    ],
    yes: Yes = False,
    as_json: options.Json = False,
) -> None:
    """Copy all bisections to another database, from SQLite to PostgreSQL or back, and compare what arrived.

    TARGET has no bisections yet. The old database stays as it is; 'database' in perfbisect.toml says which is
    used. Raw output and reports stay in the state folder. Others of this machine would see a password in
    TARGET: leave it to PGPASSWORD or ~/.pgpass.

    Examples:

      perfbisect db move postgresql://perfbisect@db.example/perfbisect

      perfbisect db move ./perfbisect.sqlite --yes
    """
    from bisector.app.upkeep import database_care

    wiring = options.make_wiring()
    to = database_care.target_of(target)
    if not yes:
        require_agreement(f"Copy {wiring.database.name} to {to}?", "nothing was changed")
    rows = database_care.move(wiring, to)
    if as_json:
        output.print_json({"from": wiring.database.name, "to": str(to), "rows": rows})
        return
    print(output.table(("TABLE", "ROWS"), [(name, f"{number:,}") for name, number in rows.items()]))
    server = "://" in str(to)
    how = f'database = "{to}" in perfbisect.toml' if server else "its folder as state_dir, and no 'database'"
    print(f"copied and compared; to use it: {how}")


def prune(
    keep: Annotated[
        str, typer.Option(metavar="AGE", help="Remove what ended so long ago: '30d', '12w'; from 1d.")
    ] = "30d",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Remove rows that nothing needs: dead executors, leases, past reservations, old changes and messages.

    Who changed what at the web interface is kept for a year at least, also with a shorter --keep. Messages of
    events, ended bisections and weeks are kept for 60 days at least, those about culprits for good.

    No bisection is touched: 'perfbisect prune' and 'perfbisect rm' remove those.

    Examples:

      perfbisect db prune --dry-run

      perfbisect db prune --keep 7d --yes
    """
    from bisector.app.upkeep import database_care

    wiring = options.make_wiring()
    days = ages.days(keep, "--keep")
    found = database_care.find_garbage(wiring, days)
    rows = {
        "executors": found.executors,
        "leases": found.leases,
        "reservations": found.reservations,
        "changes": found.changes,
        "messages": found.messages,
    }
    if not as_json:
        print(", ".join(count(number, name.rstrip("s")) for name, number in rows.items()))
    freed = 0
    if any(rows.values()) and not dry_run:
        if not yes:
            require_agreement("Remove them?", "nothing was changed")
        freed = database_care.remove_garbage(wiring, days)
        if not as_json:
            print(f"removed; {size(freed)} given back to the file system")
    if as_json:
        output.print_json({"dry_run": dry_run, **rows, "freed_bytes": freed})

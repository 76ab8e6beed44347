"""Commands that change a bisection: mark, discard, cancel."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output

Verdict = Literal["good", "bad", "skip"]
Note = Annotated[str, typer.Option(help="Why; kept and shown in the report.")]
Needed = Annotated[str, typer.Argument(metavar="ID", help="The bisection's id, or its beginning.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(mark)
    app.command()(discard)
    app.command()(cancel)


def mark(
    identity: Needed,
    rev: Annotated[str, typer.Argument(metavar="REV", help="A commit of the range.")],
    verdict: Annotated[Verdict, typer.Argument(metavar="VERDICT", help="What it is.")],
    note: Note = "",
) -> None:
    """Say what a commit is, whatever was measured; the search goes on from there.

    Examples:

      perfbisect mark 3f2a rt-10 bad

      perfbisect mark 3f2a rt-11 skip --note 'breaks the network'
    """
    from bisector.app import bisections
    from bisector.interfaces.cli import load_report, services
    from bisector.schemas.request import Accepted

    settings = options.settings()
    stored = load_report.find_bisection(settings, identity)
    repo = Accepted.model_validate_json(stored.request).request.repo
    sha = services.source(settings, repo).resolve(rev)
    bisections.mark(services.store(settings), stored, sha, verdict, note)
    output.print_note(f"{stored.id}: {rev} is {verdict}")


def discard(
    identity: Needed,
    boot: Annotated[str | None, typer.Option(help="Throw away this boot's samples.")] = None,
    testbed: Annotated[str | None, typer.Option(help="Throw away all that this testbed measured.")] = None,
    note: Note = "",
) -> None:
    """Throw away what a boot or a testbed measured; it stays in the report, and counts no more.

    Examples:

      perfbisect discard 3f2a --boot b12 --note 'a backup ran'

      perfbisect discard 3f2a --testbed guest
    """
    if (boot is None) == (testbed is None):
        raise RequestError(
            "give either --boot or --testbed: whose samples are discarded",
            cure="'perfbisect show' names every boot",
        )
    from bisector.app import bisections
    from bisector.interfaces.cli import load_report, services

    settings = options.settings()
    stored = load_report.find_bisection(settings, identity)
    kind: Literal["boot", "testbed"] = "boot" if boot is not None else "testbed"
    name = str(boot or testbed)
    bisections.discard(services.store(settings), stored, kind, name, note)
    output.print_note(f"{stored.id}: the data of {kind} {name} no longer count")


def cancel(identity: options.Id = None) -> None:
    """End a bisection for good, without a conclusion; what was measured stays and can be reported.

    A process that runs it notices and cleans up. To go on later, interrupt it instead (Ctrl-C).

    Example:

      perfbisect cancel
    """
    from bisector.app import bisections
    from bisector.interfaces.cli import load_report, services

    settings = options.settings()
    stored = load_report.find_bisection(settings, identity)
    bisections.cancel(services.store(settings), stored)
    output.print_note(f"{stored.id} is cancelled; 'perfbisect report {stored.id}' shows how far it came")

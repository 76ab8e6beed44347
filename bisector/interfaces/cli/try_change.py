"""`perfbisect try`: does this patch, or this commit, mend what a bisection has found?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import ask, options
from bisector.interfaces.cli.arguments import completion

if TYPE_CHECKING:
    from bisector.app.operations.remote_operations import RemoteOperations


def try_(
    identity: options.Id = None,
    apply: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A patch to try on the culprit, or on --rev; repeatable."),
    ] = None,
    rev: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="A commit to try; with --apply the commit that the patch is for.",
            autocompletion=completion.commits,
        ),
    ] = None,
    max_hours: options.MaxHours = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be measured; write only into the cache.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure whether a patch or a commit mends the culprit of a bisection.

    The culprit's parent, the culprit and the patched culprit are built, booted and measured in turn, with the
    threshold and the test of the bisection. The result is kept like a bisection: the same command goes on
    where it stopped, and report, show and list know it. Of several culprits the one with the largest effect
    is meant. With --apply and --rev together, that commit takes the culprit's place. A server takes --rev
    alone.

    Exit codes: 0 mended, 1 wrong request, 2 the loss is not there, 3 infrastructure, 5 inconclusive,
    6 partly mended, 7 not mended, 130 interrupted.

    Examples:

      perfbisect try --apply fix.patch

      perfbisect try pipe-test-3f2a --rev v6.3

      perfbisect try pipe-test-3f2a --apply fix.patch --rev v6.2 --dry-run
    """
    from bisector.app.attempts.accept_attempt import accept_attempt
    from bisector.app.find_culprit import try_change
    from bisector.app.operations.plan_values import attempt_plan
    from bisector.interfaces.cli.plan import print_plan
    from bisector.interfaces.cli.start import Watcher, exit_as_concluded, shows_result

    if not apply and rev is None:
        raise RequestError(
            "there is nothing to try", cure="name a patch with --apply, or a commit with --rev"
        )
    wiring = options.make_wiring(remote=True)
    if wiring.settings.server is not None:
        _try_at_server(ask.server(wiring.settings), identity, apply, rev, max_hours, dry_run, as_json=as_json)
        return
    accepted, graph = accept_attempt(wiring, identity, options.patches(apply), rev, max_hours=max_hours)
    if dry_run:
        print_plan(attempt_plan(wiring, accepted, graph), as_json=as_json)
        return
    watcher = Watcher(shows_result(wiring, as_json=as_json))
    exit_as_concluded(try_change(wiring, accepted, graph, watcher))


def _try_at_server(
    server: RemoteOperations,
    identity: str | None,
    apply: list[Path] | None,
    rev: str | None,
    max_hours: float | None,
    dry_run: bool,
    *,
    as_json: bool,
) -> None:
    from bisector.interfaces.cli.plan import print_plan
    from bisector.interfaces.cli.start import watch_queued

    if apply or rev is None:
        raise RequestError(
            "--apply cannot be asked of a server: a patch is code that its lab would build and boot",
            cure="try a commit of its repository with --rev, or give the command on the server's machine",
        )
    made = server.try_commit(identity, rev, max_hours, dry_run=dry_run)
    if dry_run:
        print_plan(made, as_json=as_json)
    else:
        watch_queued(server, made, as_json=as_json)

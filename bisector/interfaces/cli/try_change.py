"""`perfbisect try`: does this patch, or this commit, mend what a bisection has found?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import RequestError
from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.commit_graph import CommitGraph
    from bisector.schemas.request import Accepted, Attempt


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
        bool, typer.Option("--dry-run", help="Say what would be measured; change nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure whether a patch or a commit mends the culprit of a bisection.

    The culprit's parent, the culprit and the patched culprit are built, booted and measured in turn, with the
    threshold and the test of the bisection. The result is kept like a bisection: the same command goes on
    where it stopped, and report, show and list know it. Of several culprits the one with the largest effect
    is meant. With --apply and --rev together, that commit takes the culprit's place.

    Exit codes: 0 mended, 1 wrong request, 2 the loss is not there, 3 infrastructure, 5 inconclusive,
    6 partly mended, 7 not mended, 130 interrupted.

    Examples:

      perfbisect try --apply fix.patch

      perfbisect try pipe-test-3f2a --rev v6.3

      perfbisect try pipe-test-3f2a --apply fix.patch --rev v6.2 --dry-run
    """
    from bisector.app.attempts.accept_attempt import accept_attempt
    from bisector.app.find_culprit import try_change
    from bisector.interfaces.cli.start import Watcher, print_result

    if not apply and rev is None:
        raise RequestError(
            "there is nothing to try", cure="name a patch with --apply, or a commit with --rev"
        )
    wiring = options.make_wiring()
    accepted, graph = accept_attempt(wiring, identity, options.patches(apply), rev, max_hours=max_hours)
    if dry_run:
        _print_plan(wiring, accepted, graph, as_json=as_json)
        return
    print_result(wiring, try_change(wiring, accepted, graph, Watcher()), as_json=as_json)


def _print_plan(wiring: Wiring, accepted: Accepted, graph: CommitGraph, *, as_json: bool) -> None:
    attempt, goal = accepted.attempt, accepted.the_goal()
    assert attempt is not None, "it was accepted as one"
    known: dict[str, Any] = {
        "of": attempt.of,
        "parent": accepted.good,
        "culprit": attempt.culprit,
        "unpatched": attempt.unpatched,
        "patches": list(attempt.patches),
        "tried": None if attempt.patches else attempt.tried,
        "metric": goal.metric.name,
        "threshold": goal.metric.threshold.value,
        "testbeds": list(accepted.testbeds),
        "recipe": accepted.request.recipe,
    }
    if as_json:
        output.print_json(known)
    else:
        print(output.pairs(_as_rows(wiring, accepted, attempt, graph)))


def _as_rows(wiring: Wiring, accepted: Accepted, attempt: Attempt, graph: CommitGraph) -> dict[str, str]:
    from bisector.report import phrases

    shas = graph.shas[: 2 if attempt.patches else 3]
    infos = wiring.source_of(accepted.request).infos(shas)
    names = [f'{one.sha[:12]} ("{one.subject}")' for one in infos]
    if attempt.patches:
        names.append(attempt.tried_name())
    goal = accepted.the_goal()
    kinds = ("parent", "culprit" if attempt.unpatched == attempt.culprit else "unpatched", "tried")
    return {
        **dict(zip(kinds, names, strict=True)),
        "of": attempt.of,
        "measures": f"{goal.metric.name} of {accepted.workload}, on {', '.join(accepted.testbeds)} "
        f"(clock: {accepted.clock})",
        "threshold": phrases.threshold(goal),
        "recipe": accepted.request.recipe,
    }

"""`perfbisect series`: has a branch measured night by night; what it showed is in `series_views`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion, number_options, text_options
from bisector.interfaces.cli.groups.series_views import Name, due_words, hours_words
from bisector.model.format import count
from bisector.model.series import MAX_BOOTS, MAX_BUDGET_HOURS, OPEN_NIGHTS

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

_MOST_COMMITS = 1_000_000
"""Largest step between commits that are measured: about as many as all of Linux's history has."""


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the new series.")],
    branch: Annotated[
        str,
        typer.Option(
            help="'master'; with its remote, 'origin/master', where it is to be fetched; or the newest of "
            "some tags, 'v6.*'."
        ),
    ],
    cron: Annotated[
        str,
        typer.Option(help="When nights are due: '30 2 * * *' is 02:30 each day, '0 1 * * MON' each Monday."),
    ],
    budget: Annotated[
        float, number_options.real(0, MAX_BUDGET_HOURS, "Machine hours in seven days.", above=True)
    ],
    workload: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What is measured.", autocompletion=completion.workloads),
    ] = None,
    time_zone: Annotated[
        str,
        typer.Option(
            metavar="ZONE", help="Of --cron, such as Europe/Berlin.", autocompletion=completion.time_zones
        ),
    ] = "UTC",
    testbed: Annotated[
        str, completion.testbed_option("Where it is measured. [default: the first that fits]")
    ] = "",
    repo: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The kernel's git repository. [default: settings]")
    ] = None,
    reference: Annotated[
        str,
        completion.commit_option(
            "The commit that each night boots beside the tip. [default: the tip of now]"
        ),
    ] = "",
    boots: Annotated[int, number_options.whole(1, MAX_BOOTS, "Boots of the tip in a night.")] = 4,
    threshold: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Smallest change worth an alert. [default: the workload's]"),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How its kernels are built.", autocompletion=completion.recipes),
    ] = None,
    lab: options.Lab = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say when it would be measured; add nothing.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Have a branch measured regularly; what its level does becomes an alert, and is bisected.

    A night boots the newest commit several times, and the reference once. 'perfbisect worker' does it.

    Examples:

      perfbisect series add pipe --branch origin/master --workload pipe-test --cron '30 2 * * *' --budget 10

      perfbisect series add tags --branch 'v6.*' --workload fio --cron '0 1 * * MON' --budget 5 --dry-run
    """
    from bisector.app.operations.local_operations import LocalOperations
    from bisector.model.series import Series
    from bisector.schemas.series_request import remote_series

    wiring = options.make_wiring(lab=lab, repo=repo, remote=True)
    at_server = wiring.settings.server is not None
    if at_server:
        options.refuse_lab(lab)
    asked = Series(
        name=name,
        repo=str(wiring.repo.expanduser().absolute()),
        branch=branch,
        workload=options.workload_name(wiring.settings, workload),
        recipe=recipe or ("" if at_server else wiring.settings.recipe),
        testbed=testbed,
        cron=cron,
        time_zone=time_zone,
        budget=budget,
        boots=boots,
        reference=reference,
        threshold=threshold,
        created_by=wiring.settings.owner,
    )
    if at_server:
        named = remote_series(asked, "" if repo is None else str(repo), dry_run=dry_run)
        added = ask.server(wiring.settings).add_named_series(named)
    else:
        added = LocalOperations(wiring).add_series(asked, dry_run=dry_run)
    if as_json:
        output.print_json(added)
        return
    _print_added(added, dry_run=dry_run)
    if not dry_run:
        output.print_note(
            f"'perfbisect worker' measures the nights that are due; 'perfbisect series run {name}' one now"
        )


def _print_added(added: dict[str, Any], *, dry_run: bool) -> None:
    """Print what a series measures and when its next nights are due."""
    print(
        output.pairs(
            {
                "series": f"{added['name']}{', not added' if dry_run else ''}",
                "tip": f"{added['tip'][:12]} of {added['branch']}",
                "reference": added["reference"][:12],
                "measured": f"{added['workload']} on {added['testbed']}, {count(added['boots'], 'boot')}, "
                f"recipe {added['recipe']}",
                "budget": hours_words(added),
                "nights": "\n".join(due_words(when, added["time_zone"]) for when in added["times"]),
            }
        )
    )


def run(
    name: Name,
    detach: Annotated[
        bool, typer.Option("--detach", help="Queue it for whoever executes bisections here, and end.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure a night now, whatever the cron says.

    Without a database server this process builds, boots and measures, here and now, with what else is
    queued; --detach leaves that to a worker. With a database server a worker always does it.

    Examples:

      perfbisect series run pipe

      perfbisect series run pipe --detach
    """
    wiring = options.make_wiring(remote=True)
    operations = ask.operations_of(wiring)
    number = operations.run_night(name)["number"]
    text = f"night {number} of the series '{name}'"
    if detach or wiring.settings.database is not None or wiring.settings.server is not None:
        output.print_note(f"{text} is due now; 'perfbisect worker' measures it")
    else:
        output.print_note(
            f"{text}: this process measures it here and now, and builds first what is not built; "
            "Ctrl-C ends that, and nothing is lost"
        )
        stopped = _execute(wiring)
        state, became = _what_became(operations.series(name), number)
        goes_on = "this command or 'perfbisect worker --until-idle' goes on"
        if stopped and state in OPEN_NIGHTS:
            raise Interrupted(f"{text} is interrupted; nothing is lost", cure=goes_on)
        if state == "due":
            raise InfrastructureError(
                f"{text} could not begin", cure=f"mend what is told above; then {goes_on}"
            )
        if state in ("failed", "missed"):
            raise RequestError(f"{text}: {became}", cure=f"perfbisect series show {name}")
        output.print_note(f"{text}: {became}")
    if as_json:
        output.print_json(operations.series(name))


def _what_became(series: Mapping[str, Any], number: int) -> tuple[str, str]:
    """Return the state of a night; and in words, with its level and what it showed."""
    from bisector.report import phrases
    from bisector.report.row_words.night_words import night_words

    night = next(one for one in series["nights"] if one["number"] == number)
    level = (
        "" if night["level"] is None else f"{phrases.number(night['level'])} {series['unit'] or ''}".strip()
    )
    words = (night["state"], level, night_words(night, series["effect_unit"]))
    return night["state"], ", ".join(filter(None, words))


def _execute(wiring: Wiring) -> bool:
    """Execute what is queued, unless another process does already; return whether it was told to stop."""
    from bisector.app.find_culprit import serve
    from bisector.interfaces.cli.queue import print_event

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    serve(wiring, print_event, stop, until_idle=True)
    return stop.is_set()


def backfill(
    name: Name,
    since: Annotated[
        str | None, completion.commit_option("Commits after this one. [default: after the first measured]")
    ] = None,
    every: Annotated[int, number_options.whole(1, _MOST_COMMITS, "Only each so-many-th commit.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Measure older commits of the branch, oldest first, when no night is under way.

    The budget of the series holds; a worker goes on with them for as long as that takes.

    Examples:

      perfbisect series backfill pipe --since v6.1 --every 100

      perfbisect series backfill pipe --every 10
    """
    made = ask.operations().backfill(name, since, every)
    if as_json:
        output.print_json(made)
    elif not made:
        output.print_note("nothing is left to ask for: somebody else has just done so, or removed the series")
    else:
        what = f"{count(len(made), 'night')} of older commits, from {made[0]['commit'][:12]} on, oldest first"
        output.print_note(f"{what}; 'perfbisect worker' measures them")


def pause(name: Name, reason: text_options.Reason = "", as_json: options.Json = False) -> None:
    """Let a series rest; a night under way ends.

    Example:

      perfbisect series pause pipe --reason 'new memory'
    """
    _print_state(ask.operations().pause_series(name, reason)["state"], name, as_json=as_json)


def resume(name: Name, as_json: options.Json = False) -> None:
    """Let a series go on with its next night.

    Example:

      perfbisect series resume pipe
    """
    _print_state(ask.operations().resume_series(name)["state"], name, as_json=as_json)


def remove(name: Name, as_json: options.Json = False) -> None:
    """Forget a series with what it has measured; its bisections stay, those under way are cancelled.

    Example:

      perfbisect series remove pipe
    """
    made = ask.operations().remove_series(name)
    if as_json:
        output.print_json(made)
    else:
        cancelled = made["cancelled"]
        also = f"; {count(cancelled, 'bisection')} cancelled" if cancelled else ""
        output.print_note(f"the series '{name}' is removed{also}")


def _print_state(state: str, name: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"name": name, "state": state})
    else:
        output.print_note(f"the series '{name}' is {state}")

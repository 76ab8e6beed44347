"""Values that a shell's completion offers, looked up while it completes and at no other time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import typer

from bisector.errors import PerfbisectError

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring

Lookup = Callable[[typer.Context], Iterable[str]]
Complete = Callable[[typer.Context, str], list[str]]


def _completes(look_up: Lookup) -> Complete:
    """Return the function that Typer calls for the values that begin with what was typed."""

    @functools.wraps(look_up)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [value for value in look_up(ctx) if value.startswith(incomplete)]
        except (PerfbisectError, OSError):  # a shell that completes shows no errors
            return []

    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str}  # Typer chooses arguments by type
    del complete.__wrapped__
    return complete


def commit_option(text: str, *names: str) -> Any:  # noqa: ANN401 - what Typer takes
    """Return an option whose value is a commit. text: its help; names: unless it is that of the parameter."""
    return typer.Option(*names, metavar="REV", help=text, autocompletion=commits)


def commit_argument(text: str) -> Any:  # noqa: ANN401 - what Typer takes
    """Return an argument that is a commit. text: its help."""
    return typer.Argument(metavar="REV", help=text, autocompletion=commits)


def testbed_option(text: str) -> Any:  # noqa: ANN401 - what Typer takes
    """Return an option whose value is a testbed of the lab. text: its help."""
    return typer.Option(metavar="NAME", help=text, autocompletion=testbeds)


def bisections(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of searches, the latest first; those of nights where no search begins as was typed."""
    return _searches(ctx, incomplete) or _nights(ctx, incomplete)


@_completes
def _searches(ctx: typer.Context) -> Iterable[str]:
    return _ids(ctx, of_nights=False)


@_completes
def _nights(ctx: typer.Context) -> Iterable[str]:
    return _ids(ctx, of_nights=True)


def _ids(ctx: typer.Context, *, of_nights: bool) -> list[str]:
    from bisector.model.series import is_of_night

    wiring = _wiring(ctx)
    found = wiring.store.list() if wiring.has_store else []
    return [summary.id for summary in found if is_of_night(summary.id, summary.owner) == of_nights]


@_completes
def alerts(ctx: typer.Context) -> Iterable[str]:
    """Return the ids of alerts, the open ones, the latest first."""
    from bisector.app.alerts.alert_context import open_alerts
    from bisector.model.alerts import AlertFilter

    wiring = _wiring(ctx)
    return (
        [alert.id for alert in open_alerts(wiring).find(AlertFilter(open=True))] if wiring.has_store else []
    )


@_completes
def alert_states(_: typer.Context) -> Iterable[str]:
    """Return the states of alerts."""
    from bisector.model.alerts import STATES

    return STATES


@_completes
def series(ctx: typer.Context) -> Iterable[str]:
    """Return the names of series."""
    from bisector.app.series.series_store import series_store

    wiring = _wiring(ctx)
    return [one.name for one in series_store(wiring).all()] if wiring.has_store else []


@_completes
def messages(ctx: typer.Context) -> Iterable[str]:
    """Return the numbers of messages that somebody may decide about, the latest first."""
    from bisector.app.mail.delivery import outbox_of
    from bisector.model.outbox import STOPPABLE

    wiring = _wiring(ctx)
    return [str(e.number) for e in outbox_of(wiring).entries(STOPPABLE)] if wiring.has_store else []


@_completes
def approvable_messages(ctx: typer.Context) -> Iterable[str]:
    """Return the numbers of messages that somebody may approve, the latest first."""
    from bisector.app.mail.delivery import outbox_of
    from bisector.app.mail.outbox_view import approvable

    wiring = _wiring(ctx)
    return [str(e.number) for e in approvable(outbox_of(wiring))] if wiring.has_store else []


@_completes
def tokens(ctx: typer.Context) -> Iterable[str]:
    """Return the names of tokens that are not revoked."""
    from bisector.app.upkeep.tokens import access_of

    wiring = _wiring(ctx)
    found = access_of(wiring).tokens() if wiring.has_store else []
    return [token.name for token in found if token.revoked is None]


@_completes
def priorities(_: typer.Context) -> Iterable[str]:
    """Return the words for priorities."""
    from bisector.model.stored_bisection import PRIORITIES

    return PRIORITIES


@_completes
def time_zones(_: typer.Context) -> Iterable[str]:
    """Return the names of time zones."""
    import zoneinfo

    return sorted(zoneinfo.available_timezones())


@_completes
def workloads(ctx: typer.Context) -> Iterable[str]:
    """Return the names of workloads, those of --workloads where that is given."""
    from bisector.schemas.workload.workload import workload_names

    return workload_names(ctx.params.get("folder"))


@_completes
def metrics(ctx: typer.Context) -> Iterable[str]:
    """Return the metrics of the workload that was given or is set."""
    from bisector.schemas.workload.workload import load_workload

    name = ctx.params.get("workload") or _wiring(ctx).settings.workload
    return [metric.name for metric in load_workload(name).manifest.all_metrics()] if name else []


@_completes
def commits(ctx: typer.Context) -> Iterable[str]:
    """Return the tags and branches of the repository."""
    return _wiring(ctx).source().names()


@_completes
def testbeds(ctx: typer.Context) -> Iterable[str]:
    """Return the testbeds of the lab."""
    return [testbed.name for testbed in _wiring(ctx).lab.testbeds]


@_completes
def machines(ctx: typer.Context) -> Iterable[str]:
    """Return the testbeds and builders of the lab."""
    lab = _wiring(ctx).lab
    return [*(testbed.name for testbed in lab.testbeds), *(builder.name for builder in lab.builders)]


@_completes
def recipes(_: typer.Context) -> Iterable[str]:
    """Return the names of recipes."""
    from bisector.schemas.kernel.recipe import list_recipes

    return list_recipes()


@_completes
def monitors(_: typer.Context) -> Iterable[str]:
    """Return the names of monitors."""
    from bisector.schemas.workload.monitors import MONITOR_NAMES

    return MONITOR_NAMES


def ranges(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return ranges A..B whose last commit begins with what was typed; a commit before there is a range."""
    first, dots, last = incomplete.rpartition("..")
    return [f"{first}{dots}{name}" for name in commits(ctx, last)]


OF_FIELDS: dict[str, Complete] = {
    "good": commits,
    "bad": commits,
    "workload": workloads,
    "metric": metrics,
    "recipe": recipes,
    "testbeds": testbeds,
    "skip": ranges,
    "with_fix": commits,
    "monitors": monitors,
}
"""Field of a request -> what completes its option."""


def _wiring(ctx: typer.Context) -> Wiring:
    """Return the wiring of what was typed so far."""
    from bisector.app.wiring import Wiring
    from bisector.schemas.settings import load_settings

    given = {name: ctx.params.get(name) for name in ("lab", "repo")}
    return Wiring(load_settings(ctx.find_root().params.get("config"), given))

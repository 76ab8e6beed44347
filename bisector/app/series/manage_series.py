"""Changes of series by people: add, run now, measure older commits, pause, remove."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.alerts.alert_context import alert_context
from bisector.app.alerts.suspects import confirmation_lost
from bisector.app.series.accept_night import accepted_night
from bisector.app.series.night_times import check_times, times_after
from bisector.app.series.series_store import series_store
from bisector.engine.state_lock import find_holder
from bisector.errors import RequestError
from bisector.model.series import OPEN_NIGHTS, Night, Series
from bisector.model.stored_bisection import OPEN, TO_EXECUTE, Action

if TYPE_CHECKING:
    from bisector.adapters.git.branch_tips import BranchTips
    from bisector.app.wiring import Wiring
    from bisector.series_ports import SeriesStore

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
"""Of a series: part of the ids of its bisections, which are names of folders and parts of URLs."""
_SHOWN_TIMES = 3
"""Next nights that `add` shows: chosen, enough to see a mistake in the cron."""
MAX_BACKFILL = 500
"""Most nights that one command may ask for: at four boots a night 2,000 boots, weeks of a machine."""


@dataclass(frozen=True, slots=True)
class PlannedSeries:
    """A series that may be added. times: when its next nights are due; tip: of its branch now."""

    series: Series
    times: tuple[float, ...]
    tip: str


def plan_series(wiring: Wiring, asked: Series) -> PlannedSeries:
    """Return a series with everything resolved that was asked for; git may fetch, nothing else changes.

    asked: its reference may be a name of a commit, '' for the tip of now; its recipe may be 'auto'. Raises
    RequestError, InfrastructureError: it cannot be fetched.
    """
    if not _NAME.fullmatch(asked.name):
        raise RequestError(
            f"'{asked.name[:60]}' cannot be the name of a series",
            cure="use small letters, digits and '-', 40 at most, such as 'mainline-pipe'",
        )
    now = wiring.coordinator.now()
    check_times(asked.cron, asked.time_zone, now)
    source = wiring.source(asked.repo)
    tips = _tips(asked)
    tips.fetch()
    tip = tips.tip()
    series = replace(asked, reference=source.resolve(asked.reference or tip))
    accepted = accepted_night(wiring, series, series.reference, tip)
    series = replace(series, recipe=accepted.request.recipe, testbed=accepted.testbeds[0])
    times = itertools.islice(times_after(series.cron, series.time_zone, now), _SHOWN_TIMES)
    return PlannedSeries(series, tuple(times), tip)


def add_series(wiring: Wiring, planned: PlannedSeries) -> Series:
    """Add a series. Raises RequestError: its name is taken."""
    return series_store(wiring).add(planned.series)


def run_now(wiring: Wiring, name: str) -> Night:
    """Return a night that can be measured now: one that has not begun or was cut off, else a new one.

    Raises RequestError: one is under way.
    """
    store, series, nights = _known(wiring, name)
    for night in nights:
        if night.kind == "night" and night.state in OPEN_NIGHTS:
            # It could not begin, a worker is about to begin it, or whoever measured it was stopped or killed.
            if not night.bisection or _is_cut_off(wiring, night.bisection):
                return night
            raise RequestError(
                f"night {night.number} of the series '{series.name}' has not ended ({night.bisection})",
                cure=f"wait for it, or end it: perfbisect cancel {night.bisection}",
            )
    now = wiring.coordinator.now()
    night = Night(series.name, _next_number(nights), now, now)
    if not store.add_night(night):
        raise RequestError(
            f"a night of the series '{name}' began just now", cure=f"perfbisect series show {name}"
        )
    return night


def backfill(wiring: Wiring, name: str, since: str | None, every: int) -> list[Night]:
    """Make nights of older commits due: each `every`-th of the branch that was not measured; return them.

    since: after this commit, by default after the first one that was measured. Raises RequestError,
    InfrastructureError: this host's repository lacks what was measured.
    """
    store, series, nights = _known(wiring, name)
    from bisector.adapters.git.fetching import fetch_commits

    known = [night for night in nights if night.commit and night.state in ("measured", "running")]
    if not known:
        raise RequestError(
            f"the series '{name}' has no night yet that others could come before",
            cure=f"measure one first: perfbisect series run {name}",
        )
    tips = _tips(series)
    fetch_commits(Path(series.repo), (known[0].commit, known[-1].commit))
    first = wiring.source(series.repo).resolve(since) if since is not None else known[0].commit
    history = [first, *tips.between(first, known[-1].commit)]
    places = {night.commit: night.place for night in known}
    wanted = [sha for sha in history[1:][every - 1 :: every] if sha not in _commits(nights)]
    if not wanted:
        raise RequestError(
            f"nothing is left to measure between {first[:12]} and {known[-1].commit[:12]}",
            cure="name an older commit with --since, or a smaller number with --every",
        )
    if len(wanted) > MAX_BACKFILL:
        raise RequestError(
            f"these are {len(wanted):,} nights, more than {MAX_BACKFILL} at once",
            cure=f"give --every {every * -(-len(wanted) // MAX_BACKFILL)} or more, or a later --since",
        )
    now, number = wiring.coordinator.now(), _next_number(nights)
    made = []
    for sha, place in zip(wanted, _places(history, wanted, places), strict=True):
        night = _add_next(store, Night(series.name, number, now, place, kind="backfill", commit=sha))
        if night is not None:
            made.append(night)
            number = night.number + 1
    return made


def pause_series(wiring: Wiring, name: str, why: str) -> Series:
    """Pause a series; what runs may end. why: '' keeps the reason of an earlier pause. Raises NotFound."""
    store = series_store(wiring)
    store.set_state(name, "paused", why or store.load(name).why)
    return store.load(name)


def resume_series(wiring: Wiring, name: str) -> Series:
    """Resume a series with its next night; those due during the pause are missed. Raises NotFound."""
    store, series, nights = _known(wiring, name)
    if series.state == "paused":
        now = wiring.coordinator.now()
        last = max([series.created, *(night.scheduled for night in nights if night.kind == "night")])
        if next(times_after(series.cron, series.time_zone, last)) <= now:
            why = "the series was paused until then" + (f": {series.why}" if series.why else "")
            _add_next(store, Night(name, _next_number(nights), now, now, state="missed", why=why))
    store.set_state(name, "active")
    return store.load(name)


def remove_series(wiring: Wiring, name: str) -> int:
    """Forget a series, and cancel its bisections that have not ended; return how many. Raises NotFound."""
    store, _, nights = _known(wiring, name)
    action = Action("cancelled", wiring.settings.owner, f"the series '{name}' was removed")
    store.set_state(name, "paused", "it is being removed")
    cancelled = 0
    for night in nights:
        for bisection in filter(None, (night.bisection, night.confirmation)):
            if night.is_open and wiring.store.set_status(
                bisection, "cancelled", expected=OPEN, action=action
            ):
                cancelled += 1
    confirmation_lost(alert_context(wiring), name, f"the series '{name}' was removed")
    store.remove(name)
    return cancelled


def _is_cut_off(wiring: Wiring, bisection: str) -> bool:
    """Return whether nobody executes what is to be executed. Workers of a server go on by themselves."""
    if wiring.settings.database is not None or wiring.store.status(bisection) not in TO_EXECUTE:
        return False
    holder = find_holder(wiring.settings.state_dir)
    return holder is None or not holder.executes


def _known(wiring: Wiring, name: str) -> tuple[SeriesStore, Series, Sequence[Night]]:
    store = series_store(wiring)
    return store, store.load(name), store.nights(name)


def _tips(series: Series) -> BranchTips:
    from bisector.adapters.git.branch_tips import BranchTips

    return BranchTips(Path(series.repo), series.branch)


def _next_number(nights: Sequence[Night]) -> int:
    return max((night.number for night in nights), default=0) + 1


def _add_next(store: SeriesStore, night: Night) -> Night | None:
    """Add a night, with the next free number where another process has taken its own; return it.

    None: the other one has added a night of this commit, or the series was removed.
    """
    while not store.add_night(night):
        nights = store.nights(night.series)
        free = _next_number(nights)
        if free <= night.number or (night.commit and night.commit in _commits(nights)):
            return None
        night = replace(night, number=free)
    return night


def _commits(nights: Sequence[Night]) -> set[str]:
    return {night.commit for night in nights if night.state not in ("failed", "missed")}


def _places(history: Sequence[str], wanted: Sequence[str], places: dict[str, float]) -> list[float]:
    """Return the place of each wanted commit, between those of its measured neighbours.

    history: oldest first; its last commit was measured. Commits before the first measured one are placed one
    second apart.
    """
    measured = [at for at, sha in enumerate(history) if sha in places]
    found = []
    for sha in wanted:
        at = history.index(sha)
        after = next(i for i in measured if i > at)
        before = max((i for i in measured if i < at), default=None)
        high = places[history[after]]
        if before is None:
            found.append(high - (after - at))
        else:
            low = places[history[before]]
            found.append(low + (high - low) * (at - before) / (after - before))
    return found

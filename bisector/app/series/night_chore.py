"""The chore of nightly series: begins what is due, collects what has ended, follows what nights show.

Any number of executors have it at the same time. Each step writes what it has done from the state that it
saw, so that one of them takes it; ids of bisections are made of the night and its commit, which is written
first, so that a step that was cut off is made again without a second bisection. Whoever has the testbed
begins a night: what it fetches has to be where kernels are built and measured.
"""

from __future__ import annotations

import math
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING

from bisector.app.series.accept_night import night_bisection, store_once
from bisector.app.series.follow_night import AlertSink, collect, end_confirmation, judge
from bisector.app.series.night_times import times_after
from bisector.app.series.series_store import series_store
from bisector.app.testbeds.testbed_hosts import has_testbed
from bisector.errors import InfrastructureError, Interrupted, NoKernel, PerfbisectError, RequestError
from bisector.model.format import count
from bisector.model.machine_hours import HOUR_SECONDS
from bisector.model.series import OPEN_NIGHTS, Night, Series, owner_of
from bisector.model.stored_bisection import OPEN, Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.app.wiring import Wiring

CHORE_SECONDS = 5.0
"""How soon a night that is due begins, and how soon the end of one is noticed."""
LATE_SECONDS = 24 * HOUR_SECONDS
"""How late a night may begin. Most series are nightly, so that the next one is due by then."""
_RETRY_SECONDS = 60.0
"""Pause between two fetches from a repository that cannot be reached. A minute is chosen."""


class NightChore:
    """The chore of one executor; remembers when each series is due next."""

    def __init__(self, wiring: Wiring, alerts: AlertSink, worker: str = "") -> None:
        """alerts: receives suspects and confirmations; worker: our name as a worker, '' if we are none."""
        self._wiring, self._alerts, self._worker = wiring, alerts, worker
        self._store = series_store(wiring)
        self._due: dict[Series, float] = {}
        self._retry: dict[tuple[str, int], tuple[float, str]] = {}  # night -> not before, what was wrong

    def do(self) -> None:
        """Do what can be done now. Raises InfrastructureError with what could not."""
        now = self._wiring.coordinator.now()
        known = {series.name: series for series in self._store.all()}
        wrong = []
        for series in known.values():
            if series.state == "active":
                try:
                    self._schedule(series, now)
                except RequestError as error:  # this host does not know the time zone, for example
                    wrong.append(f"series '{series.name}': {error.message}")
        self._due = {series: due for series, due in self._due.items() if series in known.values()}
        filled: set[str] = set()  # series whose first back-filled night was looked at: the others wait for it
        for night in self._store.open_nights():
            if night.kind == "backfill" and night.state == "due":
                if night.series in filled:
                    continue
                filled.add(night.series)
            if night.series not in known:  # it was removed just now
                continue
            try:
                self._follow(known[night.series], night, now)
            except Interrupted:  # nothing is wrong with the night
                raise
            except PerfbisectError as error:
                details = f": {error.details}" if error.details else ""
                wrong.append(f"series '{night.series}', night {night.number}: {error.message}{details}")
            except Exception as error:  # a defect that shows in one night must not hold up the others
                what = f"internal error, please report it: {type(error).__name__}: {error}"
                wrong.append(f"series '{night.series}', night {night.number}: {what}\n{_where(error)}")
        if wrong:
            raise InfrastructureError("\n".join(wrong))

    def _schedule(self, series: Series, now: float) -> None:
        """Add the night that has become due; of several the last one, if it is not too late for that."""
        if now < self._due.get(series, 0.0):
            return
        nights = self._store.nights(series.name)
        last = max([series.created, *(night.scheduled for night in nights if night.kind == "night")])
        due, upcoming = list[float](), math.inf
        for when in times_after(series.cron, series.time_zone, last):
            if when > now:
                upcoming = when
                break
            due.append(when)
        number = max((night.number for night in nights), default=0) + 1
        late = due if due and due[-1] < now - LATE_SECONDS else due[:-1]
        if late:
            why = f"nobody executed it: {count(len(late), 'night')} until then were missed"
            missed = Night(series.name, number, late[-1], late[-1], state="missed", why=why)
            if not self._store.add_night(missed):
                return  # another worker was first
            number += 1
        if due[len(late) :] and not self._store.add_night(self._night(series, number, due[-1], nights)):
            return  # another writer was first, maybe with a night of another time
        self._due[series] = upcoming  # only now: what could not be written is tried at the next look

    def _night(self, series: Series, number: int, when: float, nights: Sequence[Night]) -> Night:
        """Return the night of a time, missed where it cannot be measured."""
        night = Night(series.name, number, when, when)
        if any(one.kind == "night" and one.state in OPEN_NIGHTS for one in nights):
            return replace(night, state="missed", why="the night before had not ended")
        return night

    def _follow(self, series: Series, night: Night, now: float) -> None:
        if night.state == "due":
            self._begin(series, night, now)
        elif night.state == "running":
            measured = collect(self._wiring, night)
            if measured is not None:  # judged at once: a worker with --until-idle may not come again
                judge(self._wiring, series, measured, self._alerts)
        elif night.verdict is None:
            judge(self._wiring, series, night, self._alerts)
        else:
            end_confirmation(self._wiring, night, self._alerts)

    def _begin(self, series: Series, night: Night, now: float) -> None:
        """Make the bisection of a night that is due, or say why there is none."""
        key = (night.series, night.number)
        if night.kind == "backfill":
            if self._must_wait(series, night):
                return
        elif why := self._why_not(series):
            self._store.change_night(replace(night, state="missed", why=why), "due")
            return
        late = night.kind == "night" and now > night.scheduled + LATE_SECONDS
        if not has_testbed(self._wiring, series.testbed, self._worker):
            if late:
                why = f"no worker that has the testbed '{series.testbed}' began it within a day"
                self._store.change_night(replace(night, state="missed", why=why), "due")
            return
        before, wrong = self._retry.get(key, (0.0, ""))
        if time.monotonic() < before:
            raise InfrastructureError(wrong)
        try:
            night = self._with_commit(series, night)
            stored = night_bisection(self._wiring, series, night)
        except _OthersWereFirst:
            return
        except Interrupted:
            raise
        except NoKernel as error:
            self._store.change_night(replace(night, state="failed", why=error.message), "due")
            return
        except PerfbisectError as error:  # a RequestError, too: this host may lack what the series asks for
            if late:
                self._store.change_night(replace(night, state="missed", why=error.message), "due")
                return
            self._retry[key] = time.monotonic() + _RETRY_SECONDS, error.message
            raise
        self._retry.pop(key, None)
        store_once(self._wiring, stored)
        begun = replace(night, state="running", bisection=stored.id)
        if not self._store.change_night(begun, "due"):
            self._cancel_unused(begun)

    def _cancel_unused(self, night: Night) -> None:
        """Cancel the bisection of a night that has ended meanwhile, unless another worker's night uses it."""
        if all(known.bisection != night.bisection for known in self._store.nights(night.series)):
            why = f"night {night.number} of the series '{night.series}' was ended meanwhile"
            action = Action("cancelled", self._wiring.settings.owner, why)
            self._wiring.store.set_status(night.bisection, "cancelled", expected=OPEN, action=action)

    def _must_wait(self, series: Series, night: Night) -> bool:
        """Return whether a back-filled night waits: for others of its series, or for the budget."""
        others = [n for n in self._store.nights(series.name) if n.state in OPEN_NIGHTS and n != night]
        earlier = any(n.state == "running" or n.kind == "night" or n.place < night.place for n in others)
        return earlier or series.state != "active" or self._why_not(series) is not None

    def _why_not(self, series: Series) -> str | None:
        """Return why no night can be measured now, None where it can."""
        coordinator = self._wiring.coordinator
        for status in coordinator.testbeds():
            if status.name == series.testbed and status.state == "retired":
                return f"the testbed '{series.testbed}' is retired: {status.reason}"
        used = sum(coordinator.machine_time(owner_of(series.name)).values()) / HOUR_SECONDS
        allowed = self._wiring.settings.hours_allowed(owner_of(series.name), series.budget)
        if used >= allowed:
            what = "budget" if allowed == series.budget else "lab's cap of the series"
            return f"the {what} is used: {used:.1f} of {allowed:g} machine hours in seven days"
        return None

    def _with_commit(self, series: Series, night: Night) -> Night:
        """Return a night with its commit, of the branch as it is now, once that is written and here.

        Raises PerfbisectError, _OthersWereFirst.
        """
        from pathlib import Path

        from bisector.adapters.git.branch_tips import BranchTips
        from bisector.adapters.git.fetching import fetch_commits

        tips = BranchTips(Path(series.repo), series.branch)
        if not night.commit:
            tips.fetch()
        fetch_commits(Path(series.repo), filter(None, (series.reference, night.commit)))
        if night.commit:
            return night
        tip = tips.tip()
        known = [n for n in self._store.nights(series.name) if n.kind == "night" and n.commit]
        note = ""
        if known and known[-1].commit == tip:
            note = "no new commit"
        elif known and "*" not in series.branch and not tips.contains(tip, known[-1].commit):
            note = f"the branch was force-pushed: {known[-1].commit[:12]} is not in it any more"
        known_now = replace(night, commit=tip, note=note)
        if not self._store.set_commit(known_now):
            raise _OthersWereFirst
        return known_now


def _where(error: Exception) -> str:
    """Return the traceback of an error, for whoever fixes the defect."""
    return "".join(traceback.format_tb(error.__traceback__)).rstrip()


class _OthersWereFirst(Exception):
    """Another worker has written the commit of a night: maybe another one, for the branch moves."""

"""Decides what each testbed of a bisection does next, and writes that down before anybody acts on it.

Nothing lives here that the records do not tell: a decider of a later process goes on where the records end.
"""

from __future__ import annotations

from bisector.engine.events import EventSender
from bisector.engine.journal import Journal
from bisector.model.decisions import Answer, Conclusion, Measure, Released
from bisector.search.loop import OpenTrials, PlannerPort


class Decider:
    """The decisions of one bisection. Safe to use from several threads, one for each testbed."""

    def __init__(self, planner: PlannerPort, journal: Journal, events: EventSender) -> None:
        """Begin without a trial under way."""
        self._planner = planner
        self._journal = journal
        self._events = events
        self.ended_trials = 0
        """How many trials have ended in this process; each may change the next decision."""
        self.conclusion: Conclusion | None = None

    def decide(self, testbed: str, *, may_boot: bool = True) -> Answer | None:
        """Return what the idle testbed should do, if anything; a trial is under way from then on until `end`.

        Returns None where the testbed has to wait: for trials on other testbeds, which may change a
        conclusion, or for a turn in which it may boot.
        """
        journal = self._journal
        with journal.lock:
            while True:
                seen, under_way = journal.trials()  # read first, or a trial that ends now would be missed
                journal.refresh()
                trials = OpenTrials(dict(under_way))
                decision = trials.ask(self._planner, journal.state, testbed)
                if isinstance(decision, Released):
                    return decision
                if isinstance(decision, Conclusion):
                    if self.conclusion is not None or set(trials.by_testbed) - {testbed}:
                        return None
                    if journal.conclude(decision, seen):
                        self.conclusion = decision
                        return decision
                elif decision.boot is None and not may_boot:
                    return None
                elif journal.begin_trial(testbed, decision, seen):
                    self._events.send_decision(decision, testbed)
                    return decision

    def under_way(self) -> frozenset[tuple[str, Measure]]:
        """Return the trials that have not ended, in whatever process, with their testbeds."""
        return frozenset(self._journal.trials()[1].items())

    def end(self, testbed: str, *, put_off: bool = False) -> None:
        """Record that the trial of a testbed is over, however it went. put_off: until its kernel is built."""
        with self._journal.lock:
            self._journal.end_trial(testbed, put_off=put_off)
            self.ended_trials += 1

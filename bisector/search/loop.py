"""The decision loop: idle testbeds ask the planner, trials are carried out, until there is a conclusion.

The simulator (in virtual time) and tests run this loop; the engine, in which several bisections share
testbeds, asks in the same way (`OpenTrials`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from bisector.model.decisions import Answer, Conclusion, Measure, Released
from bisector.model.state import State


class PlannerPort(Protocol):
    """Decides; never acts. The same state always gives the same decision."""

    def next(self, state: State) -> Answer:
        """Return the next action with its reason, the conclusion, or that the testbed is not needed."""
        ...


@dataclass(slots=True)
class OpenTrials:
    """The trials under way, one at most on each testbed."""

    by_testbed: dict[str, Measure] = field(default_factory=dict)

    def ask(self, planner: PlannerPort, state: State, testbed: str) -> Answer:
        """Return what an idle testbed should do, given what the others do; a trial is open from then on."""
        others = tuple(trial for name, trial in self.by_testbed.items() if name != testbed)
        decision = planner.next(replace(state, pending=others, idle=testbed))
        if isinstance(decision, Measure):
            self.by_testbed[testbed] = decision
        return decision

    def imagine(self, planner: PlannerPort, state: State, name: str) -> Answer:
        """Return what one more testbed would do, if it were like those that the search goes on with."""
        answer = self.ask(planner, state, name)
        if isinstance(answer, Released):
            pending = tuple(self.by_testbed.values())
            answer = planner.next(replace(state, pending=pending, idle=answer.testbeds[0]))
            if isinstance(answer, Measure):
                self.by_testbed[name] = answer
        return answer

    def close(self, testbed: str) -> None:
        """Forget the trial of a testbed: it has ended."""
        self.by_testbed.pop(testbed, None)


def run_search(
    testbeds: Iterable[str],
    decide: Callable[[str], Answer],
    start: Callable[[str, Measure], None],
    wait: Callable[[], str | None],
    *,
    finish_trials: bool,
) -> Conclusion:
    """Decide and carry out until there is a conclusion; return it. A testbed that is released rests.

    decide: what an idle testbed should do; start: begin a trial on it; wait: until some trial ends, return
    its testbed, or None where the testbed is of no more use; raises where none is left. finish_trials: let
    trials under way end before a conclusion counts, for they may change it.
    """
    idle = list(testbeds)
    busy = 0
    while True:
        while idle:
            decision = decide(idle[0])
            if isinstance(decision, Conclusion):
                if busy and finish_trials:
                    break
                return decision
            testbed = idle.pop(0)
            if isinstance(decision, Measure):
                start(testbed, decision)
                busy += 1
        ended = wait()
        busy -= 1
        if ended is not None:
            idle.append(ended)

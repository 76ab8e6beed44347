"""The durable part: DBOS workflows that call a TrialRunner, step by step.

A killed process leaves its workflow pending, and the next executor of the state folder takes it up. Steps
hand over small JSON values only; what they did is in the store. Workflows never raise: an error that
DBOS had to keep would need pickle.

Imported by `executor` alone, and late: DBOS takes 0.4 s to import.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Any

from dbos import DBOS, Serializer, SetWorkflowID

from bisector.engine.trial_runner import TrialRunner
from bisector.errors import PerfbisectError
from bisector.model.decisions import Decision, Measure
from bisector.schemas import serialization
from bisector.search.loop import run_search

APPLICATION_VERSION = "3"
"""Version of the workflows' steps; raised when their order or their values change."""
QUEUE_POLL_SECONDS = 0.1
"""A trial waits half of this on average; more often would only load the disk."""

SET_ASIDE = "set aside"
"""Name of the step that tells that a testbed is used no more."""

_runners: dict[str, TrialRunner] = {}
"""Bisection id -> its runner in this process: workflows take only JSON, and live boots are no JSON."""


class JsonSerializer(Serializer):
    """JSON instead of DBOS's default, pickle: readable by people, and nothing in it can run."""

    def serialize(self, data: Any) -> str:  # noqa: ANN401 - DBOS's interface
        """Return data as JSON; an exception of DBOS's own becomes its text."""
        return json.dumps(data, default=lambda value: {"__error__": f"{type(value).__name__}: {value}"})

    def deserialize(self, serialized_data: str) -> Any:  # noqa: ANN401 - DBOS's interface
        """Read what `serialize` wrote."""
        data = json.loads(serialized_data)
        if isinstance(data, dict) and set(data) == {"__error__"}:
            return RuntimeError(data["__error__"])
        return data

    def name(self) -> str:
        """Return the name that DBOS stores beside every value."""
        return "perfbisect_json"


def queue_of(testbed: str) -> str:
    """Return the queue whose concurrency of one keeps a testbed to one trial at a time."""
    return f"testbed-{testbed}"


def attach(runner: TrialRunner) -> None:
    """Make a runner known to the workflows of its bisection."""
    _runners[runner.id] = runner


def detach(bisection: str) -> None:
    """Forget a runner."""
    _runners.pop(bisection, None)


class _Failed(Exception):
    """A step failed. `answer`: the error as values."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        super().__init__(answer.get("error", ""))


# No limit of attempts: every resume after a kill is one, and a person asked for it.
@DBOS.workflow(name="bisection", max_recovery_attempts=None)
def bisection(name: str, testbeds: list[str]) -> dict[str, Any]:
    """Decide and carry out until there is a conclusion; return {'ended': how, ...} or an error as values."""
    busy: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    well = list(testbeds)

    def decide(testbed: str) -> Decision:
        answer = _checked(DBOS.run_step({"name": "decide"}, _decide, name, testbed))
        numbers[testbed] = answer["number"]
        return serialization.decision_from(answer["decision"])

    def start(testbed: str, measure: Measure) -> None:
        number = numbers[testbed]
        decision = serialization.to_json(measure)
        with SetWorkflowID(f"{DBOS.workflow_id}-trial-{number}"):
            busy[testbed] = DBOS.enqueue_workflow(queue_of(testbed), trial, name, testbed, number, decision)

    def wait() -> str | None:
        first = DBOS.wait_first(list(busy.values()), polling_interval_sec=QUEUE_POLL_SECONDS)
        testbed = next(t for t, handle in busy.items() if handle.workflow_id == first.workflow_id)
        del busy[testbed]
        answer = first.get_result(polling_interval_sec=QUEUE_POLL_SECONDS)
        if answer.get("testbed_failed"):
            well.remove(testbed)
            if well:
                DBOS.run_step({"name": SET_ASIDE}, _set_aside, name, testbed, well)
                return None
            if len(testbeds) > 1:
                answer["error"] = f"no testbed is left; the last one, '{testbed}': {answer['error']}"
        _checked(answer)
        return testbed

    try:
        conclusion = run_search(testbeds, decide, start, wait, finish_trials=True)
    except _Failed as failed:
        return failed.answer
    return DBOS.run_step({"name": "conclude"}, _conclude, name, serialization.to_json(conclusion))


def _checked(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step's answer; raise _Failed where it is an error."""
    if "error" in answer:
        raise _Failed(dict(answer))
    return dict(answer)


@DBOS.workflow(name="trial", max_recovery_attempts=None)
def trial(name: str, testbed: str, number: int, decision: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one decision on one testbed."""
    return DBOS.run_step({"name": "carry out"}, _carry_out, name, testbed, number, dict(decision))


def _decide(name: str, testbed: str) -> dict[str, Any]:
    try:
        number, decision = _runners[name].decide(testbed)
    except Exception as error:
        return _error(error)
    return {"number": number, "decision": serialization.to_json(decision)}


def _conclude(name: str, conclusion: Mapping[str, Any]) -> dict[str, Any]:
    value = serialization.conclusion_from(conclusion)
    try:
        _runners[name].conclude(value)
    except Exception as error:
        return _error(error)
    return {"ended": value.ending.value}


def _carry_out(name: str, testbed: str, number: int, decision: Mapping[str, Any]) -> dict[str, Any]:
    measure = serialization.decision_from(decision)
    assert isinstance(measure, Measure), "only trials are enqueued"
    try:
        failed = _runners[name].carry_out(number, measure, testbed)
    except Exception as error:
        return _error(error)
    return {} if failed is None else {**_error(failed), "testbed_failed": True}


def _set_aside(name: str, testbed: str, left: list[str]) -> None:
    _runners[name].set_aside(testbed, left)


def _error(error: Exception) -> dict[str, Any]:
    """Return an error as values. One that is not ours is a defect: it is told with its traceback."""
    if isinstance(error, PerfbisectError):
        return {
            "error": error.message,
            "details": error.details,
            "cure": error.cure,
            "exit_code": int(error.exit_code),
        }
    return {
        "error": f"internal error: {type(error).__name__}: {error}",
        "details": "".join(traceback.format_exception(error)),
        "cure": "this is a defect of perfbisect: please report it; 'perfbisect resume' tries again",
    }

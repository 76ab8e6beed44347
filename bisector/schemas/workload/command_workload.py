"""The workload that a command line is (`--run CMD`): a script for the testbed's shell, and one metric."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from bisector.errors import RequestError
from bisector.model.goal import Direction
from bisector.schemas.workload.counted_metrics import counter
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.metric import PRINTED_UNIT, UNIT_GROUP, unit_of_threshold
from bisector.schemas.workload.workload import Workload

SCRIPT = "command.sh"

_TIME, _LONE_NUMBER = "time", "number"
_NUMBER = r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
_UNIT = rf"(?:[ \t]+(?P<{UNIT_GROUP}>(?:1/)?[^\W\d]\S*|[^\w\s.,+-]\S*))?[ \t]*$"
"""Of digits only '1/s' may begin with one: '12 345k' is a number in a form that is not read, not 12."""
_TIMEOUT_SECONDS = 3600
"""A benchmark takes minutes. `git bisect run` waits for ever; here a kernel that hangs must be noticed."""
_NAME_CHARACTERS = 40
"""Of the command's first word: an id of a bisection begins with the name."""


def command_workload(
    command: str, metric: str | None, *, higher_is_better: bool, threshold: str = ""
) -> Workload:
    """Return the workload that runs a command. metric: what it prints, by name; None: the time that it takes.

    threshold: what is searched for; one such as '1 ms' says the unit of the number, which is converted into
    it, and a number that measures something else is refused. Without it the number is in the printed unit
    without its prefix. What emulated guests count by the metric's name is counted, whatever the command
    prints. Raises RequestError for a name that is none, and for a time or a count that is to be high.
    """
    counted = metric is not None and counter(metric) is not None
    timed = counted or metric in (None, _TIME)
    if timed and higher_is_better:
        what = f"the count '{metric}' of a command" if counted else "the time that a command takes"
        raise RequestError(
            f"--higher-is-better: {what} is better when it is lower",
            cure="name a number that the command prints: --metric NAME",
        )
    better: Direction = "higher" if higher_is_better else "lower"
    decides = {"better": better, "threshold": "5%", "decides": True}
    unit = unit_of_threshold(threshold) or PRINTED_UNIT
    printed = {"name": metric, "unit": unit, "at": _place(str(metric)), **decides}
    manifest_values = {
        "name": _name(command),
        "description": "A command of --run.",
        "metrics": [{"name": _TIME, "unit": "s", **decides} if timed else printed],
        "run": [SCRIPT],
        "files": [SCRIPT],
        "parse": "elapsed" if timed else "regex",
        "warmup": 1,
        "timeout": _TIMEOUT_SECONDS,
    }
    try:
        manifest = WorkloadManifest.model_validate(manifest_values)
    except ValidationError as error:
        raise RequestError(
            f"--metric '{metric}' is not the name of a metric",
            cure="write it as the command prints it: letters, digits, '.', '_' and '-'",
        ) from error
    return Workload(Path(), manifest, script=f"#!/bin/sh\n{command}\n").with_counter(metric)


def _place(name: str) -> str:
    """Return the expression for a line 'NAME: 12.5', 'NAME=12.5' or 'NAME 12.5', or for '12.5' alone."""
    if name == _LONE_NUMBER:
        return rf"^[ \t]*{_NUMBER}{_UNIT}"
    return rf"^[ \t]*{re.escape(name)}(?:[ \t]*[:=][ \t]*|[ \t]+){_NUMBER}{_UNIT}"


def _name(command: str) -> str:
    """Return what reports and ids call a command: by its first word."""
    first = (command.split() or [""])[0].rpartition("/")[2].lower()
    return f"run-{re.sub(r'[^a-z0-9]+', '-', first).strip('-')[:_NAME_CHARACTERS] or 'command'}"

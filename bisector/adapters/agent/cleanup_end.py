"""How the cleanup of a workload ended, on a machine that lives on: what it leaves there stays."""

from __future__ import annotations

import logging
from collections import deque

from bisector.adapters.agent.answers import AnswerError, Cleaned, parse_answer
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import Line, LineSilent
from bisector.model.printable import printable_line
from bisector.ports import Job

log = logging.getLogger(__name__)

_SHOWN_LINES, _SHOWN_CHARACTERS = 10, 500
"""Of what a failing cleanup printed: why it fails is at the end."""


def await_cleanup(line: Line, job: Job) -> None:
    """Wait for the end of the cleanup, a run's time at most, behind 'quit'; warn where it fails.

    Raises LineClosed for an agent that ends without a word, as one of an earlier version does.
    """
    printed: deque[str] = deque(maxlen=_SHOWN_LINES)
    end = awake_seconds() + job.timeout
    how = f"did not end within {job.timeout:.0f} s"
    while (left := end - awake_seconds()) > 0:
        try:
            text = line.receive(left)
        except LineSilent:
            break
        try:
            answer = parse_answer(text)
        except AnswerError:  # what its commands print
            printed.append(printable_line(text)[:_SHOWN_CHARACTERS])
            continue
        if isinstance(answer, Cleaned):
            if answer.cleaned == 0:
                return
            how = f"failed (code {answer.cleaned})"
            break
    head = f"warning: the cleanup of the workload '{job.name}' {how}; look what it left here"
    log.warning("%s", "\n  ".join([head, *printed]))

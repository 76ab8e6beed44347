"""Answers of the measuring agent, whole and with single keys changed."""

from __future__ import annotations

import base64
import json
from typing import Any

from bisector.adapters.agent.answers import Finished

_FINISHED: dict[str, Any] = {
    "code": 0,
    "signal": 0,
    "killed": 0,
    "seconds": 1.0,
    "raw_seconds": 1.0,
    "ticks": 1_000_000_000,
    "user": 0.9,
    "sys": 0.1,
    "minor_faults": 7,
    "major_faults": 0,
    "switches": 3,
    "preempted": 1,
    "out": b"",
    "out_cut": 0,
    "err": b"",
    "err_cut": 0,
    "kernel": [],
    "tainted": 0,
}


def finished(**changed: Any) -> Finished:
    """Return the answer to a run of one second that ended well and printed nothing, or as changed."""
    return Finished.model_construct(**{"monitor": "", **_FINISHED, **changed})


def finished_line(**changed: Any) -> str:
    """Return the same as the agent writes it; None takes a key out."""
    answer = {key: value for key, value in {**_FINISHED, **changed}.items() if value is not None}
    encoded = {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in answer.items()}
    return json.dumps(encoded)


GREETING = '{"hello":"perfbisect agent","protocol":1}'

"""Times as people read them: in UTC, to the minute."""

from __future__ import annotations

import datetime


def minute(seconds: float) -> str:
    """Return '2026-11-29 21:30 UTC' for seconds since the epoch."""
    return f"{bare_minute(seconds)} UTC"


def bare_minute(seconds: float) -> str:
    """Return '2026-11-29 21:30', where UTC stands beside it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M")

"""Times as people read them: in UTC, to the minute."""

from __future__ import annotations

import datetime


def minute(seconds: float) -> str:
    """Return '2026-11-29 21:30 UTC' for seconds since the epoch."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")

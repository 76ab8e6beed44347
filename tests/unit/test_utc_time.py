"""A time has one form in every text."""

from __future__ import annotations

import re
from pathlib import Path

import bisector
from bisector.report import phrases
from bisector.utc_time import minute

_PACKAGE = Path(bisector.__file__).parent


def test_a_time_is_told_to_the_minute_in_utc() -> None:
    assert minute(0.0) == phrases.date(0.0) == "1970-01-01 00:00 UTC"
    assert minute(1.79e9) == "2026-09-21 14:13 UTC"


def test_no_other_module_writes_times_to_the_minute_in_utc() -> None:
    pattern = re.compile(r"%H:%M(?!:%S)")
    own = {path.relative_to(_PACKAGE).as_posix() for path in _PACKAGE.rglob("*.py")}
    found = {name for name in own if pattern.search((_PACKAGE / name).read_text())}
    assert found == {
        "utc_time.py",
        "interfaces/cli/groups/series_views.py",  # in the series' own zone
    }

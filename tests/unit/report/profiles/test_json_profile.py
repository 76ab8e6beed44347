"""Two profiles as JSON."""

from __future__ import annotations

import json

import pytest

from bisector.linux.call_graph import callees, callers
from bisector.linux.profile import compare_profiles
from bisector.report.profiles import json_profile
from tests.support.samples import CALLS, NEW, OLD


def test_keys_and_numbers() -> None:
    tree = ("lock", callers(OLD, NEW, "lock", 0.0), callees(OLD, NEW, "lock", 0.0))
    found = json.loads(json_profile.render(compare_profiles(OLD, NEW, ["lock", "gone"]), [tree]))
    assert list(found) == [
        *("schema", "profiles", "symbols", "calls", "trees", "exact"),
        *("annotated", "touched_but_absent", "sentences", "warnings"),
    ]
    assert found["profiles"][0] == {"name": "old", "event": "", "samples": 10000, "smallest_listed": None}
    lock = next(s for s in found["symbols"] if s["name"] == "lock")
    assert (lock["shares"], lock["certain"], lock["touched"]) == ([0.03, 0.09], True, True)
    assert lock["points"] == pytest.approx(0.06)
    assert [b["name"] for b in found["trees"][0]["callers"]] == ["lock", "vfs_read", "sys_read", "task"]
    assert found["touched_but_absent"] == ["gone"]


def test_calls() -> None:
    alloc, free = json.loads(json_profile.render(compare_profiles(*CALLS)))["calls"]
    assert (alloc["name"], alloc["calls"], alloc["change"]) == ("alloc", [1000, 2000], 1.0)
    assert free["microseconds_a_call"] == [0.1, 0.15]

"""The benchmark of nightly series on recorded nights: the recording is whole, and is judged."""

from __future__ import annotations

from pathlib import Path

from tests.bench.series.real_nights import judge, load, record
from tests.bench.series.simulated import RUNS

ROOT = Path(__file__).parents[3]


def test_recorded_nights_are_judged() -> None:
    nights = load(ROOT / "tests/bench/series/nights/busy.txt.gz")
    assert {runs.shape for runs in nights.values()} == {(220, 5, RUNS)} and len(nights) == 6
    rows = judge("zlib", nights["busy: zlib, CPU"][:60], 1, 1, 1)
    alerts = {(row[0], row[2]): float(row[8]) for row in rows if row[1] == "0"}
    assert alerts["zlib, as it came", "perfbisect"] == alerts["zlib", "perfbisect"] == 0
    assert ("zlib", "Perfherder") in alerts and {row[1] for row in rows} == {"0", "1", "2", "5"}


def test_nights_are_recorded(tmp_path: Path) -> None:
    record(tmp_path / "now.txt", 1, 0.0)
    found = load(tmp_path / "now.txt")
    assert len(found) == 6 and all(runs.shape == (1, 5, RUNS) and (runs > 0).all() for runs in found.values())

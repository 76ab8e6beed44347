"""Series that nobody could measure: refused when they are added, with what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.harness import Row, check_row, each_row

GIVEN = {
    "--repo": "linux",
    "--branch": "v5",
    "--cron": "30 2 * * *",
    "--budget": "10",
    "--workload": "pipe-test",
    "--recipe": "x86_64-small",
}


def add(name: str = "one", **other: str) -> list[str]:
    """Return a command line that is right but for the options that are given here."""
    options = {**GIVEN, **{f"--{key.replace('_', '-')}": value for key, value in other.items()}}
    return ["series", "add", name, *(word for pair in options.items() for word in pair)]


ROWS = [
    Row("name", add("Büro"), ["'Büro' cannot be the name of a series", "small letters"]),
    Row("path", add("../x"), ["cannot be the name of a series"]),
    Row("never", add(cron="0 0 30 2 *"), ["'0 0 30 2 *' is not a time that ever comes"]),
    Row("four fields", add(cron="0 0 * *"), ["has not five fields", "02:30 each day"]),
    Row("word", add(cron="at midnight each single day"), ["is not a time that ever comes"]),
    Row("zone", add(time_zone="Europe/Berln"), ["did you mean 'Europe/Berlin'?"]),
    Row("zone as a path", add(time_zone="../../etc/passwd"), ["there is no time zone"]),
    Row("no budget", add(budget="0"), ["--budget", "above 0"]),
    Row("more than a week", add(budget="169"), ["--budget", "168"]),
    Row("no boots", add(boots="0"), ["--boots"]),
    Row("branch", add(branch="nigth"), ["there is no branch 'nigth'"]),
    Row("branch as an option", add(branch="--upload-pack=x"), ["cannot be the name of a branch"]),
    Row("tags", add(branch="w*"), ["no tag of", "matches 'w*'"]),
    Row("remote", add(branch="origin/master"), ["there is no branch 'origin/master'"]),
    Row("reference", add(reference="v9"), ["v9"]),
    Row("workload", add(workload="pip-test"), ["pip-test"]),
    Row("threshold", add(threshold="much"), ["--threshold", "5%"]),
    Row("testbed", add(testbed="guets"), ["guets"]),
    Row("recipe", add(recipe="nonsense"), ["nonsense"]),
    Row("repository", add(repo="nowhere"), ["nowhere"]),
    *(
        Row(
            f"unknown to {command}", ["series", command, "pipe"], ["there is no series 'pipe'", "series list"]
        )
        for command in ("show", "run", "backfill", "pause", "resume", "remove")
    ),
]


@each_row(ROWS)
def test_a_series_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)

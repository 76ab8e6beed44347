"""What `alert show` says of the commits of an alert's range."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.alerts.alert_range import describe_range
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.model.alerts import Alert, HistoryEntry
from bisector.schemas.settings import load_settings
from tests.support.series.alert_lab import found
from tests.support.small_git import SmallGit


def alert_of(git: SmallGit, good: str, bad: str, tip: str = "") -> Alert:
    ends = replace(found(1, 2), last_good=git.ids[good], first_bad=git.ids[bad], tip=git.ids.get(tip, ""))
    return replace(ends, repo=str(git.path), id="a1")


def test_the_range_is_counted_and_its_commits_are_named(own_folders: Path) -> None:
    git = SmallGit(own_folders / "linux")
    git.make("""
        a
        b: a
        c: a
        m: b c
        d: m
    """)
    wiring = Wiring(load_settings())
    subjects = {name: git.git("log", "-1", "--format=%s", name, "--").strip() for name in "amd"}
    assert describe_range(wiring, alert_of(git, "a", "m", "d")) == {
        "commits": 3,
        "subjects": {"last_good": subjects["a"], "first_bad": subjects["m"], "tip": subjects["d"]},
    }
    apart = describe_range(wiring, alert_of(git, "b", "c"))  # as after a forced push
    assert apart["commits"] == 1
    assert apart["subjects"]["first_bad"] and apart["subjects"]["tip"] == ""


def test_without_the_repository_nothing_is_said(own_folders: Path) -> None:
    nowhere = found(1, 2, repo=str(own_folders / "absent"))
    assert describe_range(Wiring(load_settings()), nowhere) == {
        "commits": None,
        "subjects": {"last_good": "", "first_bad": "", "tip": ""},
    }


def test_people_read_it(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git = SmallGit(own_folders / "linux")
    git.make("""
        a
        b: a
        c: b
    """)
    open_alerts(Wiring(load_settings())).add(alert_of(git, "a", "c"), HistoryEntry("perfbisect", "suspect"))
    capsys.readouterr()
    assert run(["alert", "show", "a1"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "range 2 commits after 'last good', up to 'first bad'" in lines
    where = lines.index(f"first bad {git.ids['c']}")
    assert lines[where + 1] == git.git("log", "-1", "--format=%s", "c", "--").strip()

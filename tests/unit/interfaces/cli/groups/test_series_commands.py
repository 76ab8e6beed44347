"""`perfbisect series` as commands, over a real repository and database: what they print and leave."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.series.sql_series import SqlSeries
from bisector.app import find_culprit
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.series import manage_series
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import QUEUE, lock
from bisector.interfaces.cli import options, run
from bisector.interfaces.cli.groups import series_commands, series_views
from bisector.interfaces.cli.groups.series_views import due_words
from bisector.model.alerts import HistoryEntry
from bisector.model.series import Night, owner_of
from bisector.schemas.database_url import DatabaseUrl
from tests.golden.test_json_output import promised
from tests.support.command_line import said
from tests.support.series.alert_lab import found
from tests.support.series.series_lab import SeriesLab

EXECUTE = series_commands._execute
ADD = [
    *("series", "add", "pipe", "--branch", "origin/night", "--workload", "pipe-test", "--budget", "10"),
    *("--cron", "0 12 * * *", "--testbed", "bed", "--recipe", "x86_64-small"),
]


@pytest.fixture
def lab(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    lab = SeriesLab(own_folders, monkeypatch)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(lab.wiring.settings.state_dir))
    monkeypatch.setenv("PERFBISECT_REPO", str(lab.repo))
    monkeypatch.setattr(series_commands, "_execute", lambda wiring: lab.work())
    return lab


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(said(capsys, "series", *arguments, "--json"))


def test_a_series_from_the_first_night_to_its_removal(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.push("c2")  # nobody has fetched that yet
    text = said(capsys, *ADD, "--dry-run")
    assert "pipe, not added" in text
    assert lab.origin.ids["c2"][:12] in text
    lab.push("c0")
    assert text.count(" 12:00 UTC") == 3
    assert said(capsys, "series", "list") == "No series yet.\n"
    added = json.loads(said(capsys, *ADD, "--json"))
    assert added["reference"] == added["tip"] == lab.origin.ids["c0"]
    assert run(ADD) == 1
    assert "there is a series 'pipe' already" in capsys.readouterr().err
    assert "nothing was measured yet" in said(capsys, "series", "show", "pipe")

    lab.push("c3")
    found = printed(capsys, "run", "pipe")
    (night,) = found["nights"]
    assert (night["state"], night["commit"]) == ("measured", lab.origin.ids["c3"])
    assert run(["series", "run", "pipe"]) == 0
    first, *_, told = capsys.readouterr().err.splitlines()
    assert first.startswith("night 2 of the series 'pipe': this process measures it here and now, ")
    assert told.startswith("night 2 of the series 'pipe': measured, ") and " s, learning" in told
    assert set(found) == promised("series list") | {"testbed_out_of_use"}
    assert set(night) == promised("series show")
    (row,) = printed(capsys, "list")
    assert set(row) == promised("series list")
    shown = said(capsys, "series", "show", "pipe")
    assert lab.origin.ids["c3"][:12] in shown
    assert "learning" in shown and "LEVEL (s)" in shown
    assert "pipe" in said(capsys, "series", "list")

    # A night that has ended is in the list of all bisections alone.
    assert said(capsys, "list") == "No bisection yet.\n"
    assert night["bisection"] in said(capsys, "list", "--all")
    assert "MEASURED" in said(capsys, "report", night["bisection"])

    assert printed(capsys, "pause", "pipe", "--reason", "new memory") == {"name": "pipe", "state": "paused"}
    printed(capsys, "pause", "pipe")  # a second time, without a word: why it is paused is still known
    assert "paused: new memory" in said(capsys, "series", "show", "pipe")
    assert said(capsys, "series", "list").rstrip().endswith("  paused: new memory")
    printed(capsys, "pause", "pipe", "--reason", "new fans")
    assert "paused: new fans" in said(capsys, "series", "show", "pipe")
    lab.now += 3 * 86400
    assert printed(capsys, "resume", "pipe")["state"] == "active"
    assert lab.nights()[-1].why == "the series was paused until then: new fans"
    printed(capsys, "pause", "pipe")
    assert "paused\n" in said(capsys, "series", "show", "pipe"), "the reason of an earlier rest is over"
    printed(capsys, "resume", "pipe")
    assert printed(capsys, "remove", "pipe") == {"name": "pipe", "cancelled": 0}
    assert said(capsys, "series", "list") == "No series yet.\n"
    assert night["bisection"] in said(capsys, "list", "--all")


def test_the_list_has_the_last_verdict_and_show_the_latest_nights(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, *ADD)
    for name in ("c1", "c2", "c3"):
        lab.keep_night(name)
    _, line = said(capsys, "series", "list").splitlines()
    assert "learning" in line and "measured" not in line
    said(capsys, "series", "pause", "pipe", "--reason", "new memory")
    assert "paused: new memory" in said(capsys, "series", "list")
    monkeypatch.setattr(series_views, "_NIGHTS_SHOWN", 2)

    def shown(*arguments: str) -> tuple[list[str], str]:
        assert run(["series", "show", "pipe", *arguments]) == 0
        out, err = capsys.readouterr()
        return [row.split()[0] for row in out.partition("NIGHT")[2].splitlines()[1:]], err

    numbers, note = shown()
    assert numbers == ["2", "3"] and "the latest 2; 'perfbisect series show pipe --all' shows all" in note
    assert shown("--all") == (["1", "2", "3"], "")


def test_levels_of_nights_have_one_number_of_places(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, *ADD)
    lab.push("c3")
    printed(capsys, "run", "pipe")
    shown = printed(capsys, "show", "pipe")
    (night,) = shown["nights"]
    shown["nights"] = [{**night, "level": level} for level in (9.98765, 10.01234)]
    monkeypatch.setattr(LocalOperations, "series", lambda self, name: shown)
    text = said(capsys, "series", "show", "pipe")
    assert "9.988 .. 10.012 s" in text
    assert [line.split()[6] for line in text.splitlines() if "measured " in line[30:]] == ["9.988", "10.012"]


def test_a_cap_of_the_lab_below_the_budget_is_told(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "10 machine hours in seven days\n" in said(capsys, *ADD, "--dry-run")
    monkeypatch.setenv("PERFBISECT_CAPS", "series pipe=4")
    words = "4 machine hours in seven days: a cap of the lab, below the budget of 10"
    assert words in said(capsys, *ADD)
    assert f"0.0 of {words}" in said(capsys, "series", "show", "pipe")
    assert "0.0 of 4" in said(capsys, "series", "list")


def test_a_testbed_out_of_use_is_why_nights_wait(lab: SeriesLab, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, *ADD)
    assert printed(capsys, "show", "pipe")["testbed_out_of_use"] is None
    assert "waits" not in said(capsys, "series", "show", "pipe")
    lab.wiring.coordinator.set_testbed("bed", "suspect", "its level moved", "a health check")
    reason = "suspect: its level moved (a health check)"
    assert printed(capsys, "show", "pipe")["testbed_out_of_use"] == reason
    shown = said(capsys, "series", "show", "pipe")
    assert f"waits     the testbed 'bed' is not used: {reason}\n" in shown


def test_nights_are_told_in_utc_and_in_the_zone_of_the_series(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.now = datetime(2026, 10, 23, 12, tzinfo=UTC).timestamp()
    there = ["30 0 * * *" if word == "0 12 * * *" else word for word in ADD] + [
        "--time-zone",
        "Europe/Berlin",
    ]
    nights = said(capsys, *there, "--dry-run").partition("nights")[2].split("\n")
    assert [line.strip() for line in nights if line] == [
        "2026-10-23 22:30 UTC, 2026-10-24 00:30 Europe/Berlin",
        "2026-10-24 22:30 UTC, 2026-10-25 00:30 Europe/Berlin",
        "2026-10-25 23:30 UTC, 2026-10-26 00:30 Europe/Berlin",  # clocks were put back
    ]
    said(capsys, *there)
    shown = said(capsys, "series", "show", "pipe")
    assert "'30 0 * * *' in Europe/Berlin" in shown
    assert "2026-10-23 22:30 UTC, 2026-10-24 00:30 Europe/Berlin" in shown
    assert due_words(lab.now, "Mars/Base") == "2026-10-23 12:00 UTC", "a server's zone that is not known here"


def test_a_night_is_left_to_a_worker(lab: SeriesLab, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, *ADD)
    assert run(["series", "run", "pipe", "--detach"]) == 0
    told = "night 1 of the series 'pipe' is due now; 'perfbisect worker' measures it\n"
    assert capsys.readouterr().err == told
    assert [night.state for night in lab.nights()] == ["due"]
    assert run(["series", "run", "pipe", "--detach"]) == 0
    assert capsys.readouterr().err == told, "a night that is due is not a second one"
    lab.work()
    assert [night.state for night in lab.nights()] == ["measured"]


def test_with_a_database_server_a_worker_measures_a_night(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, *ADD)
    monkeypatch.setattr(series_commands, "_execute", lambda wiring: pytest.fail("it was measured here"))
    ours = options.make_wiring

    def make_wiring(**given: Any) -> Wiring:
        wiring = ours(**given)
        monkeypatch.setattr(LocalOperations, "run_night", lambda *_: {"number": 7})
        wiring.settings = wiring.settings.model_copy(
            update={"database": DatabaseUrl("postgresql://eve@db.example/x")}
        )
        return wiring

    monkeypatch.setattr(options, "make_wiring", make_wiring)
    assert run(["series", "run", "pipe"]) == 0
    assert "night 7 of the series 'pipe' is due now; 'perfbisect worker'" in capsys.readouterr().err


def test_a_night_that_could_not_begin_is_no_measured_one(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache folder that could not be written ended with exit code 0, as a night that was measured."""
    said(capsys, *ADD)
    monkeypatch.setattr(series_commands, "_execute", lambda wiring: None)
    assert run(["series", "run", "pipe"]) == 3
    err = capsys.readouterr().err
    assert "error: night 1 of the series 'pipe' could not begin" in err and "worker --until-idle" in err
    assert run(["series", "run", "pipe"]) == 3
    assert "error: night 1 of the series 'pipe' could not begin" in capsys.readouterr().err
    lab.work()
    assert [night.state for night in lab.nights()] == ["measured"]


def test_a_night_that_measured_nothing_is_no_success(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget that was used, and a tip that did not build, ended with exit code 0."""
    said(capsys, *ADD)
    monkeypatch.setattr(series_commands, "_execute", lambda wiring: lab.work())
    lab.unbuildable = (1,)
    assert run(["series", "run", "pipe"]) == 1
    assert "error: night 1 of the series 'pipe': failed, " in capsys.readouterr().err
    lab.wiring.coordinator.add_machine_time(owner_of("pipe"), 999 * 3600.0)
    assert run(["series", "run", "pipe"]) == 1
    err = capsys.readouterr().err
    assert "error: night 2 of the series 'pipe': missed, the " in err
    assert "cure: perfbisect series show pipe" in err


def test_a_night_that_was_interrupted_is_no_success_and_goes_on_with_the_same_command(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ended it with exit code 0, and the same command then refused to go on."""

    def serve(wiring: Wiring, tell: object, stop: threading.Event, *, until_idle: bool) -> None:
        lab.chore.do()
        stop.set()

    said(capsys, *ADD)
    monkeypatch.setattr(find_culprit, "serve", serve)
    monkeypatch.setattr(series_commands, "_execute", EXECUTE)
    assert run(["series", "run", "pipe"]) == 130
    err = capsys.readouterr().err
    assert "error: night 1 of the series 'pipe' is interrupted; nothing is lost" in err
    assert "cure: this command or 'perfbisect worker --until-idle' goes on" in err
    assert [night.state for night in lab.nights()] == ["running"]
    monkeypatch.setattr(series_commands, "_execute", lambda wiring: lab.work())
    assert run(["series", "run", "pipe"]) == 0
    assert [night.state for night in lab.nights()] == ["measured"]


def test_sigterm_ends_a_night_as_ctrl_c_does(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(wiring: Wiring, tell: object, stop: threading.Event, *, until_idle: bool) -> None:
        assert until_idle
        lab.chore.do()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10)

    said(capsys, *ADD)
    monkeypatch.setattr(find_culprit, "serve", serve)
    monkeypatch.setattr(series_commands, "_execute", EXECUTE)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert run(["series", "run", "pipe"]) == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "is interrupted; nothing is lost" in capsys.readouterr().err


def test_a_night_that_was_measured_before_ctrl_c_was_heard_is_told(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(wiring: Wiring) -> bool:
        lab.work()
        return True

    said(capsys, *ADD)
    monkeypatch.setattr(series_commands, "_execute", execute)
    assert run(["series", "run", "pipe"]) == 0
    assert "night 1 of the series 'pipe': measured, " in capsys.readouterr().err


def test_a_second_night_waits_for_the_first(lab: SeriesLab, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, *ADD)
    lab.now += 86400
    lab.chore.do()
    with lock(lab.wiring.settings.state_dir, QUEUE):
        assert run(["series", "run", "pipe"]) == 1
    assert "night 1 of the series 'pipe' has not ended (pipe-night-1-" in capsys.readouterr().err
    suspect = replace(found(1, 2, "pipe"), id="a" * 10)
    open_alerts(lab.wiring).add(suspect, HistoryEntry("perfbisect", "suspect"))
    assert printed(capsys, "remove", "pipe")["cancelled"] == 1
    alert = open_alerts(lab.wiring).load(suspect.id)
    assert (alert.state, alert.why) == ("undecided", "the series 'pipe' was removed")
    assert [one.status for one in lab.wiring.store.list()] == ["cancelled"]


def test_older_commits_are_measured_in_the_order_of_history(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, *ADD)
    assert run(["series", "backfill", "pipe"]) == 1
    assert "has no night yet" in capsys.readouterr().err
    for name in ("c4", "c8"):
        lab.night(name)
    made = printed(capsys, "backfill", "pipe", "--since", "c0", "--every", "2")
    assert [lab.origin.name(one["commit"]) for one in made] == ["c2", "c6"]
    lab.chore.do()
    lab.chore.do()
    assert [n.state for n in lab.nights()] == ["running", "measured", "due", "measured"], "one at a time"
    lab.work()
    nights = lab.nights()
    assert [lab.origin.name(night.commit) for night in nights] == ["c2", "c4", "c6", "c8"]
    assert {night.state for night in nights} == {"measured"}
    assert run(["series", "backfill", "pipe", "--since", "c0", "--every", "2"]) == 1
    assert "nothing is left to measure" in capsys.readouterr().err
    monkeypatch.setattr(manage_series, "MAX_BACKFILL", 3)  # of four that are left
    assert run(["series", "backfill", "pipe", "--since", "c0"]) == 1
    assert "give --every 2 or more" in capsys.readouterr().err


def test_what_somebody_else_has_just_asked_for_is_no_error(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, *ADD)
    lab.keep_night("c5")
    add_night = SqlSeries.add_night

    def taken(store: SqlSeries, night: Night) -> bool:
        """Another process adds the night just before."""
        assert add_night(store, night)
        return add_night(store, night)

    monkeypatch.setattr(SqlSeries, "add_night", taken)
    assert run(["series", "backfill", "pipe", "--since", "c3"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "nothing is left to ask for: somebody else has just done so, or removed the series\n",
    )
    assert [lab.origin.name(night.commit) for night in lab.nights()] == ["c4", "c5"]


def test_completion_knows_series(lab: SeriesLab, capsys: pytest.CaptureFixture[str]) -> None:
    import typer.main

    from bisector.interfaces.cli.application import application
    from bisector.interfaces.cli.arguments import completion

    said(capsys, *ADD)
    context: Any = typer.main.get_command(application()).make_context("perfbisect", ["series", "list"])
    assert completion.series(context, "pi") == ["pipe"]

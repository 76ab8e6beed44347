"""The commands that show a bisection, on one with a single boot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bisector.adapters.store.sql_store import SqlStore
from bisector.engine.state_lock import lock
from bisector.interfaces.cli import run
from bisector.interfaces.cli.arguments import number_options
from bisector.model.records import Ran, RunFailed
from bisector.model.stored_bisection import failure
from bisector.testing.fakes import METRIC
from tests.support.fake_bisection import store_bisections


@pytest.fixture(autouse=True)
def stored(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SqlStore:
    return store_bisections(own_folders, monkeypatch)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out


def test_the_list_has_the_latest_first(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(output(capsys, "list", "--json"))
    assert [(row["id"], row["status"], row["exit_code"]) for row in rows] == [
        ("fake-new", "interrupted", None),
        ("fake-old", "cancelled", None),
    ]
    text = output(capsys, "list")
    assert text.splitlines()[0].split() == [
        "ID",
        "STATUS",
        "STARTED",
        "(UTC)",
        "WORKLOAD",
        "GOOD",
        "BAD",
        "RESULT",
    ]
    assert "1970-01-01 00:00" in text


def test_the_status_says_why_a_bisection_failed_and_how_it_goes_on(
    stored: SqlStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody may have watched the worker that gave it up."""
    assert "perfbisect resume" not in output(capsys, "status")
    stored.set_status("fake-new", "failed", action=failure("no testbed is left"))
    text = output(capsys, "status")
    assert re.search("last action +failed by perfbisect, .* UTC: no testbed is left", text)
    assert re.search("go on with +perfbisect resume fake-new$", text, re.MULTILINE)


def test_a_page_of_the_list_says_that_there_is_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_options, "DEFAULT_LIMIT", 1)
    for line, shown, told in (
        (["list"], ["fake-new"], "the latest 1; 'perfbisect list --all' shows the others, too\n"),
        (["list", "--all"], ["fake-new", "fake-old"], ""),
        (["list", "--limit", "2"], ["fake-new", "fake-old"], ""),
    ):
        assert run(line) == 0
        told_and_shown = capsys.readouterr()
        assert [row.split()[0] for row in told_and_shown.out.splitlines()[1:]] == shown
        assert told_and_shown.err == told
    assert len(json.loads(output(capsys, "list", "--json"))) == 2, "a script gets all"
    assert len(json.loads(output(capsys, "list", "--json", "--limit", "1"))) == 1
    assert run(["list", "--all", "--limit", "3"]) == 1
    assert run(["list", "--limit", "0"]) == 1


def test_an_empty_list_says_so(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_folders / "state" / "perfbisect.sqlite").unlink()
    assert output(capsys, "list") == "No bisection yet.\n"


def test_the_status_says_what_was_spent_and_what_is_done_now(
    own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted = output(capsys, "status")
    assert "fake-new, interrupted" in interrupted and "1 commit tested" in interrupted
    assert "the good end comes first" not in interrupted
    with lock(own_folders / "state", "fake-new"):
        assert "the good end comes first" in output(capsys, "status")
        assert json.loads(output(capsys, "status", "--json"))["doing"].startswith("verify: ")


def test_one_commit_is_shown_with_its_trials(capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(output(capsys, "show", "--commit", "good", "--json"))
    assert [trial["boot"] for trial in shown["trials"]] == ["boot-001"]
    assert [run["value"] for run in shown["trials"][0]["runs"]] == [100.0, 101.0]
    assert "boot-001  verify  100 101 s\n" in output(capsys, "show", "--commit", "good")
    assert "\ntrials  none\n" in output(capsys, "show", "--commit", "bad"), "not a word of them"
    assert json.loads(output(capsys, "show", "--commit", "bad", "--json"))["trials"] == []


def test_runs_that_do_not_count_are_told_apart(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show` had '(130) 100 101', `show --commit` four samples alike."""
    store = store_bisections(own_folders / "another", monkeypatch)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(own_folders / "another" / "state"))
    store.append("fake-new", Ran("boot-001", 2, {METRIC: 130.0}, 2.0, 106.0, warmup=True))
    store.append("fake-new", Ran("boot-001", 3, {METRIC: 140.0}, 2.0, 106.0, flags=("stall", "io")))
    assert "boot-001  verify  100 101 (130) 140[stall,io] s\n" in output(capsys, "show", "--commit", "good")


def test_a_commit_is_shown_with_what_its_workload_printed_when_it_failed(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """'The output has no metric lat', and what it had instead stood in a record that no command showed."""
    store = store_bisections(own_folders / "another", monkeypatch)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(own_folders / "another" / "state"))
    store.append("fake-new", Ran("boot-001", 2, {METRIC: 0.1 + 0.2}, 2.0, 106.0))
    store.append("fake-new", RunFailed("boot-001", "no metric 'lat'", "it printed:\nlatency: 1,300 ms\n"))
    shown = output(capsys, "show", "--commit", "good")
    assert shown.endswith("    | it printed:\n    | latency: 1,300 ms\n")
    assert "verify  100 101 0.3 s\n" in shown
    (trial,) = json.loads(output(capsys, "show", "--json"))
    assert trial["note"]["details"] == "it printed:\nlatency: 1,300 ms\n"


def test_all_trials_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "boot-001" in output(capsys, "show")
    assert [trial["boot"] for trial in json.loads(output(capsys, "show", "--json"))] == ["boot-001"]


def test_a_report_goes_to_a_file(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--json", "--output", "report.json"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and "report written to report.json" in shown.err
    assert json.loads((own_folders / "report.json").read_text())["id"] == "fake-new"
    assert output(capsys, "report") != ""


def test_the_log_is_one_of_git_bisect(capsys: pytest.CaptureFixture[str]) -> None:
    assert "git bisect start" in output(capsys, "log")

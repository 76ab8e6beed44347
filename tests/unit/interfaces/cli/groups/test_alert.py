"""`perfbisect alert`, as people and programs see it."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.open_database import open_state_file
from bisector.app.alerts import alert_range
from bisector.interfaces.cli import run
from bisector.interfaces.cli.terminal import PrintableStream
from bisector.model.alerts import Alert, HistoryEntry, alert_id
from bisector.model.decisions import Interval
from tests.support.series.alert_lab import found

HOSTILE = "x\x1b[31m\u202e<script>'; --\nsecond line"


def an_alert(number: int, **more: Any) -> Alert:
    plain = found(number, number + 2, effect=Interval(0.10, 0.125, 0.15))
    plain = replace(plain, id=alert_id("nightly", str(number), "", "regression"), why="three nights")
    return replace(plain, **more)


@pytest.fixture
def alerts(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SqlAlerts:
    monkeypatch.setenv("PERFBISECT_OWNER", "ann")
    monkeypatch.setenv("COLUMNS", "140")
    return SqlAlerts(open_state_file(own_folders / "state" / "perfbisect.sqlite"))


def add(alerts: SqlAlerts, *many: Alert) -> list[str]:
    return [alerts.add(one, HistoryEntry("perfbisect", "suspect", "three nights")).id for one in many]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run(["alert", *arguments]) == code
    out, err = capsys.readouterr()
    return out, err


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Return the ids of `list`."""
    return [row["id"] for row in json.loads(printed(capsys, "list", *arguments, "--json")[0])]


def test_a_series_of_which_nothing_is_known_is_no_empty_list(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]
) -> None:
    add(alerts, an_alert(1, series="removed", triage="invalid"))
    assert printed(capsys, "list", "--series", "removed") == ("No open alerts.\n", "")
    err = printed(capsys, "list", "--series", "remuved", code=1)[1]
    assert "there is neither a series 'remuved' nor an alert of it" in err


def test_without_a_database_there_are_none_and_none_is_made(
    own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, "list") == ("No open alerts.\n", "")
    assert printed(capsys, "list", "--all") == ("No alerts.\n", "")
    assert shown(capsys) == []
    for command in (["show", "x"], ["set", "x", "--note", "y"]):
        assert "there are no alerts yet" in printed(capsys, *command, code=1)[1]
    assert not (own_folders / "state" / "perfbisect.sqlite").exists()


def test_the_list_says_what_is_known_of_each(alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]) -> None:
    ids = add(
        alerts,
        an_alert(1),
        an_alert(2, finding="bisecting", bisection="fake-3f2a"),
        an_alert(3, finding="culprit", culprits=("c" * 40, "d" * 40), subject="sched: x"),
        an_alert(4, direction="improvement", unit="s", effect=Interval(-0.3, -0.25, -0.2)),
        an_alert(5, triage="duplicate", duplicate_of="abc"),
    )
    lines = printed(capsys, "list", "--all")[0].splitlines()
    assert lines[0].split() == ["ID", "STATE", "CHANGE", "SERIES", "FOUND", "ASSIGNEE", "RESULT"]
    of = {line.split()[0]: line for line in lines[1:] if line[0] != " "}
    assert list(of) == ids[::-1]
    assert "suspect" in of[ids[0]] and "+12.5% worse" in of[ids[0]]
    assert of[ids[1]].endswith("fake-3f2a")
    assert of[ids[2]].endswith(f"{'c' * 12} ... sched: x")
    assert "-0.25 s better" in of[ids[3]]
    assert of[ids[4]].endswith("duplicate of abc")
    assert ids[4] not in printed(capsys, "list")[0]


def test_filters_and_pages(alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]) -> None:
    ids = add(
        alerts,
        *(an_alert(n) for n in range(1, 6)),
        an_alert(6, series="other"),
        an_alert(7, finding="rejected"),
    )
    assert shown(capsys) == ids[5::-1]
    assert shown(capsys, "--all") == ids[::-1]
    assert shown(capsys, "--state", "rejected") == [ids[6]]
    assert shown(capsys, "--state", "rejected", "--state", "suspect", "--series", "nightly") == [
        ids[6],
        *ids[4::-1],
    ]
    assert shown(capsys, "--series", "none") == []
    out, err = printed(capsys, "list", "--limit", "4")
    assert len(out.splitlines()) == 5
    assert err == f"4 of 6; this goes on: perfbisect alert list --limit 4 --after {ids[2]}\n"
    out, err = printed(capsys, "list", "--limit", "4", "--after", ids[2])
    assert [line.split()[0] for line in out.splitlines()[1:]] == ids[1::-1]
    assert err == ""


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        (["--all"], [6, 5, 4, 3, 2, 1, 0]),
        (["--state", "not found", "--state", "rejected"], [6, 5]),
        (["--series", "other one", "--all"], [5, 4]),
    ],
)
def test_what_goes_on_lists_the_same_alerts(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str], asked: list[str], listed: list[int]
) -> None:
    ids = add(
        alerts,
        *(an_alert(n) for n in range(1, 5)),
        an_alert(5, series="other one"),
        an_alert(6, series="other one", finding="not found"),
        an_alert(7, finding="rejected"),
    )
    seen, command = list[str](), ["list", *asked, "--limit", "1"]
    for _ in listed:
        out, err = printed(capsys, *command)
        seen.append(out.splitlines()[1].split()[0])
        command = shlex.split(err.partition("perfbisect alert ")[2])
    assert not command, "nothing follows the last one"
    assert seen == [ids[number] for number in listed]


@pytest.mark.parametrize("columns", ["60", "80"])
def test_tables_fit_the_terminal(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    (identity, *_) = add(
        alerts,
        an_alert(1, finding="culprit", culprits=("c" * 40,), subject="word " * 30, assignee="a person " * 5),
        an_alert(2, finding="not found", why="word " * 100),
    )
    monkeypatch.setenv("COLUMNS", columns)
    for command in (["list"], ["show", identity]):
        out, _ = printed(capsys, *command)
        assert max(map(len, out.splitlines())) <= int(columns)


def test_an_alert_with_its_history(alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = add(alerts, an_alert(1, finding="culprit", culprits=("c" * 40,)), an_alert(2))
    printed(capsys, "set", second, "--duplicate-of", first[:6], "--note", "the same nights")
    printed(capsys, "set", first, "--state", "acknowledged", "--assign", "bob", "--note", "looks real")
    out, _ = printed(capsys, "show", first[:6])
    for words in (f"{first}, acknowledged", "+12.5% worse (95% interval +10.0% .. +15.0%)", "c" * 40, second):
        assert words in out
    assert "looks real" in out.splitlines()[-2] and "assigned to bob" in out.splitlines()[-1]
    values = json.loads(printed(capsys, "show", first, "--json")[0])
    assert (values["state"], values["finding"], values["same_cause"]) == ("acknowledged", "culprit", [second])
    assert [entry["who"] for entry in values["history"]] == ["perfbisect", "ann", "ann"]


def test_all_that_is_known_of_an_alert_has_a_line(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]
) -> None:
    known = an_alert(
        1,
        tip="e" * 40,
        finding="culprit",
        why="proven",
        bisection="fake-3f2a",
        culprits=("c" * 40, "d" * 40),
        subject="sched: wait",
        back_since="b" * 40,
        assignee="ann",
    )
    first, second, third = add(alerts, known, an_alert(2, why=""), an_alert(3, direction="improvement"))
    printed(capsys, "set", second, "--duplicate-of", first)

    def lines(identity: str) -> list[str]:
        text = printed(capsys, "show", identity)[0].partition("\n\n")[0]
        return [" ".join(line.split()) for line in text.splitlines()]

    assert lines(first) == [
        f"alert {first}, culprit",
        "series nightly",
        f"measured {known.workload} ({known.metric}) on {known.testbed}",
        "change +12.5% worse (95% interval +10.0% .. +15.0%)",
        f"last good {known.last_good}",
        f"first bad {known.first_bad}",
        f"tip {'e' * 40}",
        "finding culprit: proven",
        "bisection fake-3f2a",
        f"culprits {'c' * 40} sched: wait",
        "d" * 40,
        f"back since {'b' * 40} at the latest",
        f"same cause {second}",
        "assigned to ann",
    ]
    assert {"finding suspect", f"duplicate of {first}", f"same cause {first}"} < {*lines(second)}
    assert {line.partition(" ")[0] for line in lines(third)} == {
        *("alert", "series", "measured", "change", "last", "first", "finding"),
    }
    assert "last worse" in "\n".join(lines(third)) and "first better" in "\n".join(lines(third))


def test_the_commits_of_an_alert_are_named_where_the_repository_knows_them(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (identity,) = add(alerts, an_alert(1))
    subjects = {"last_good": "sched: go", "first_bad": "sched: wait", "tip": ""}
    monkeypatch.setattr(alert_range, "describe_range", lambda *_: {"commits": 2, "subjects": subjects})
    lines = [" ".join(line.split()) for line in printed(capsys, "show", identity)[0].splitlines()]
    assert "range 2 commits after 'last good', up to 'first bad'" in lines
    named = [lines[lines.index(subject) - 1].rsplit(" ", 1)[0] for subject in ("sched: go", "sched: wait")]
    assert named == ["last good", "first bad"]


def test_a_person_and_nobody_exclude_each_other(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]
) -> None:
    (identity,) = add(alerts, an_alert(1, assignee="ann"))
    err = printed(capsys, "set", identity, "--assign", "bob", "--unassign", code=1)[1]
    assert "exclude each other" in err and alerts.load(identity).assignee == "ann"


def test_a_narrow_history_says_why_before_it_says_who(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (identity,) = add(alerts, an_alert(1))
    printed(capsys, "set", identity, "--state", "invalid", "--note", "the disk was full")
    monkeypatch.setenv("COLUMNS", "44")
    history = printed(capsys, "show", identity)[0].partition("\n\n")[2]
    assert history.split("\n")[0].split() == ["WHEN", "WHAT", "WHY"]
    assert "the disk was full" in " ".join(history.split())


def test_what_is_set_is_told(alerts: SqlAlerts, capsys: pytest.CaptureFixture[str]) -> None:
    (identity,) = add(alerts, an_alert(1, finding="bisecting", bisection="fake-3f2a"))
    assert printed(capsys, "set", identity, "--assign", "bob") == (
        "",
        f"{identity} is bisecting, assigned to bob\n",
    )
    assert printed(capsys, "set", identity, "--unassign") == ("", f"{identity} is bisecting\n")
    closed = printed(capsys, "set", identity, "--state", "invalid")[1]
    assert closed == (
        f"{identity} is invalid\nits bisection goes on; 'perfbisect cancel fake-3f2a' ends it\n"
    )
    made = json.loads(printed(capsys, "set", identity, "--state", "wontfix", "--json")[0])
    assert (made["state"], made["open"], made["revision"]) == ("wontfix", False, 5)


def test_nothing_of_a_text_from_elsewhere_is_obeyed(
    alerts: SqlAlerts, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", PrintableStream(sys.stdout))
    monkeypatch.setattr(sys, "stderr", PrintableStream(sys.stderr))
    (identity,) = add(
        alerts,
        an_alert(
            1,
            series=HOSTILE,
            subject=HOSTILE,
            why=HOSTILE,
            finding="culprit",
            culprits=("c" * 40,),
            assignee=HOSTILE,  # refused now; older versions took it
        ),
    )
    printed(capsys, "set", identity, "--note", HOSTILE)
    for command in (["list"], ["show", identity], ["list", "--json"], ["show", identity, "--json"]):
        out, err = printed(capsys, *command)
        assert "\\x1b" in out or "\\u001b" in out
        assert not any(c in out + err for c in "\x1b\u202e")
    assert json.loads(printed(capsys, "show", identity, "--json")[0])["assignee"] == HOSTILE

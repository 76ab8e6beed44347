"""What is removed, of what `ages`: the commands that free disk space."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from bisector.adapters.store.sql_store import SqlStore
from bisector.interfaces.cli import run
from tests.support import fake_bisection

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """Standard input of a person who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def store(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SqlStore:
    """'fake-old' was cancelled long ago, 'fake-new' can be resumed."""
    with monkeypatch.context() as patched:
        patched.setattr("bisector.adapters.store.sqlite_file.time.time", lambda: 1e9)
        store = fake_bisection.store_bisections(own_folders, monkeypatch)
    console = own_folders / "state" / "bisections" / "fake-old" / "boots" / "boot-001" / "console.log"
    console.parent.mkdir(parents=True)
    console.write_text("x" * 100_000)
    return store


def ids(store: SqlStore) -> list[str]:
    return [summary.id for summary in store.list()]


def test_rm_removes_what_has_ended_and_says_what_it_freed(
    store: SqlStore, own_folders: Path, capsys: Capture
) -> None:
    assert run(["rm", "fake-o", "--yes"]) == 0
    out = capsys.readouterr().out
    assert "bisection  fake-old  2001-09-09  1" in out
    assert "\nfreed 1" in out
    assert ids(store) == ["fake-new"]
    assert not (own_folders / "state" / "bisections" / "fake-old").exists()


def test_rm_of_several_removes_nothing_if_one_can_be_resumed(store: SqlStore, capsys: Capture) -> None:
    assert run(["rm", "fake-old", "fake-new", "--yes"]) == 1
    assert "cure: perfbisect resume fake-new" in capsys.readouterr().err
    assert run(["rm", "fake-old", "fake-odd", "--yes"]) == 1
    assert "did you mean 'fake-old'" in capsys.readouterr().err
    assert ids(store) == ["fake-new", "fake-old"]


@pytest.mark.parametrize("stdin", [io.StringIO("y\n"), None], ids=["no terminal", "closed"])
@pytest.mark.parametrize("command", [["rm", "fake-old"], ["prune"]])
def test_without_a_terminal_nothing_is_removed_unasked(
    store: SqlStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    command: list[str],
    stdin: io.StringIO | None,
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run(command) == 1
    assert "nothing was removed: nobody can be asked here\ncure: say --yes\n" in capsys.readouterr().err
    assert ids(store) == ["fake-new", "fake-old"]


@pytest.mark.parametrize(("answer", "left"), [("y", 1), ("YES", 1), ("", 2), ("n", 2), ("maybe", 2)])
def test_on_a_terminal_a_person_is_asked(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, capsys: Capture, answer: str, left: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    assert run(["prune"]) == (0 if left == 1 else 1)
    assert "Remove 1 item? [y/N]" in capsys.readouterr().err
    assert len(ids(store)) == left


@pytest.mark.parametrize(
    ("key", "code", "said"),
    [("Ctrl-C", 130, "error: interrupted\n"), ("Ctrl-D", 1, "error: nothing was removed\n")],
)
def test_what_is_said_instead_of_an_answer_has_a_line_of_its_own(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, capsys: Capture, key: str, code: int, said: str
) -> None:
    def press() -> str:
        if key == "Ctrl-C":
            raise KeyboardInterrupt
        return ""

    terminal = Terminal()
    monkeypatch.setattr(terminal, "readline", press)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert run(["prune"]) == code
    assert f"Remove 1 item? [y/N] \n{said}" in capsys.readouterr().err
    assert len(ids(store)) == 2


def test_a_dry_run_changes_nothing(store: SqlStore, capsys: Capture) -> None:
    assert run(["prune", "--dry-run"]) == 0
    assert "at least 1" in capsys.readouterr().out
    assert ids(store) == ["fake-new", "fake-old"]


def test_a_dry_run_as_json_says_that_nothing_was_removed(store: SqlStore, capsys: Capture) -> None:
    assert run(["prune", "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dry_run"], [item["removed"] for item in found["items"]]) == (True, [False])


def test_twenty_are_listed_and_the_others_counted(
    store: SqlStore, own_folders: Path, capsys: Capture
) -> None:
    graphs = own_folders / "cache" / "graphs"
    graphs.mkdir(parents=True)
    for number in range(22):
        (graphs / f"graph-{number:02}").write_text("x")
        os.utime(graphs / f"graph-{number:02}", (1e6 + number, 1e6 + number))
    assert run(["prune", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert [f"graph-{number:02}" in out for number in range(22)] == [True] * 20 + [False] * 2
    assert "and 3 more; --json lists all" in out


def test_json_says_what_was_removed(store: SqlStore, own_folders: Path, capsys: Capture) -> None:
    assert run(["prune", "--json", "--yes"]) == 0
    found = json.loads(capsys.readouterr().out)
    (item,) = found["items"]
    assert (item["kind"], item["name"], item["removed"]) == ("bisection", "fake-old", True)
    assert found["freed_bytes"] >= item["bytes"] > 100_000
    assert item["path"] == str(own_folders / "state" / "bisections" / "fake-old")
    assert run(["prune", "--json", "--yes"]) == 0
    assert json.loads(capsys.readouterr().out) == {"dry_run": False, "items": [], "freed_bytes": 0}


def test_nothing_to_remove_makes_no_state(own_folders: Path, capsys: Capture) -> None:
    assert run(["prune"]) == 0
    assert capsys.readouterr().out == "Nothing to remove.\n"
    assert not (own_folders / "state").exists()


@pytest.mark.parametrize("keep", ["0d", "-1d", "90", "1h", "d", "1.5d", "nan"])
def test_an_age_of_less_than_a_day_is_refused(store: SqlStore, capsys: Capture, keep: str) -> None:
    assert run(["prune", f"--keep={keep}", "--yes"]) == 1
    said = capsys.readouterr().err
    assert f"'{keep}' is not an age of a day or more\ncure: write days or weeks: 90d, 12w" in said
    assert ids(store) == ["fake-new", "fake-old"]


@pytest.mark.parametrize("keep", ["9999999d", "100001w", "999999999999w", f"{'9' * 4000}d"])
def test_an_age_beyond_all_dates_is_said_to_be_too_large(store: SqlStore, capsys: Capture, keep: str) -> None:
    assert run(["prune", f"--keep={keep}", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "' is more than 700,000 days\ncure: write days or weeks: 90d, 12w" in said and len(said) < 200
    assert run(["prune", "--keep", "0700000d", "--dry-run"]) == 0
    assert ids(store) == ["fake-new", "fake-old"]


def test_an_age_in_weeks_is_seven_times_as_many_days(store: SqlStore, capsys: Capture) -> None:
    assert run(["prune", "--keep", "2000w", "--dry-run"]) == 0
    assert capsys.readouterr().out == "Nothing to remove.\n"

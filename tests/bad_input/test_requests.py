"""Requests that hold no wrong value, yet mean nothing; arguments of every command; a damaged state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application
from tests.bad_input.harness import Row, check_row, each_row
from tests.bad_input.test_options import NEEDED, NO_VALUE

PLAN = ["plan", "--repo", "linux", "--workload", "pipe-test"]
START = ["start", *PLAN[1:]]
ENDS = ["--good", "v1", "--bad", "v5"]
SIMULATE = ["simulate", "--trials", "2", "--commits", "8", "--jobs", "1"]
COMPARE = ["compare", "old.txt", "new.txt"]

MEANINGLESS = [
    Row("a range from nothing", ["kernel", "check", "v8..v1", "--repo", "linux"], ["'v8' names no commit"]),
    Row("a range without ends", ["kernel", "check", "..", "--repo", "linux"], ["'..'"]),
    Row(
        "a range of three", ["kernel", "check", "v1..v2..v3", "--repo", "linux"], ["'v2..v3' names no commit"]
    ),
    Row("a skip of dots", [*PLAN, *ENDS, "--skip", ".."], ["--skip '..' is not a range"]),
    Row("a skip with half a range", [*PLAN, *ENDS, "--skip", "v2.."], ["--skip 'v2..' is not a range"]),
    Row("a skip backwards", [*PLAN, *ENDS, "--skip", "v4..v2"], ["v4..v2 is empty", "--skip v2..v4"]),
    Row("a skip of an end", [*PLAN, *ENDS, "--skip", "v5"], ["--skip covers the bad end"]),
    Row("an end that is excluded", [*PLAN, "--good", "^v1", "--bad", "v5"], ["'^v1' is not the name"]),
    Row("an end that is a range", [*PLAN, "--good", "v1..v2", "--bad", "v5"], ["v1..v2"]),
    Row("an end that is a tree", [*PLAN, "--good", "v1^{tree}", "--bad", "v5"], ["v1^{tree}"]),
    Row("an end that is a file", [*PLAN, "--good", "v1:Makefile", "--bad", "v5"], ["v1:Makefile"]),
    Row(
        "priors of another range",
        [*START, *ENDS, "--priors", "own.toml"],
        ["own.toml:2: key 'commits.1234567': no commit that is searched has this id", "git log GOOD..BAD"],
        files={"own.toml": "[commits]\n1234567 = 8\n"},
    ),
    Row(
        "priors that exclude",
        [*START, *ENDS, "--priors", "own.toml"],
        ["own.toml:2: key 'paths.mm/': must be from 0.001 to 1,000 (got 0)"],
        files={"own.toml": "[paths]\n'mm/' = 0\n"},
    ),
    Row("priors of nobody", [*PLAN, *ENDS, "--priors", "~no-such-user/x"], ["no such user's home"]),
    Row("a path outside", [*PLAN, *ENDS, "--", "../old.txt"], ["../old.txt"]),
    Row("an absolute path", [*PLAN, *ENDS, "--", "/etc/passwd"], ["/etc/passwd"]),
    Row("a path with a pattern that fails", [*PLAN, *ENDS, "--", ":(nonsense)x"], [":(nonsense)x"]),
    Row("better twice", [*COMPARE, "--better", "lower", "--better", "higher"], ["--better"]),
    Row("better of one twice", [*COMPARE, "--better", "a=lower", "--better", "a=higher"], ["--better"]),
    Row("a negative budget", [*SIMULATE, "--max-cost", "-1"], ["--max-cost"]),
    Row("costs of nothing", [*SIMULATE, "--cost", "build=0,boot=0,run=0"], ["--cost: nothing costs"]),
    Row("costs without names", [*SIMULATE, "--cost", "0,0,0"], ["--cost: '0'"]),
    Row("a cost twice", [*SIMULATE, "--cost", "build=1,build=2"], ["--cost: 'build=2'", "there twice"]),
    Row("a culprit twice", [*SIMULATE, "--culprits", "3:2,3:2"], ["--culprits"]),
    Row("a cost that is no number", [*SIMULATE, "--cost", "build=nan"], ["--cost: 'build=nan' is no cost"]),
    Row("a negative cost", [*SIMULATE, "--cost", "run=-1"], ["--cost: 'run=-1' is no cost"]),
    Row("a drift without end", [*SIMULATE, "--drift", "walk:inf"], ["--drift: 'inf' is not a valid drift"]),
    Row("a drift of no number", [*SIMULATE, "--drift", "walk:nan"], ["--drift: 'nan' is not a valid drift"]),
    Row("an effect of no number", [*SIMULATE, "--culprits", "3:nan"], ["--culprits: the effect of '3:nan'"]),
    Row("an effect below zero", [*SIMULATE, "--culprits", "3:-200"], ["--culprits: the effect of '3:-200'"]),
    Row("a culprit of nothing", [*SIMULATE, "--culprits", "3:0"], ["needs a threshold"]),
    Row("a parameter of a fixed workload", ["workload", "run", "./mine", "--param", "a=1"], ["'a'"]),
]


def arguments() -> Iterator[Row]:
    """Yield rows for each argument of each command: empty, too long, no text."""

    def walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, f"{path} {name}".strip())
        yield from ((path, one) for one in command.params if one.param_type_name == "argument")

    for command, parameter in walk(typer.main.get_command(application()), ""):
        needed = NEEDED.get(command, [])
        for kind, (value, says) in NO_VALUE.items():
            name = f"{command} {parameter.name} {kind}".replace(" ", "-")
            if command != "help" and not (kind == "empty" and needed[:1] and not needed[0].startswith("-")):
                yield Row(name, [*command.split(), *needed, value], [says])


ROWS = [*MEANINGLESS, *arguments()]


@each_row(ROWS)
def test_a_request_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)


def damage(statement: str, value: str) -> Callable[[Path], None]:
    """Return what changes the state of a place by a statement of SQL."""

    def change(place: Path) -> None:
        with closing(sqlite3.connect(place / "state" / "perfbisect.sqlite")) as database:
            assert database.execute(statement, (value,)).rowcount > 0
            database.commit()

    return change


BROKEN = ("{", "[1]", "null", '{"type": "Ran"}', '{"type": "Nothing"}', "{" * 5000, '{"a": 1, "a": 2}')
"""What is no record, no decision and no request."""

PLACES = {
    "UPDATE events SET body = ? WHERE kind = 'record'": ["report", "show", "log", "status"],
    "UPDATE events SET body = ? WHERE kind = 'decision'": ["report"],
    "UPDATE bisections SET request = ? WHERE id = 'here-open'": ["report", "status", "resume"],
}
"""How a damaged state came about -> commands that read what is damaged."""

DAMAGED = [
    Row(
        f"{statement.split()[1]} {statement.split()[-1]} {number}: {command}",
        [command, "here-open"],
        ["cannot be read"],
        code=3,
        setup=damage(statement, text),
    )
    for statement, commands in PLACES.items()
    for command in commands
    for number, text in enumerate(BROKEN)
]


@each_row(DAMAGED)
def test_a_damaged_state_is_told(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"cpu": {}}'])
def test_a_damaged_description_of_the_host_is_left_out_of_the_report(content: bytes, place: Path) -> None:
    folder = place / "state" / "bisections" / "here-open"
    folder.mkdir(parents=True)
    for name in ("host.json", "commits.json"):
        (folder / name).write_bytes(content)
    assert run(["report", "here-open"]) == 0


WITHOUT_REPOSITORY = {
    "status": (),
    "report": (),
    "log": (),
    "show": (),
    "show of an id": ("--commit", "SHA"),
    "show of an end": ("--commit", "v1"),
}


@pytest.mark.parametrize("name", WITHOUT_REPOSITORY)
def test_what_is_stored_is_shown_without_the_repository(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", "here-open", "--commit", "v1", "--json"]) == 0
    sha = json.loads(capsys.readouterr().out)["commit"]
    remove_repository(place)
    options = [sha[:12] if word == "SHA" else word for word in WITHOUT_REPOSITORY[name]]
    assert run([name.split()[0], "here-open", *options]) == 0
    assert capsys.readouterr().err == ""


def test_a_mark_is_set_without_the_repository(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    remove_repository(place)
    assert run(["mark", "here-open", "v5", "bad"]) == 0
    assert run(["show", "here-open", "--commit", "v5"]) == 0
    assert "bad" in capsys.readouterr().out


def test_a_name_needs_the_repository(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_repository(place)
    row = Row("a tag", ["mark", "here-open", "v3", "bad"], ["'v3' is not an id", "lists the commits tested"])
    check_row(row, place, capsys, monkeypatch)


def remove_repository(place: Path) -> None:
    """Make what the place's bisections name as their repository one that is not there."""
    with closing(sqlite3.connect(place / "state" / "perfbisect.sqlite")) as database:
        ((text,),) = database.execute("SELECT request FROM bisections WHERE id = 'here-open'").fetchall()
        stored = json.loads(text)
        stored["request"]["repo"] = "/nowhere/linux"
        database.execute("UPDATE bisections SET request = ?", (json.dumps(stored),))
        database.commit()


@pytest.mark.parametrize("command", ["status", "resume", "show", "report", "log", "cancel"])
def test_no_bisection_is_said_plainly(
    command: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Row(command, [command], ["there is no bisection yet", "perfbisect start"])
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(place / "fresh"))
    assert run([command]) == 1  # makes the state
    check_row(row, place, capsys, monkeypatch)

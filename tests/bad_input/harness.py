"""The tables of bad input: what a row says, the place where it is tried, and what must hold of every row.

A row is a wrong request: files that are put into the working folder, a command line, and the words that the
refusal must hold: what is wrong, where, and what would be right. `check_row` runs it and asserts

* the exit code, 1 unless the row says otherwise;
* an error in perfbisect's own words, with a cure: no traceback, no defect, no words of pydantic or Typer;
* an answer of bounded length, without control characters;
* that nothing was changed: the state, the repository, the working folder.

The working folder holds what `request_place` makes, and a state with two bisections of v1..v5 in `linux`:
'here-open', with one boot of v1, and 'here-ended'.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bisector.adapters.git.source import GitSource
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.interfaces.cli import run
from bisector.interfaces.cli.terminal import PrintableStream
from bisector.model.decisions import Measure
from bisector.model.records import Booted, Built, Left, Ran
from bisector.model.stored_bisection import Stored
from bisector.schemas.request import Request
from bisector.testing.fakes import METRIC
from tests.bad_input.request_place import make_place
from tests.support.fake_bisection import a_lab, accepted

REPOSITORY = Path(__file__).resolve().parents[2]

LONGEST_ANSWER = 6000
"""Characters of an answer: a list of known names fits, a value of 10,000 does not."""

FOREIGN_WORDS = (
    "Traceback",
    "perfbisect itself failed",
    "This is a defect",
    "pydantic",
    "validation error",
    "Input should",
    "Value error",
    "Invalid value",  # Typer's
    "Usage:",
    "Errno",
    "Error(",
    "<class",
    "object at 0x",
)
"""What no answer may hold: words of libraries, and of Python."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One bad input. says: words of the answer; environment: variables, None removes one.

    setup: what files cannot say, called with the working folder. real: in a process of its own.
    """

    name: str
    arguments: Sequence[str]
    says: Sequence[str] = ()
    files: Mapping[str, str | bytes] = dataclasses.field(default_factory=dict)
    environment: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    setup: Callable[[Path], None] | None = None
    code: int = 1
    real: bool = False


def each_row(rows: Sequence[Row]) -> pytest.MarkDecorator:
    """Return the mark that gives a test every row of a table. Each has its own name and a guard of 60 s."""
    names = [row.name for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"rows of one name: {twice}"
    return pytest.mark.parametrize("row", rows, ids=names)


def make_shared_place(folder: Path) -> Path:
    """Make what all rows share, and return it: the working folder's contents, a cache, and a state."""
    make_place(folder)
    (folder / "cache").mkdir()
    source = GitSource(folder / "linux", cache_dir=folder / "cache" / "graphs")
    good, bad = source.resolve("v1"), source.resolve("v5")
    graph = source.graph(good, bad, first_parent=False, paths=(), skip=())
    request = Request(repo=str(folder / "linux"), good="v1", bad="v5", workload="pipe-test")
    same = {"request": request, "good": good, "bad": bad}
    asked = accepted(a_lab(), testbeds=("me",)).model_copy(update=same).model_dump_json()
    store = SqlStore(open_state_file(folder / "state" / "perfbisect.sqlite"))
    store.create(Stored("here-ended", 1.0, asked, "cancelled", graph))
    store.create(Stored("here-open", 2.0, asked, "interrupted", graph))
    store.decide("here-open", Measure(graph.good, 1, "verify", "the good end comes first"))
    for record in (
        Built(graph.good, True, 60.0, binary="a"),
        Booted("boot-001", graph.good, "me", True, 10.0, 100.0, purpose="verify"),
        Ran("boot-001", 0, {METRIC: 100.0}, 2.0, 102.0),
        Left("boot-001"),
    ):
        store.append("here-open", record)
    return folder


def enter_place(shared: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder a place of its own, with a copy of the state, and work in it. The rest is linked."""
    for path in shared.iterdir():
        if path.name == "state":
            shutil.copytree(path, folder / "state")
        elif path.name != "cache":
            (folder / path.name).symlink_to(path)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("PERFBISECT_CACHE_DIR", str(shared / "cache"))
    monkeypatch.setenv("PERFBISECT_LAB", str(shared / "lab.yml"))
    return folder


def check_row(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Run a row in its place, assert all that must hold of every row, and return the answer."""
    for name, content in row.files.items():
        path = place / name
        if path.is_symlink():
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for variable, value in row.environment.items():
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    if row.setup is not None:
        row.setup(place)
    before = _contents(place)
    code, out, err = (_run_really if row.real else _run_here)(row.arguments, capsys)
    assert code == row.code, f"exit code {code}:\n{err}"
    assert out == "", f"a refusal has no result:\n{out}"
    check_answer(err, row.says)
    assert _contents(place) == before, "a wrong request changes nothing"
    return err


def check_answer(err: str, says: Sequence[str] = ()) -> None:
    """Assert that an answer on stderr has the form of an error of perfbisect, and holds these words."""
    assert err.startswith("error: ") and err.endswith("\n"), err
    for words in FOREIGN_WORDS:
        assert words not in err, err
    assert re.search(r"^cure: \S", err, re.MULTILINE), f"no cure:\n{err}"
    assert len(err) <= LONGEST_ANSWER, f"{len(err)} characters:\n{err[:1000]} ..."
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", err), repr(
        err
    )
    for words in says:
        assert words in err, err


def _run_here(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, PrintableStream(getattr(sys, name)))
        code = run(arguments)
    return code, *capsys.readouterr()


def _run_really(arguments: Sequence[str], _: object) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from bisector.interfaces.cli import main; main()", *arguments],
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def _contents(place: Path) -> dict[str, bytes | str]:
    """Return name -> content of all files of a place, links not followed, and what the database holds.

    A database that is opened writes its log and index anew, so its rows are compared, not its bytes.
    """
    found: dict[str, bytes | str] = {}
    for path in sorted(place.rglob("*")):
        name = os.fsencode(path.relative_to(place)).decode(errors="replace")
        if path.is_symlink() or not path.is_file():
            found[name] = ""
        elif path.suffix == ".sqlite":
            found[name] = _rows(path)
        elif not path.name.endswith(("-wal", "-shm")):
            found[name] = path.read_bytes()
    return {name: content for name, content in found.items() if not name.endswith(("-wal", "-shm"))}


def _rows(database: Path) -> bytes | str:
    try:
        with closing(sqlite3.connect(database)) as connection:
            return "\n".join(connection.iterdump())
    except sqlite3.DatabaseError:  # a row about a damaged database
        return database.read_bytes()

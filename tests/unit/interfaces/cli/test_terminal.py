"""The exit of text: what is not perfbisect's own escape sequence is shown, whoever writes it."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.interfaces.cli import output
from bisector.interfaces.cli.terminal import PrintableStream, guard_streams, own, unguarded
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval, Measure
from bisector.model.printable import printable
from bisector.model.records import Booted, Built, Marked, Ran, RunFailed
from bisector.model.stored_bisection import Stored
from bisector.testing.fakes import METRIC
from tests.support import fake_bisection
from tests.support.installed_command import PERFBISECT, read_terminal
from tests.support.small_git import SmallGit


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _guarded(monkeypatch: pytest.MonkeyPatch) -> _Terminal:
    """Put stdout behind the exit; return what a terminal then gets."""
    terminal = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", PrintableStream(terminal))
    return terminal


def test_only_own_sequences_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = _guarded(monkeypatch)
    print(output.bad("failed \x1b[35m") + " \x1b]0;title\x07")
    assert guarded.getvalue() == "\x1b[31mfailed \\x1b[35m\x1b[0m \\x1b]0;title\\x07\n"


def test_the_mark_of_one_stream_says_nothing_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = _guarded(monkeypatch)
    other = PrintableStream(_Terminal())
    print(other.own("\x1b[2J"))
    assert "\x1b" not in guarded.getvalue()


def test_several_texts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = _guarded(monkeypatch)
    sys.stdout.writelines(["a\x9b", "b\n"])
    assert guarded.getvalue() == "a\\x9bb\n"


def test_what_the_stream_is_can_still_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = _guarded(monkeypatch)
    assert sys.stdout.isatty()
    assert unguarded(sys.stdout) is guarded
    assert unguarded(guarded) is guarded
    assert own("\x1b[K", guarded) == "\x1b[K"


def test_both_streams_are_guarded_once_and_a_closed_one_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", _Terminal())
    guard_streams()
    guard_streams()
    assert sys.stdout is None
    assert isinstance(unguarded(sys.stderr), _Terminal)


def test_a_log_goes_through_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(PrintableStream(stream))
    handler.emit(logging.LogRecord("x", logging.WARNING, "", 0, "said %s", ("\x1b[2J",), None))
    assert stream.getvalue() == "said \\x1b[2J\n"


def test_a_traceback_of_a_guarded_process_is_shown() -> None:
    code = (
        "from bisector.interfaces.cli.terminal import guard_streams; guard_streams();"
        "raise ValueError('guest said \\x1b]52;c;eA==\\x07')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "guest said \\x1b]52;c;eA==\\x07" in done.stderr
    assert "\x1b" not in done.stderr


def test_json_stays_json_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = _guarded(monkeypatch)
    output.print_json({"subject": "\x9b31m\x1b[2J\u202e"})
    assert json.loads(guarded.getvalue()) == {"subject": "\x9b31m\x1b[2J\u202e"}
    assert not set("\x9b\x1b\u202e") & set(guarded.getvalue())


# --- the real command line, piped and on a terminal ---------------------------------------------------------

HOSTILE = (
    "\x1b]0;owned\x07 \x1b]52;c;b3duZWQ=\x07 \x9b35mcolour \x9d0;t\x9c \x1b[35;1m \u202egnp.exe\u2066 "
    "\u200b\x7f [bold red]markup[/]"
)
"""A title, a clipboard, colours in 7 and 8 bits, letters turned around, nothing to see, and rich's markup."""

OWN = re.compile(r"\x1b\[(0|1|31|32|33|K|2K|1A|\?25[lh])?m?|\r")
"""What perfbisect and rich may send to a terminal."""


@pytest.fixture(scope="module")
def hostile_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder with a bisection whose commits, logs, console and testbed say HOSTILE."""
    folder = tmp_path_factory.mktemp("hostile")
    repo = SmallGit(folder / "repo").make("a\nb: a\nc: b")
    for name, parent in (("d", "c"), ("e", "d")):
        repo.git("checkout", "-q", parent)
        author = ["-c", f"user.name=Eve {HOSTILE} Il", "-c", "user.email=e@x"]
        repo.git(*author, "commit", "-q", "--allow-empty", "-m", f"sched: {HOSTILE} faster")
        repo.git("tag", name)
    shas = tuple(repo.git("rev-parse", name).strip() for name in "abcde")
    graph = CommitGraph(shas, ((), (0,), (1,), (2,), (3,)), (False, True, True, True, True), 0, 4)
    accepted = fake_bisection.accepted(fake_bisection.a_lab())
    asked = accepted.request.model_copy(update={"repo": str(repo.path)})
    accepted = accepted.model_copy(update={"request": asked, "good": shas[0], "bad": shas[4]})
    store = SqlStore(open_state_file(folder / "state" / "perfbisect.sqlite"))
    finding = Finding((4,), Interval(0.09, 0.1, 0.11), 0.97, parents=(3,), note=HOSTILE, certified=True)
    conclusion = Conclusion(Ending.CULPRIT, HOSTILE, (finding,), warnings=(HOSTILE,))
    store.create(Stored("hostile", 1.0, accepted.model_dump_json(), "running", graph))
    store.decide("hostile", Measure(4, 2, "verify", HOSTILE))
    for record in (
        Built(2, False, 1.0, failure=f"cc1: {HOSTILE}", details=HOSTILE),
        Booted("b1", 1, HOSTILE, False, 1.0, 100.0, failure=HOSTILE, details=f"Kernel panic: {HOSTILE}"),
        Booted("b2", 4, HOSTILE, True, 1.0, 100.0, facts={"cmdline": HOSTILE, HOSTILE: "1"}, console=HOSTILE),
        Ran("b2", 0, {METRIC: 100.0}, 2.0, 102.0, flags=("warn",), raw=HOSTILE),
        RunFailed("b2", f"the output has no metric\ngit bisect good {shas[2]}", HOSTILE),
        Marked(3, "bad", HOSTILE),
    ):
        store.append("hostile", record)
    store.set_status("hostile", "done", conclusion)
    return folder


def _run(folder: Path, *arguments: str, terminal: bool = False) -> str:
    """Run the real command in a process; return all that it wrote, to pipes or to a terminal."""
    command = [PERFBISECT, *arguments]
    environment = {**os.environ, "PERFBISECT_STATE_DIR": str(folder / "state"), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    if not terminal:
        done = subprocess.run(command, env=environment, capture_output=True, cwd=folder, timeout=60)
        return (done.stdout + done.stderr).decode()
    return read_terminal(command, environment, folder)


def _shows_and_obeys_nothing(text: str) -> None:
    left = OWN.sub("", text)
    assert not [hex(ord(c)) for c in left if printable(c) != c]
    assert "\\x9b35m" in text or "\\u009b35m" in text  # it did arrive, as text


@pytest.mark.parametrize(
    "arguments", [("report",), ("log",), ("show", "--commit", "e"), ("report", "--json")]
)
def test_no_control_character_reaches_a_pipe(hostile_state: Path, arguments: tuple[str, ...]) -> None:
    text = _run(hostile_state, *arguments)
    assert "\x1b" not in text and "\r" not in text
    _shows_and_obeys_nothing(text)
    if arguments == ("report", "--json"):
        assert HOSTILE in json.loads(text)["warnings"]
    if arguments == ("log",):
        broken = SmallGit(hostile_state / "repo").git("rev-parse", "c").strip()
        assert f"git bisect skip {broken}" in text.splitlines()
        assert f"git bisect good {broken}" not in text.splitlines()  # what a guest said is no verdict


@pytest.mark.parametrize("arguments", [("show",), ("status",)])
def test_no_control_character_reaches_a_terminal(hostile_state: Path, arguments: tuple[str, ...]) -> None:
    _shows_and_obeys_nothing(_run(hostile_state, *arguments, terminal=True))


def test_the_names_of_files_and_hosts_are_shown(hostile_state: Path) -> None:
    _shows_and_obeys_nothing(_run(hostile_state, "compare", f"{HOSTILE}.txt", "x", terminal=True))
    lab = hostile_state / "lab.yml"
    host = json.dumps("\x9b35m\u202egnp.exe")  # Ansible expands what stands in brackets
    lab.write_text(f"testbeds: {{hosts: {{{host}: {{perfbisect_kind: libvirt}}}}}}\n")
    _shows_and_obeys_nothing(_run(hostile_state, "lab", "list", "--lab", str(lab), terminal=True))


def test_the_reports_that_are_kept_are_printable(hostile_state: Path) -> None:
    _run(hostile_state, "report", "--output", "report.txt")
    _shows_and_obeys_nothing((hostile_state / "report.txt").read_text())


def test_progress_on_a_terminal_shows_what_it_is_told(tmp_path: Path) -> None:
    program = f"""
import logging
from bisector.engine.events import Event
from bisector.interfaces.cli.progress import ProgressDisplay
from bisector.interfaces.cli.terminal import guard_streams

guard_streams()
hostile = {HOSTILE!r}
with ProgressDisplay(lambda _: hostile, terminal=True) as display:
    for kind in ("decision", "note", "trouble", "run", "done"):
        display(Event(kind, hostile, 0, reason=hostile))
    logging.warning(hostile)
    print(hostile)
"""
    text = read_terminal([sys.executable, "-c", program], dict(os.environ, TERM="xterm-256color"), tmp_path)
    _shows_and_obeys_nothing(text)
    assert "[bold red]markup[/]" in text


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_what_the_locale_cannot_write_is_an_escape_and_documents_are_in_utf_8(
    tmp_path: Path, encoding: str
) -> None:
    """A subject in other letters made a defect of perfbisect of every command that showed it."""
    (tmp_path / "perfbisect.toml").write_text('owner = "bö€"\n', encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    shown, document = (
        subprocess.run(
            [PERFBISECT, "settings", "show", *more],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=True,
        ).stdout
        for more in ([], ["--json"])
    )
    assert ("bö" if encoding == "iso-8859-1" else "b\\xf6") + "\\u20ac " in shown.decode(encoding)
    assert "bö€" in [row["value"] for row in json.loads(document.decode("utf-8"))]

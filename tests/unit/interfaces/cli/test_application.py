"""The application: global options hold for one command line, help texts keep their lists.

Commands that only look start without the libraries that compute, measure or run bisections. No time is
measured here: what was imported is the same on every machine. `tests/bench/start_up` has the times.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence, Set
from pathlib import Path

import pytest
import typer.main

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application, keep_lists
from bisector.interfaces.cli.options import global_options

ROOT = Path(__file__).parents[4]
HEAVY = {
    "ansible_runner",
    "asyncio",
    "bisector.engine.bisection_run",
    "bisector.search.planner",
    "bisector.simulation",
    "filelock",
    "git",
    "libvirt",
    "numpy",
    "paramiko",
    "rich",
    "scipy",
    "sqlalchemy",
}
"""None of these may be imported. git is GitPython, which names of commits need; here is no repository."""
LOOK = """
import contextlib, io, json, os, sys
from bisector.interfaces.cli import run
heavy, known, found = set(sys.argv[1].split()), set(), []
for line, completed in json.loads(sys.argv[2]):
    out = io.StringIO()
    if completed:
        os.environ.update(_PERFBISECT_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=completed)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        run([] if completed else line.split())
    new = heavy & set(sys.modules) - known
    known |= new
    found.append((line, out.getvalue(), sorted(new)))
json.dump(found, sys.stdout)
"""
"""Says of command lines what each printed, and which heavy modules it was the first to import. One process
for all of them: to start takes most of the time of each."""


def test_lists_and_indented_lines_keep_their_line_breaks() -> None:
    text = "Words that\nare joined.\n\n  perfbisect list\n  perfbisect show\n\n* one\n* two"
    assert keep_lists(text) == (
        "Words that\nare joined.\n\n\b\n  perfbisect list\n  perfbisect show\n\n\b\n* one\n* two"
    )


def test_global_options_are_forgotten_with_their_command_line(
    own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_folders / "other.toml").write_text("")
    assert run(["--config", "other.toml", "list"]) == 0
    assert global_options().config == Path("other.toml")
    assert run(["list"]) == 0
    assert global_options().config is None


def test_the_version_is_printed_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("perfbisect ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state of three bisections; one has ended, one is interrupted."""
    folder = tmp_path_factory.mktemp("start-up")
    state = folder / "state" / "perfbisect.sqlite"
    state.parent.mkdir()
    data = ROOT / "tests" / "unit" / "adapters" / "store" / "data" / "state-2.sqlite"
    shutil.copy(data, state)
    SqlStore(open_state_file(state))  # converts it, once
    return folder


LOOKING = (
    "--version",
    "help",
    "help plan",
    "workload",
    "kernel",
    "lab",
    "list",
    "list --json",
    "status",
    "status --json",
    "show",
    "show --json",
    "log",
    "report fake-c430600c",
    "report fake-c430600c --json",
    "report fake-cancelled",
    "workload list",
    "workload show pipe-test",
    "kernel list",
    "lab list",
    "rm fake-c430600c",
    "prune --dry-run",
)
COMPLETED = (
    "perfbisect sta",
    "perfbisect status fake",
    "perfbisect start --workload pipe",
    "perfbisect start --workload pipe-test --metric re",
    "perfbisect start --testbed g",
    "perfbisect start --recipe a",
    "perfbisect report --",
)


def looked(
    folder: Path, lines: Sequence[str], *, completed: bool = False, heavy: Set[str] = HEAVY
) -> dict[str, tuple[str, list[str]]]:
    """Return what each line printed, and the heavy modules that it imported."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "PERFBISECT_STATE_DIR": str(folder / "state"),
        "PERFBISECT_CACHE_DIR": str(folder / "cache"),
    }
    rows = [(line, str(len(line.split()) - 1) if completed else "") for line in lines]
    done = subprocess.run(
        [sys.executable, "-c", LOOK, " ".join(heavy), json.dumps(rows)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = {line: (printed, new) for line, printed, new in json.loads(done.stdout)}
    assert found.keys() == set(lines)
    return found


def command_lines(command: object, path: str = "") -> list[str]:
    """Return the line that asks for help, for every command and group."""
    below = getattr(command, "commands", {})
    return [f"{path} --help".strip()] + [
        line for name, one in below.items() for line in command_lines(one, f"{path} {name}".strip())
    ]


def test_commands_that_look_import_nothing_heavy(folder: Path) -> None:
    lines = [*command_lines(typer.main.get_command(application())), *LOOKING]
    assert len(lines) > 40
    for line, (printed, heavy) in looked(folder, lines).items():
        assert printed.strip(), f"'{line}' printed nothing"
        assert "error:" not in printed or line.startswith("rm "), printed
        assert heavy == [], f"'perfbisect {line}' imports {', '.join(heavy)}"


def test_completion_imports_nothing_heavy(folder: Path) -> None:
    found = looked(folder, COMPLETED, completed=True)
    assert found["perfbisect sta"][0].split() == ["start", "status"]
    for line, (printed, heavy) in found.items():
        assert printed.strip(), f"'{line}' was completed by nothing"
        assert heavy == [], f"to complete '{line}' imports {', '.join(heavy)}"


def test_a_heavy_module_is_told_of_the_line_that_imports_it(folder: Path) -> None:
    found = looked(folder, ["lab list", "list", "status"], heavy={"bisector.interfaces.cli.query"})
    assert [len(heavy) for _, heavy in found.values()] == [0, 1, 0]

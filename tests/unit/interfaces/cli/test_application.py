"""The application: global options hold for one command line, help texts keep their lists.

Commands that only look start without the libraries that compute, measure or run bisections. No time is
measured here: what was imported is the same on every machine. `tests/bench/state` has the times.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.store.sql_store import SqlStore
from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import keep_lists
from bisector.interfaces.cli.options import global_options

ROOT = Path(__file__).parents[4]
HEAVY = {
    "ansible_runner",
    "asyncio",
    "bisector.engine.workflows",
    "bisector.search.planner",
    "bisector.simulation",
    "dbos",
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
import sys
from bisector.interfaces.cli import run
code = run(sys.argv[1:])
print(*sys.modules, file=open("modules", "w"))
sys.exit(code)
"""


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
    SqlStore(state)  # converts it, once
    return folder


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "--version",
        "start --help",
        "list",
        "list --json",
        "status",
        "status --json",
        "show",
        "log",
        "report fake-c430600c --json",
        "report fake-cancelled",
        "workload list",
        "kernel list",
    ],
)
def test_commands_that_look_import_nothing_heavy(folder: Path, line: str) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "PERFBISECT_STATE_DIR": str(folder / "state"),
        "PERFBISECT_CACHE_DIR": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", LOOK, *line.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert HEAVY & set((folder / "modules").read_text().split()) == set()


def test_completion_imports_nothing_heavy(folder: Path) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "_PERFBISECT_COMPLETE": "complete_bash",
        "COMP_WORDS": "perfbisect sta",
        "COMP_CWORD": "1",
    }
    look = LOOK.replace("code = run(sys.argv[1:])", "code = 0\ntry: run([])\nexcept SystemExit: pass")
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["start", "status"], done.stderr
    assert HEAVY & set((folder / "modules").read_text().split()) == set()

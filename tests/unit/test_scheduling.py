"""Tests that use the machine are never in two processes at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import APART, BUILDS, scope

TESTS = Path(__file__).parents[1]
FOLDERS = sorted({file.relative_to(TESTS).parts[0] for file in TESTS.rglob("test_*.py")})

SHARES_OUT = """\
from tests.scheduling import MachineTestsTogether
def pytest_xdist_make_scheduler(config, log): return MachineTestsTogether(config, log)
"""
WRITES_ITS_PROCESS = """\
import os
def test_it(): open('{folder}.txt', 'a').write(str(os.getpid()) + ' ')
"""


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_whose_tests_use_the_machine_is_one_scope(folder: str) -> None:
    files = sorted((TESTS / folder).rglob("test_*.py"))
    names = [str(file.relative_to(TESTS.parent)) for file in files]
    names = [name for name in names if not name.startswith(BUILDS)]
    scopes = {scope(f"{name}::test_it[a::b]") for name in names}
    assert scopes == (set(names) if folder in APART else {"machine"})


def test_builds_are_one_scope() -> None:
    files = [str(file.relative_to(TESTS.parent)) for file in (TESTS.parent / BUILDS).rglob("test_*.py")]
    assert len(files) > 1
    assert {scope(f"{name}::test_it") for name in files} == {"builds"}


def test_what_stands_in_no_folder_is_taken_for_one_that_uses_the_machine() -> None:
    assert scope("test_it.py::test_it") == "machine"


def test_two_processes_share_the_files_out(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(SHARES_OUT)
    for folder, names in {"contract": "ab", "integration": "c", "unit": "de"}.items():
        place = tmp_path / "tests" / folder
        place.mkdir(parents=True)
        for name in names:
            (place / f"test_{name}.py").write_text(WRITES_ITS_PROCESS.format(folder=folder))
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-n2", "-p", "no:cacheprovider", "--import-mode=importlib"]
    ended = subprocess.run(
        [*command, f"--rootdir={tmp_path}", "tests"],
        cwd=tmp_path,
        env={**outer, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "5 passed" in ended.stdout, ended.stdout + ended.stderr
    written = {
        name: (tmp_path / f"{name}.txt").read_text().split() for name in ("contract", "integration", "unit")
    }
    machine = written["contract"] + written["integration"]
    assert (len(machine), len(set(machine))) == (3, 1)
    assert set(written["unit"]).isdisjoint(machine)

"""Tests that use the machine are never in two processes at once."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import APART, BUILDS, scope

TESTS = Path(__file__).parents[1]
FILES = sorted(str(file.relative_to(TESTS.parent)) for file in TESTS.rglob("test_*.py"))
LAYERS = ("contract", "integration", "end_to_end", "lab", "campaign")
USES_THE_MACHINE = re.compile(r"\b(libvirt|qemu|sshd|loopback_sshd|ansible-playbook|tests\.lab)\b")
"""Words of a test of these layers that needs a guest, an SSH server or a machine."""

SHARES_OUT = """\
from tests.scheduling import MachineTestsTogether
def pytest_xdist_make_scheduler(config, log): return MachineTestsTogether(config, log)
"""
WRITES_ITS_PROCESS = """\
import os
def test_it(): open('{folder}.txt', 'a').write(str(os.getpid()) + ' ')
"""


def scopes(*folders: str) -> dict[str, str]:
    """Return the scope of each file of these folders but builds."""
    inside = tuple(f"tests/{folder}/" for folder in folders)
    files = [name for name in FILES if name.startswith(inside) and not name.startswith(BUILDS)]
    return {name: scope(f"{name}::test_it[a::b]") for name in files}


def test_what_uses_the_machine_is_one_scope() -> None:
    used = {
        name: found
        for name, found in scopes(*LAYERS).items()
        if USES_THE_MACHINE.search((TESTS.parent / name).read_text())
    }
    assert len(used) > 10
    assert set(used.values()) == {"machine"}
    assert set(scopes("end_to_end", "lab", "campaign").values()) == {"machine"}


@pytest.mark.parametrize("start", APART)
def test_files_that_share_nothing_are_scopes_of_their_own(start: str) -> None:
    found = {name: place for folder in os.listdir(TESTS) for name, place in scopes(folder).items()}
    apart = {name: place for name, place in found.items() if name.startswith(start)}
    assert apart
    assert all(name == place for name, place in apart.items())


def test_builds_are_one_scope() -> None:
    files = [name for name in FILES if name.startswith(BUILDS)]
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

"""The built wheel, in an environment and a folder that know nothing of the checkout: what looks works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.small_git import LINUX, SmallGit

ROOT = Path(__file__).resolve().parents[2]

HELP_OF_ALL = """
import sys, typer.main, bisector
from bisector.interfaces.cli import run
from bisector.interfaces.cli.application import application

def paths(command, path=()):
    below = getattr(command, "commands", {})
    return [p for name in below for p in paths(below[name], (*path, name))] or [path]

for path in paths(typer.main.get_command(application())):
    assert run([*path, "--help"]) == 0, path
    print("HELPED", *path)
print("FROM", bisector.__file__)
"""


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel in it. outside: an empty folder."""

    wheel: Path
    environment: Path
    outside: Path

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment as a user does who has no checkout."""
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PERFBISECT"))
        }
        folders = {
            f"PERFBISECT_{name}_DIR": str(self.outside.parent / name) for name in ("STATE", "CACHE", "LOCK")
        }
        return subprocess.run(
            [str(self.environment / "bin" / command[0]), *command[1:]],
            cwd=self.outside,
            env=own | folders | {"COLUMNS": "80"} | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def perfbisect(self, *arguments: str, code: int = 0) -> str:
        """Run perfbisect; return what it prints."""
        done = self.run("perfbisect", *arguments)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout, with the dependencies that the tests run with: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run([*pip, *build], check=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([*pip, "--python", python, "install", "--no-deps", str(wheel)], check=True, cwd=folder)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    # A path in a .pth is searched after the folder itself, and .pth files there, such as ours, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    for program in Path(sys.executable).parent.glob("ansible*"):
        (folder / "venv" / "bin" / program.name).symlink_to(program)
    (folder / "outside").mkdir()
    return Installed(wheel, folder / "venv", folder / "outside")


def test_every_command_has_its_help(installed: Installed) -> None:
    done = installed.run("python", "-c", HELP_OF_ALL)
    assert done.returncode == 0, done.stderr
    helped = [line for line in done.stdout.splitlines() if line.startswith("HELPED")]
    assert {"HELPED start", "HELPED workload check", "HELPED kernel gc"} <= set(helped)
    assert done.stdout.splitlines()[-1].startswith(f"FROM {installed.environment}")
    manual = {path.stem for path in (installed.environment / "share/man/man1").glob("*.1")}
    assert {line.replace("HELPED", "perfbisect").replace(" ", "-") for line in helped} <= manual


def test_workloads_recipes_and_the_lab_are_inside(installed: Installed) -> None:
    listed = json.loads(installed.perfbisect("workload", "list", "--json"))
    folders = {path.parent.name for path in (ROOT / "workloads").glob("*/workload.yaml")}
    assert folders <= {row["name"] for row in listed}
    assert "pipe-test" in installed.perfbisect("workload", "show", "pipe-test")
    assert "CONFIG_" in installed.perfbisect("kernel", "explain", "--recipe", "x86_64-small")
    assert str(installed.environment) in installed.perfbisect("lab", "list", "--json")
    assert "cache_dir" in installed.perfbisect("settings", "show")
    assert ", valid" in installed.perfbisect("settings", "check")
    for command in (("list",), ("kernel", "list"), ("prune", "--dry-run")):
        installed.perfbisect(*command)
    assert not list(installed.outside.iterdir()), "to look leaves nothing behind"


def test_a_range_is_planned(installed: Installed, tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "linux")
    small.make(f"a | {' '.join(LINUX)}\nb: a | kernel/fork.c\nc: b | kernel/fork.c")
    ends = ("--good", small.ids["a"], "--bad", small.ids["c"])
    said = installed.perfbisect("plan", "--repo", str(small.path), *ends, "--workload", "pipe-test", "--json")
    assert json.loads(said)["candidates"] == 2


def test_results_are_compared_and_searches_simulated(installed: Installed) -> None:
    for name, values in (("old", "100 101 102 100 101"), ("new", "120 121 122 120 121")):
        (installed.outside / name).write_text(values.replace(" ", "\n") + "\n", encoding="utf-8")
    try:
        assert "slower" in installed.perfbisect("compare", "old", "new", "--unit", "s")
    finally:
        for name in ("old", "new"):
            (installed.outside / name).unlink()
    assert "1 simulated bisection," in installed.perfbisect("simulate", "--commits", "8", "--trials", "1")


def test_what_is_missing_can_be_installed(installed: Installed) -> None:
    done = installed.run("perfbisect", "doctor", "--fix", "--dry-run", "--json", PATH="/usr/bin:/bin")
    assert done.returncode in (0, 3), done.stderr
    assert "git" in {row["name"] for row in json.loads(done.stdout)}
    assert "error" not in done.stderr
    with zipfile.ZipFile(installed.wheel) as packed:
        for name in ("install", "packages"):
            inside = packed.read(f"bisector/_data/packaging/debian/{name}")
            assert inside == (ROOT / "packaging/debian" / name).read_bytes()


def test_shells_complete_workloads(installed: Installed) -> None:
    # The shell is found by the processes above; whoever started these tests may be none, or another one.
    below_bash = f"{installed.environment}/bin/perfbisect --show-completion && true"
    assert "complete -o default -F" in installed.run("/bin/bash", "-c", below_bash).stdout
    asked = {
        "_PERFBISECT_COMPLETE": "complete_bash",
        "COMP_WORDS": "perfbisect workload show pipe",
        "COMP_CWORD": "3",
    }
    assert "pipe-test" in installed.run("perfbisect", **asked).stdout.split()


def test_the_wheel_has_what_runs_and_nothing_else(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as packed:
        names = packed.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {"bisector"} == {top for top in tops if not top.startswith("perfbisect-")}
    assert not [name for name in names if "/tests/" in name or "__pycache__" in name or "/test_" in name]

"""Two perfbisects with different state folders and one testbed: the second waits, and says for whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bisector.adapters.store.sql_store import SqlStore
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0

Start = Callable[[str, float], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return what starts a bisection on fakes in a state folder of this name, at a pace."""
    started: list[subprocess.Popen[bytes]] = []

    def run(name: str, pace: float) -> subprocess.Popen[bytes]:
        (tmp_path / name).mkdir()
        with (tmp_path / name / "said").open("wb") as said:
            command = [
                sys.executable,
                "tests/support/fake_bisection.py",
                str(tmp_path / name),
                "1",
                str(pace),
            ]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def said(folder: Path) -> str:
    return (folder / "said").read_text()


def status(folder: Path) -> str:
    (one,) = SqlStore(folder / "perfbisect.sqlite").list()
    return one.status


def test_the_second_waits_says_for_whom_and_measures_when_the_first_is_gone(
    start: Start, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first = start("one", 0.2)
    until(lambda: "boot " in said(one), SECONDS)
    second = start("two", 0.0)
    until(lambda: "waiting for" in said(two), SECONDS)
    line = next(line for line in said(two).splitlines() if "waiting for" in line)
    assert f"waiting for the testbed 'fake': process {first.pid} (bisection 'fake-" in line
    assert f"state folder {one}), since 20" in line
    assert "boot " not in said(two)
    first.kill()
    assert second.wait(SECONDS) == 0
    assert "boot " in said(two)


@pytest.mark.parametrize("how", ["terminated", "cancelled"])
def test_a_wait_for_a_testbed_can_be_ended(start: Start, tmp_path: Path, how: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    start("one", 0.2)
    until(lambda: "boot " in said(one), SECONDS)
    second = start("two", 0.0)
    until(lambda: "waiting for" in said(two), SECONDS)
    if how == "terminated":
        second.send_signal(signal.SIGTERM)
    else:
        store = SqlStore(two / "perfbisect.sqlite")
        store.set_status(store.list()[0].id, "cancelled")
    assert second.wait(SECONDS) == 130
    assert status(two) == ("interrupted" if how == "terminated" else "cancelled")
    assert "boot " not in said(two)
    assert status(one) == "running"

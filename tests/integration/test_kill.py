"""Durability: real processes on fakes, really killed, with the real engine, store and planner."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.app.execution import following
from bisector.engine.state_lock import is_executed, lock
from bisector.model.decisions import Ending
from bisector.model.records import Booted, Left, Ran
from bisector.model.stored_bisection import Stored
from tests.campaign.record_checks import repeated_work
from tests.support import fake_bisection as fake
from tests.support.small_disk import fill, mounted
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]


def program(name: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "support" / name), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def the_one(folder: Path) -> tuple[SqlStore, Stored]:
    store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
    (one,) = store.list()
    return store, store.load(one.id)


def check_records(folder: Path) -> None:
    """No finished build or run was repeated, whatever was killed."""
    store, stored = the_one(folder)
    rows = [*store.records(stored.id), *store.decisions(stored.id)]
    assert repeated_work(sorted(rows, key=lambda row: row[0])) == []
    log = (folder / "kernels" / "builds.log").read_text().split()
    assert len(log) == len(set(log))
    for _, record in rows:
        if isinstance(record, Ran):
            assert repr(record.values["simulated"]) in Path(record.raw).read_text()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kill_9_at_random_moments_changes_nothing(tmp_path: Path, seed: int) -> None:
    process = program("kill_often.py", tmp_path, seed, 8)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    result = json.loads(out)
    assert result["killed"] == 8, result
    assert result["code"] == 0, (tmp_path / "out.txt").read_text()[-2000:]
    _, stored = the_one(tmp_path)
    assert stored.status == "done"
    assert stored.conclusion is not None
    assert stored.conclusion.ending is Ending.CULPRIT
    assert stored.conclusion.findings[0].commits == (fake.CULPRIT,)
    check_records(tmp_path)


def _started(folder: Path, pace: float) -> subprocess.Popen[str]:
    """Return a process that has measured something and goes on."""
    process = program("fake_bisection.py", folder, 1, pace)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("run"):
            return process
    raise AssertionError(process.communicate()[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_leave_the_boot_and_can_be_resumed(tmp_path: Path, number: int) -> None:
    process = _started(tmp_path, 0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
    store, stored = the_one(tmp_path)
    assert stored.status == "interrupted"
    left = [r for _, r in store.records(stored.id) if isinstance(r, Left)]
    assert not any(r.lost for r in left)
    boots = [r for _, r in store.records(stored.id) if isinstance(r, Booted)]
    assert len(left) == len(boots)
    again = program("fake_bisection.py", tmp_path, 1, 0)
    _, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    check_records(tmp_path)


def test_a_second_process_watches_and_others_can_mark_and_cancel(tmp_path: Path) -> None:
    first = _started(tmp_path, 0.2)
    try:
        store, stored = the_one(tmp_path)
        second = program("fake_bisection.py", tmp_path, 1, 0)
        assert second.stdout is not None
        assert f"process {first.pid} runs it; watching" in second.stdout.readline()
        for _ in range(20):  # looking does not disturb
            assert is_executed(tmp_path, "running")
        bisections.mark(store, stored, stored.graph.shas[fake.CULPRIT], "bad", "seen by eye")
        bisections.cancel(store, stored)
        until(lambda: not is_executed(tmp_path, "running"), 30)
        _, err = first.communicate(timeout=60)
        assert first.returncode == 130
        assert "was cancelled" in err
        _, err = second.communicate(timeout=60)
        assert (second.returncode, "(cancelled by " in err) == (3, True)
        assert store.status(stored.id) == "cancelled"
    finally:
        first.kill()


def test_ctrl_c_takes_a_waiting_bisection_out_of_the_queue(tmp_path: Path) -> None:
    with lock(tmp_path, "another-1234"):
        waiting = program("fake_bisection.py", tmp_path, 1, 0)
        assert waiting.stdout is not None
        assert "queued: another perfbisect" in waiting.stdout.readline()
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=60)
        assert (waiting.returncode, "no longer watched" in err) == (130, True), err
    assert the_one(tmp_path)[1].status == "interrupted"


def test_watching_ends_with_the_conclusion_of_the_other_process(tmp_path: Path) -> None:
    first = _started(tmp_path, 0.01)
    try:
        store, stored = the_one(tmp_path)
        seen: list[str] = []
        conclusion = following.follow(
            store, stored.id, lambda: is_executed(tmp_path, "running"), lambda e: seen.append(e.kind)
        )
        assert conclusion.findings[0].commits == (fake.CULPRIT,)
        assert {"decision", "run", "boot"} <= set(seen)
        _, err = first.communicate(timeout=60)
        assert first.returncode == 0, err
    finally:
        first.kill()


def test_a_state_of_a_newer_version_is_refused_by_the_whole_program(tmp_path: Path) -> None:
    import sqlite3

    SqlStore(open_state_file(tmp_path / "perfbisect.sqlite"))
    with sqlite3.connect(tmp_path / "perfbisect.sqlite") as connection:
        connection.execute("update about set value = '99'")
    process = program("fake_bisection.py", tmp_path, 1, 0)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "newer perfbisect" in err


def test_a_full_disk_is_infrastructure_and_resumable(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", 5) as folder:
        process = _started(folder, 0.05)
        filler = fill(folder)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 3, said
        assert "disk" in said
        assert "Traceback" not in said
        filler.unlink()
        again = program("fake_bisection.py", folder, 1, 0)
        out, err = again.communicate(timeout=120)
        assert again.returncode == 0, out + err
        _, stored = the_one(folder)
        assert stored.conclusion is not None
        assert stored.conclusion.findings[0].commits == (fake.CULPRIT,)
        check_records(folder)

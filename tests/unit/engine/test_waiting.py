"""Who waits for a bisection is known while it lives, and no longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine.waiting import forget_killed_waiter, is_waited_for, recover, waiter
from bisector.errors import InfrastructureError
from bisector.model.stored_bisection import Stored
from tests.support import fake_bisection as fake

WAIT = """
import sys, time
from pathlib import Path
from bisector.engine.waiting import waiter
with waiter(Path(sys.argv[1]), "b") as first:
    print(first, flush=True)
    time.sleep(60)
"""


def test_one_waits_others_see_it_and_nothing_stays(tmp_path: Path) -> None:
    assert not is_waited_for(tmp_path, "b")
    with waiter(tmp_path, "b") as first:
        assert first
        assert is_waited_for(tmp_path, "b")
        assert not is_waited_for(tmp_path, "c")
        with waiter(tmp_path, "b") as second:
            assert not second
        assert is_waited_for(tmp_path, "b")
    assert not is_waited_for(tmp_path, "b")
    assert not list((tmp_path / "waiting").iterdir())


def test_a_killed_process_waits_no_longer(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAIT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "True\n"
        assert is_waited_for(tmp_path, "b")
        process.kill()
        process.wait()
    assert not is_waited_for(tmp_path, "b")
    with waiter(tmp_path, "b") as first:
        assert first


def test_what_a_killed_executor_left_goes_on_unless_it_was_its_own(tmp_path: Path) -> None:
    store, lab = MemoryStore(), fake.a_lab()
    request = fake.accepted(lab).model_dump_json()
    statuses = {
        "own": "running",
        "left": "running",
        "awaited": "running",
        "detached": "running",
        "next": "queued",
        "over": "done",
    }
    for name, status in statuses.items():
        store.create(Stored(name, 1.0, request, status, lab.graph))
    (tmp_path / "waiting").mkdir()
    (tmp_path / "waiting" / "left").touch()  # its process was killed
    with waiter(tmp_path, "awaited"):
        recover(store, tmp_path, "own")
    now = {name: store.status(name) for name in statuses}
    assert now == {**statuses, "left": "interrupted", "detached": "queued"}
    assert not (tmp_path / "waiting" / "left").exists()


def test_only_a_waiter_that_was_killed_is_forgotten(tmp_path: Path) -> None:
    forget_killed_waiter(tmp_path, "b")
    with waiter(tmp_path, "b"):
        forget_killed_waiter(tmp_path, "b")
        assert is_waited_for(tmp_path, "b")
    left = tmp_path / "waiting" / "b"
    left.touch()
    forget_killed_waiter(tmp_path, "b")
    assert not left.exists()


def test_a_folder_that_may_not_be_written_is_infrastructure(tmp_path: Path) -> None:
    (tmp_path / "waiting").touch()
    with pytest.raises(InfrastructureError, match=r"cannot lock .*waiting"), waiter(tmp_path, "b"):
        pass

"""The campaign of workers: its checks can fail, and a short one finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign.workers.machine_log import Seen, stale_writes, used_by_two
from tests.campaign.workers.run import KINDS


def act(at: float, pid: int, epoch: int, what: str = "run") -> Seen:
    return Seen(at, pid, epoch, what, "x", f"boot-{pid}", 0)


@pytest.mark.parametrize(
    ("acts", "found"),
    [
        ([act(1, 10, 1, "boot"), act(2, 10, 1), act(3, 11, 2, "boot"), act(4, 11, 2)], 0),
        # A frozen worker's run ends when it is thawed: it began before another took the machine.
        ([act(1, 10, 1), act(2, 11, 2, "boot"), act(3, 10, 1, "ran"), act(4, 10, 1, "leave")], 0),
        ([act(1, 10, 1), act(2, 11, 2, "boot"), act(3, 10, 1), act(4, 11, 2)], 1),
        ([act(1, 10, 1), act(2, 11, 2, "boot"), act(3, 10, 1, "boot")], 1),
        ([act(1, 10, 1), act(2, 11, 1)], 1),
    ],
)
def test_what_two_workers_do_to_one_machine_is_found(acts: list[Seen], found: int) -> None:
    assert len(list(used_by_two({"a": acts}))) == found


def test_a_write_of_a_fenced_worker_is_found() -> None:
    good = [
        (1.0, "w0", "joined"),
        (2.0, "w0", "events"),
        (3.0, "w0", "fenced"),
        (3.5, "w1", "events"),
    ]
    assert list(stale_writes(good)) == []
    again = [*good, (4.0, "w0", "joined"), (5.0, "w0", "events")]
    assert list(stale_writes(again)) == []
    assert len(list(stale_writes([*good, (4.0, "w0", "events")]))) == 1


def test_a_line_of_a_machine_is_read_as_it_was_written(tmp_path: Path) -> None:
    acts = [act(1.5, 10, 1, "boot"), act(2.25, 10, 1)]
    (tmp_path / "machine-a").write_bytes(b"".join(one.line() for one in reversed(acts)))
    assert Seen.read(tmp_path) == {"a": acts}


def test_each_kind_of_strike_is_drawn() -> None:
    assert all(weight > 0 for weight in KINDS.values())

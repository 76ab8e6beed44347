"""The mark on a machine, by its real script in a folder of this one."""

from __future__ import annotations

import fcntl
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.machine import machine_mark
from bisector.adapters.machine.machine_mark import MachineMark, MachineUser, machine_user
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.errors import InfrastructureError, MachineInUse


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of marks of a machine, which is this one."""

    def run(_: MachineReach, command: Sequence[str], *, check: bool) -> str:
        done = subprocess.run(
            list(command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=check
        )
        return done.stdout

    monkeypatch.setattr(MachineReach, "run", run)
    monkeypatch.setattr(machine_mark, "FOLDER", str(tmp_path / "mark"))
    monkeypatch.setattr(machine_mark, "AGENT_LOCK", str(tmp_path / "agent.lock"))
    return tmp_path


def mark(domain: str = "one") -> MachineMark:
    user = MachineUser(domain, f"process 7 on {domain}\n(bisection 'x')")
    return MachineMark("box1", MachineReach.__new__(MachineReach), user)


def test_another_domains_mark_refuses_and_names_its_user(there: Path) -> None:
    ours, others = mark("one"), mark("two")
    assert not ours.set(60)
    assert not ours.set(60), "it is renewed"
    with pytest.raises(MachineInUse, match=r"'box1' is in use: process 7 on one \(bisection 'x'\)"):
        others.set(60)
    assert not ours.is_taken_over()


def test_the_same_domain_takes_over_at_once(there: Path) -> None:
    first, next_ = mark(), mark()
    first.set(60)
    assert next_.set(60), "locks or leases say that the first one has ended"
    assert first.is_taken_over()
    assert not next_.is_taken_over()


def test_a_mark_that_nobody_renews_is_stale(there: Path) -> None:
    mark("one").set(-1)
    assert mark("two").set(60)
    file = there / "mark" / "in-use"
    lines = file.read_text().splitlines()
    far = int(time.time()) + 86400
    file.write_text("\n".join([str(far), *lines[1:]]) + "\n")
    assert mark("three").set(60), "the machine's clock was set back"


def test_the_agents_lock_keeps_a_mark_alive(there: Path) -> None:
    ours, others = mark("one"), mark("two")
    ours.set(-1)
    with (there / "agent.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(MachineInUse):
            others.set(60)
        ours.set(-1)
    assert others.set(60)


def test_a_machine_that_cannot_be_written_to_is_told_as_that(there: Path) -> None:
    (there / "mark").write_text("no folder")
    with pytest.raises(InfrastructureError, match="'box1' cannot be marked as used") as caught:
        mark().set(60)
    assert not isinstance(caught.value, MachineInUse)
    assert "mark" in caught.value.details
    assert not mark().is_taken_over(), "nobody says so"


def test_who_has_common_locks_or_a_common_database_is_of_one_domain(tmp_path: Path) -> None:
    locks, others = tmp_path / "locks", tmp_path / "others"
    assert machine_user(None, locks, "x").domain == machine_user(None, locks, "y").domain
    assert machine_user(None, locks, "x").domain != machine_user(None, others, "x").domain
    assert (
        machine_user("postgresql://a/b", locks, "x").domain
        == machine_user("postgresql://a/b", others, "x").domain
    )
    assert machine_user(None, locks, "x").token != machine_user(None, locks, "x").token

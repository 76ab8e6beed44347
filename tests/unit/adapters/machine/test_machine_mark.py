"""The mark on a machine, by its real script in a folder of this one."""

from __future__ import annotations

import fcntl
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.machine import machine_mark
from bisector.adapters.machine.machine_mark import MachineMark, MachineUser, machine_user
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.errors import InfrastructureError, MachineInUse
from tests.support.waiting import until


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
    assert ours.renew(60)


def test_the_same_domain_takes_over_at_once(there: Path) -> None:
    first, next_ = mark(), mark()
    first.set(60)
    assert next_.set(60), "locks or leases say that the first one has ended"
    assert not first.renew(60), "what has ended renews nothing"
    assert next_.renew(60)


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
    assert caught.value.message.endswith(("File exists", "Not a directory")), (
        "such as 'No space left on device'"
    )
    with pytest.raises(InfrastructureError, match="cannot be marked"):
        mark().renew(60)


def test_who_holds_a_machine_is_told_and_nothing_changed(there: Path) -> None:
    ours, others = mark("one"), mark("two")
    assert ours.holder() == ""
    assert list(there.iterdir()) == [], "not even a folder was made"
    ours.set(60)
    before = (there / "mark" / "in-use").read_text()
    assert others.holder() == "process 7 on one (bisection 'x')"
    assert ours.holder() == "", "locks and leases tell of our own"
    assert (there / "mark" / "in-use").read_text() == before
    ours.set(-1)
    assert others.holder() == ""
    with (there / "agent.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert others.holder() != "", "it measures"


def test_what_is_released_leaves_nothing(there: Path) -> None:
    ours = mark()
    ours.release()
    assert list(there.iterdir()) == [], "it was taken away with all that is ours"
    ours.set(60)
    mark("two").release()
    assert mark("two").holder() != "", "another's stays"
    ours.release()
    assert list(there.iterdir()) == []
    ours.set(60)
    (there / "mark" / "kernels").mkdir()
    ours.release()
    assert [path.name for path in (there / "mark").iterdir()] == ["kernels"]


def test_a_lock_that_was_removed_while_somebody_waited_for_it_is_made_anew(there: Path) -> None:
    ours = mark()
    ours.set(60)
    lock = there / "mark" / "in-use.lock"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waits = threading.Thread(target=ours.set, args=(60,))
        waits.start()
        until(lambda: f":{lock.stat().st_ino} " in _waiting_for_locks(), 30)
        lock.unlink()
    waits.join(30)
    assert lock.exists()
    assert ours.renew(60)


def _waiting_for_locks() -> str:
    return "".join(line for line in Path("/proc/locks").read_text().splitlines(True) if "->" in line)


def test_a_mark_that_was_removed_is_set_again(there: Path) -> None:
    ours = mark()
    ours.set(60)
    (there / "mark" / "in-use").unlink()
    assert ours.renew(60)
    assert mark("two").holder() != ""


def test_who_has_common_locks_or_a_common_database_is_of_one_domain(tmp_path: Path) -> None:
    locks, others = tmp_path / "locks", tmp_path / "others"
    assert machine_user(None, locks, "x").domain == machine_user(None, locks, "y").domain
    assert machine_user(None, locks, "x").domain != machine_user(None, others, "x").domain
    assert (
        machine_user("postgresql://a/b", locks, "x").domain
        == machine_user("postgresql://a/b", others, "x").domain
    )
    assert machine_user(None, locks, "x").token != machine_user(None, locks, "x").token
    (tmp_path / "link").symlink_to(locks)
    assert machine_user(None, tmp_path / "link", "x").domain == machine_user(None, locks, "x").domain


def test_a_mark_that_is_set_for_too_long_holds_for_the_longest_time(there: Path) -> None:
    """One that seems to hold longer counts as stale: others would take the machine in a boot."""
    mark("one").set(machine_mark.MOST_SECONDS + 3600)
    with pytest.raises(MachineInUse):
        mark("two").set(60)


@pytest.mark.parametrize(
    ("written", "shown"), [("\x1b[31mann on lab\x07", "[31mann on lab"), ("", "somebody")]
)
def test_what_a_machine_says_of_its_user_is_shown_without_control_characters(
    there: Path, written: str, shown: str
) -> None:
    mark("one").set(60)
    file = there / "mark" / "in-use"
    file.write_text("\n".join([*file.read_text().splitlines()[:3], written]) + "\n")
    assert mark("two").holder() == shown


def test_a_mark_that_could_not_be_written_is_none(there: Path) -> None:
    (there / "mark" / "in-use.new").mkdir(parents=True)
    with pytest.raises(InfrastructureError, match="cannot be marked as used"):
        mark().set(60)


def test_a_shell_may_complain_before_it_answers_and_no_answer_is_no_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["sh: warning: setlocale\nours abc\n", ""])
    monkeypatch.setattr(MachineReach, "run", lambda *_, **__: next(answers))
    assert mark().renew(60)
    with pytest.raises(InfrastructureError, match="cannot be marked as used"):
        mark().renew(60)

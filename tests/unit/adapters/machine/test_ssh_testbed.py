"""A machine whose answers are scripted: what a boot does with it, and what becomes of it when it is left.

Whose failure a boot is: test_failure_verdict.py, test_failure_examination.py. With real connections:
tests/integration/test_deploy_over_ssh.py; with real machines, emulated: tests/lab.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine import ssh_testbed
from bisector.adapters.machine.boot_watch import never
from bisector.adapters.machine.bring_back import Rescue, Return
from bisector.adapters.machine.machine_mark import AGENT_LOCK, MachineUser
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.machine.run_watch import RunWatch
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.adapters.system.ssh import LoginRefused, SSHRefused, UnverifiedHost
from bisector.errors import (
    BootFailed,
    InfrastructureError,
    Interrupted,
    MachineInUse,
    PerfbisectError,
    RequestError,
    TestbedLost,
)
from bisector.ports import BootFacts, Job, Kernel, MetricSpec, Needs, Progress
from bisector.schemas.lab import lab_from_inventory
from tests.support.machines.scripted_machine import OWN, PANIC, TESTED, ScriptedMachine, quiet

pytestmark = pytest.mark.usefixtures("marks_end")


class Bench:
    """A testbed of a scripted machine. What its agent is asked is not part of this."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, *answers: str) -> None:
        self.machine = ScriptedMachine(monkeypatch, *answers)
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.given: dict[str, Any] = {}
        self.deployed: list[tuple[Job, dict[str, Any]]] = []
        self.cancelled = 0
        self.error: PerfbisectError | None = None
        self.facts = BootFacts("6.1", "")
        monkeypatch.setattr(ssh_testbed, "open_console", lambda *_: self.machine.console)
        monkeypatch.setattr(ssh_testbed, "PlayedBoot", lambda *_: self.machine)
        monkeypatch.setattr(
            ssh_testbed, "open_power", lambda spec: self.machine if spec.variables.power else None
        )
        monkeypatch.setattr(ssh_testbed, "Deployment", self.deploy)

    def deploy(self, *given: Any, **how: Any) -> Bench:
        self.deployed.append((given[3], how))
        return self

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cancel(self) -> None:
        self.cancelled += 1

    def start_session(self, kernel: Kernel, **given: Any) -> Bench:
        self.given = given
        if self.error is not None:
            raise self.error
        return self

    def testbed(self, stop: Callable[[], bool] = never, /, **variables: object) -> SSHTestbed:
        known = {
            "ansible_host": "10.0.0.1",
            "ansible_ssh_private_key_file": "/key",
            "perfbisect_boot_method": "kexec",
            "perfbisect_boot_timeout": 1,
        }
        hosts = {"_meta": {"hostvars": {"metal": known | variables}}, "testbeds": {"hosts": ["metal"]}}
        spec = lab_from_inventory(hosts, self.folder / "lab.yml").testbed("metal")
        ansible = Ansible(self.folder, self.folder / "lab.yml", stop)
        return SSHTestbed(spec, ansible, MachineUser("here", "us"), self.folder / "state")

    def boot(self, bed: SSHTestbed | None = None, progress: Progress = quiet) -> Any:
        kernel = Kernel("a", "x", "a", self.folder, self.folder, self.folder, "6.1", "", 1.0, False)
        needs = Needs(block_device=1 << 30 if self.machine.devices else 0)
        job = Job("toy", self.folder, ("toy",), (MetricSpec("real", "s"),), needs=needs)
        return (bed or self.testbed()).boot(kernel, job, self.folder / "boot", progress)


def failure(bench: Bench, bed: SSHTestbed | None = None) -> PerfbisectError:
    with pytest.raises(PerfbisectError) as caught:
        bench.boot(bed)
    return caught.value


SCRATCH = {"perfbisect_block_device": "/dev/sdb"}


@pytest.mark.parametrize(
    ("devices", "runs", "told", "words"),
    [
        (["ok", "ok"], OWN, None, ""),
        (["No such file or directory"], OWN, InfrastructureError, "cannot be used: No such file"),
        ([InfrastructureError("'python3' failed")], OWN, InfrastructureError, "'python3' failed"),
        (["ok", "No such file or directory"], OWN, BootFailed, "cannot be used: No such file"),
        (["ok", InfrastructureError("it did not end")], OWN, BootFailed, "did not end"),
        # The kernel that was there before lacks the driver: the new one may have it.
        (["No such file or directory", "ok"], TESTED, None, ""),
        (["No such file or directory", "it is mounted"], TESTED, BootFailed, "it is mounted"),
    ],
)
def test_a_scratch_device_that_is_wrong_is_the_machines_and_under_the_kernel_alone_the_kernels(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    devices: list[str | InfrastructureError],
    runs: str,
    told: type[PerfbisectError] | None,
    words: str,
) -> None:
    """One machine's wrong device ended the search on all; so did a commit that breaks its driver."""
    bench = Bench(monkeypatch, tmp_path, runs, runs, TESTED + "7")
    bench.machine.devices = devices
    bed = bench.testbed(**SCRATCH)
    if told is None:
        assert bench.boot(bed).session is bench
        return
    error = failure(bench, bed)
    assert type(error) is told
    assert words in error.message
    assert bench.machine.done == (["request"] if told is BootFailed else [])
    assert bench.machine.console.closed == 1


def test_a_machine_that_dies_while_its_device_is_looked_at_is_examined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, "", "own 2")
    bench.machine.devices = ["ok", SSHRefused("no route")]
    error = failure(bench, bench.testbed(**SCRATCH))
    assert isinstance(error, BootFailed)
    assert "fell silent while the workload was put on it" in error.message


WITH_POWER = {"perfbisect_power": {"cycle": ["pdu", "4"]}}


@pytest.mark.parametrize("left", [False, True], ids=["own kernel", "kernel under test"])
def test_a_machine_that_answers_from_another_boot_is_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, left: bool
) -> None:
    bench = Bench(monkeypatch, tmp_path, *["tested 0", "tested 0"] * left, OWN, OWN, "", TESTED)
    bench.machine.was_left = left
    session = bench.boot()
    assert session.session is bench
    assert bench.machine.console.boots == ["begin", "up"]
    assert session.facts.facts["console.state"] == "off"
    parts = [
        "reached in",
        *["at its own kernel again in"] * left,
        "told in",
        "answered after",
        "workload there in",
    ]
    assert re.findall(r"(\D+) [0-9.]+ s(?:, |$)", session.facts.facts["boot.times"]) == parts
    assert 0.02 < bench.given["boot_seconds"] < 60
    assert bench.given["crashed"]() is None
    bench.given["on_leave"]()
    assert bench.machine.console.closed == 1
    assert bench.machine.done == [*["restart"] * left, "request"]


def test_a_kernel_is_booted_from_the_machines_own_where_the_one_before_may_hang_at_its_shutdown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "own 2", "own 2", TESTED)
    bench.machine.runs = ["before", ""]
    console = tmp_path / "boot" / "console.log"
    console.parent.mkdir()
    bench.machine.console.show(console, "Stopping services ...\n")
    told: list[str] = []

    def ask() -> Answer:
        if not bench.machine.done:
            return Answer("tested 0", "before")
        if bench.machine.done == ["request"]:
            raise SSHRefused("no route", details="to the host")
        return ScriptedMachine.ask(bench.machine)

    bench.machine.ask = ask  # type: ignore[method-assign]
    assert bench.boot(bench.testbed(**WITH_POWER), told.append).session is bench
    assert bench.machine.done == ["request", "cycle", "request"]
    assert "this one is booted once more, from the machine's own kernel" in " ".join(told)
    assert told[-1] == "the kernel that ran on 'metal' before had not shut down"
    assert (tmp_path / "boot" / "console-before.log").read_text() == "Stopping services ...\n"
    assert not console.exists(), "its starts would count as those of the second boot"


def test_a_kernel_that_does_not_start_from_the_machines_own_either_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "tested 0", "", "own 2", "own 2", "own 3")
    bench.machine.runs = ["before", ""]
    error = failure(bench)
    assert isinstance(error, BootFailed)
    assert "ended before it answered over SSH" in error.message
    assert bench.machine.done == ["request", "request"]


def test_a_machine_that_falls_silent_in_a_run_is_dead_to_its_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, OWN, TESTED)
    watches: list[RunWatch] = []

    def watch_of(reach: MachineReach) -> RunWatch:
        watches.append(RunWatch(reach))
        return watches[-1]

    monkeypatch.setattr(ssh_testbed, "RunWatch", watch_of)
    bed = bench.testbed()
    session = bench.boot(bed)
    assert [session.watch] == watches
    monkeypatch.setattr(RunWatch, "death", lambda _: "nobody answers")
    assert bench.given["crashed"]() == "nobody answers"
    bench.machine.answers = [OWN, OWN, TESTED]
    assert bench.boot(bed).watch is session.watch, "it knows how long runs take, over boots"


def test_a_run_that_was_cut_from_here_is_not_examined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever has told us to stop waits for it; the machine would be waited for, and restarted."""
    bench = Bench(monkeypatch, tmp_path, OWN, OWN, TESTED)
    stopped: list[bool] = []
    session = bench.boot(bench.testbed(lambda: bool(stopped)))
    bench.machine.answers = ["own 2"]
    cut = TestbedLost("the testbed was lost during a run")
    told = session.examine(cut, True)
    assert isinstance(told, BootFailed), "the machine is back with its own kernel"
    assert "while the workload ran" in told.message
    stopped.append(True)
    assert session.examine(cut, True) is cut


def test_a_kernel_that_ended_before_it_answered_is_the_commits_where_the_machine_is_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, "", "own 2")
    error = failure(bench)
    assert isinstance(error, BootFailed)
    assert "ended before it answered over SSH; the machine came back by itself" in error.message
    assert "boots: own 1, own 2" in error.details
    assert bench.machine.console.closed == 1, "what prints it would go on for ever"


def test_what_breaks_while_the_workload_is_put_there_is_examined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, "", "own 2")
    bench.error = InfrastructureError("unreachable")
    error = failure(bench)
    assert isinstance(error, BootFailed)
    assert "fell silent while the workload was put on it" in error.message
    assert "noticed: unreachable" in error.details


def test_a_machine_that_hangs_once_its_kernel_has_answered_is_examined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, "", "own 2")
    bench.machine.end_fails = InfrastructureError("'sh' did not end within 120 s")
    error = failure(bench)
    assert isinstance(error, BootFailed)
    assert "fell silent while the workload was put on it" in error.message


def test_a_machine_that_does_not_answer_before_the_boot_is_never_the_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "")
    bed = bench.testbed()
    error = failure(bench, bed)
    assert isinstance(error, InfrastructureError)
    assert "does not come back" in error.message
    assert "cannot be switched from here" in error.details
    bench.machine.answers = [OWN, TESTED]
    assert failure(bench, bed) is error, "it stays refused: each trial would wait for it"
    with pytest.raises(InfrastructureError) as caught:
        bed.give_back(lambda _: None)
    assert caught.value is error, "and is not waited for once more"


def test_a_machine_without_switch_and_console_that_hangs_waits_for_a_hand_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, "")
    bed = bench.testbed(perfbisect_boot_timeout=1)
    hung = failure(bench, bed)
    assert isinstance(hung, InfrastructureError), "nothing shows that the machine is well"
    assert "the machine does not come back" in hung.message
    assert "it cannot be switched from here" in hung.message
    assert "bring it up by hand with its own kernel" in hung.cure
    assert "perfbisect mark" in hung.cure
    again = failure(bench, bed)
    assert "does not answer, and does not come back" in again.message
    assert "the last kernel that was booted there: 6.1 (a)" in again.details
    assert "perfbisect testbed release metal" in again.cure


def test_a_command_that_reboots_is_switch_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN)

    def hang(*_: object) -> str:
        bench.machine.answers, bench.machine.awaits = ["", "own 2"], "cycle"
        return OWN

    monkeypatch.setattr(bench.machine, "request_boot", hang)
    assert isinstance(failure(bench, bench.testbed(**WITH_POWER)), BootFailed)


def test_a_machine_that_is_down_is_switched_off_and_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "", OWN, TESTED)
    bench.machine.awaits = "cycle"
    assert bench.boot(bench.testbed(**WITH_POWER)).session is bench
    assert bench.machine.done == ["cycle", "request"]


def test_a_machine_that_boots_for_another_host_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "", "", "", "tested 7", OWN)
    bench.machine.mark = "refused process 7 on box2"
    assert isinstance(failure(bench, bench.testbed(**WITH_POWER)), MachineInUse)
    assert bench.machine.done == [], "neither restarted nor switched"


@pytest.mark.parametrize(
    ("error", "done"),
    [
        (InfrastructureError("'cat' did not end within 30 s"), ["cycle", "request"]),
        (UnverifiedHost("another host key"), []),
        (LoginRefused("it does not accept the key"), []),
    ],
)
def test_a_machine_that_hangs_is_switched_off_and_on_and_a_stranger_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: InfrastructureError, done: list[str]
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    answers = MachineReach.ask

    def ask(reach: MachineReach) -> Answer:
        if "cycle" not in bench.machine.done:
            raise error
        return answers(reach)

    monkeypatch.setattr(MachineReach, "ask", ask)
    bed = bench.testbed(**WITH_POWER)
    if done:
        bench.boot(bed)
    else:
        assert failure(bench, bed) is error
    assert bench.machine.done == done


def test_a_stranger_that_answers_after_a_silence_is_not_switched_either(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "")
    stranger = UnverifiedHost("another host key")
    silences, silence = [True], bench.machine.ask

    def ask() -> Answer:
        if silences:
            silences.pop()
            return silence()
        raise stranger

    monkeypatch.setattr(bench.machine, "ask", ask)
    assert failure(bench, bench.testbed(**WITH_POWER)) is stranger
    assert bench.machine.done == []


def test_a_machine_that_another_host_uses_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN)
    bench.machine.mark = "refused process 7 on box2 (bisection 'x')"
    bed = bench.testbed()
    error = failure(bench, bed)
    assert isinstance(error, MachineInUse)
    assert "in use: process 7 on box2 (bisection 'x')" in error.message
    bed.give_back(lambda _: None)
    assert bench.machine.done == [], "nor is it given back by us"
    assert bench.machine.requests_ended == [], "nor is the boot taken back that another has asked for"
    assert bench.machine.console.closed == 1


def test_what_was_asked_for_is_taken_back_where_it_is_broken_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the machine boots the kernel under test at its next restart, with nobody there."""
    bench = Bench(monkeypatch, tmp_path, OWN)

    def stopped(*_: object) -> str:
        raise Interrupted("stopped")

    monkeypatch.setattr(bench.machine, "request_boot", stopped)
    assert isinstance(failure(bench), Interrupted)
    assert bench.machine.requests_ended == [False]


def test_a_request_that_cannot_be_taken_back_leaves_no_console_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN)

    def broken(*_: Any, **__: Any) -> str:
        raise InfrastructureError("no")

    monkeypatch.setattr(bench.machine, "request_boot", broken)
    monkeypatch.setattr(bench.machine, "end_request", broken)
    failure(bench)
    assert bench.machine.console.closed == 1


def test_a_machine_that_was_used_is_given_back_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, TESTED, "", "own 2")
    bed = bench.testbed()
    bed.give_back(lambda _: None)
    assert bench.machine.done == [], "nothing was booted"
    bench.boot(bed)
    bed.give_back(lambda _: None)
    assert bench.machine.done == ["request", "restart", "rm", "forget"]
    bed.give_back(lambda _: None)
    assert len(bench.machine.done) == 4


@pytest.mark.parametrize(
    ("answers", "awaits", "done"),
    [
        ((TESTED, TESTED, "own 2"), "", ["restart", "rm", "forget"]),
        ((OWN,), "", ["rm", "forget"]),  # it was rebooted meanwhile, and its files are still there
        (("", "", TESTED, TESTED, "own 2"), "", ["restart", "rm", "forget"]),  # killed while it booted
        (("", "own 2"), "cycle", ["cycle", "rm", "forget"]),  # the kernel under test hangs
    ],
)
def test_a_machine_that_a_killed_process_left_is_given_back_by_the_next_that_boots_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: tuple[str, ...], awaits: str, done: list[str]
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.boot()
    bench.machine.done.clear()
    bench.machine.answers, bench.machine.awaits = list(answers), awaits
    bed, said = bench.testbed(**WITH_POWER), list[str]()
    bed.give_back(said.append)
    assert bench.machine.done == done
    assert said[0] == "'metal' was left behind by a perfbisect that was killed: it is given back"
    for again in (bed, bench.testbed()):
        again.give_back(lambda _: None)
    assert bench.machine.done == done, "and is not visited once more"


def test_a_machine_that_a_killed_process_left_and_another_uses_is_left_to_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.boot()
    bench.machine.mark, said = "refused process 7 on box2", list[str]()
    bench.testbed().give_back(said.append)
    assert bench.machine.done == ["request"]
    assert "used by another perfbisect by now" in said[-1]
    bench.machine.mark = "ours"
    bench.testbed().give_back(said.append)
    assert bench.machine.done == ["request"], "it is that one's to give back"


def test_a_dead_machine_that_a_killed_process_left_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.boot()
    bench.machine.answers = [""]
    with pytest.raises(InfrastructureError, match="does not answer, and does not come back"):
        bench.testbed().give_back(lambda _: None)
    bench.testbed().give_back(lambda _: None)


def test_a_dead_machine_that_was_already_waited_for_is_not_waited_for_as_one_that_was_left_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.boot()
    bench.machine.answers = [""]
    bed, said = bench.testbed(), list[str]()
    error = failure(bench, bed)
    with pytest.raises(InfrastructureError) as caught:
        bed.give_back(said.append)
    assert caught.value is error
    assert said == []


def test_a_machine_whose_giving_back_was_cut_is_still_to_be_given_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.boot()
    for stops_at in range(3):
        asked = iter(range(100))
        with pytest.raises(Interrupted):
            bench.testbed().give_back(lambda _: None, lambda n=stops_at, asked=asked: next(asked) >= n)  # type: ignore[misc]
    bench.machine.answers = ["", "", TESTED, TESTED, "own 2"]
    bench.testbed(lambda: True).give_back(lambda _: None)  # told to stop, too: whoever waits sees it end
    assert bench.machine.done[-3:] == ["restart", "rm", "forget"]


def test_once_a_boot_is_left_its_mark_is_renewed_while_the_next_kernel_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else it ends after some boots' time, and another perfbisect takes the machine."""
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, "", "own 2")
    bed, ended = bench.testbed(), list[str]()
    assert bed.has_own_kernel
    monkeypatch.setattr(bed._mark, "boot_ended", lambda: ended.append("left"))
    bench.boot(bed)
    assert ended == [], "while it measures nobody connects"
    bench.given["on_leave"]()
    assert (ended, bench.machine.console.closed) == (["left"], 1)
    bench.machine.answers = [OWN, OWN, "own 2"]
    assert isinstance(failure(bench, bed), BootFailed)
    assert ended[1:] != []


def test_the_boot_of_a_kernel_tried_before_is_not_taken_for_this_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With `between_boots` kexec the machine may still run that one, and its kernel is one of ours, too."""
    bench = Bench(monkeypatch, tmp_path, TESTED)
    monkeypatch.setattr(bench.machine, "request_boot", lambda *_: TESTED)
    error = failure(bench)
    assert isinstance(error, InfrastructureError)
    assert "the machine did not reboot within 1 s" in error.message


@pytest.mark.parametrize(("mark", "told"), [("ours", False), ("ours another", True)])
def test_a_mark_that_another_left_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mark: str, told: bool
) -> None:
    bench, said = Bench(monkeypatch, tmp_path, OWN, TESTED), list[str]()
    bench.machine.mark = mark
    bench.boot(progress=said.append)
    assert ("'metal' was left behind by another perfbisect, which has ended" in said) is told


def test_a_death_on_the_console_ends_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.boot()
    assert bench.given["crashed"]() is None
    bench.machine.console.dead = True
    assert bench.given["crashed"]() == PANIC


def test_a_kernel_that_fails_before_its_first_run_is_examined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its disk may be gone: then it is not told by whatever program failed first."""
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, TESTED, TESTED, "own 2")
    bench.machine.unwritable = ["Input/output error"]
    bench.error = BootFailed("the kernel cannot run the agent")
    error = failure(bench)
    assert isinstance(error, BootFailed)
    assert "lost the machine's disk while the workload was put on it" in error.message


def test_a_machine_that_is_given_back_has_no_mark_that_is_renewed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Other hosts would find it in use for as long as this process lives."""
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED, TESTED, TESTED, "own 2")
    bed = bench.testbed()
    bench.boot(bed)
    assert bed._mark._thread is not None
    bed.give_back(lambda _: None)
    assert bed._mark._thread is None and bench.machine.done[-1] == "forget"


def test_a_machine_that_another_has_taken_over_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bed = bench.testbed()
    bench.boot(bed)
    bench.machine.token = "another's"
    bed.give_back(lambda _: None)
    assert bench.machine.done == ["request"]


def test_a_machine_that_does_not_answer_is_switched_while_our_mark_holds_and_not_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for passes, done in ((100.0, ["request", "cycle", "rm", "forget"]), (1e5, ["request"])):
        bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
        bed = bench.testbed(**WITH_POWER)
        monkeypatch.setattr(bed._mark, "_now", lambda: 0.0)
        bench.boot(bed)
        monkeypatch.setattr(bed._mark, "_now", partial(float, passes))
        bench.machine.answers, bench.machine.awaits = ["", "own 2"], "cycle"
        if len(done) > 1:
            bed.give_back(lambda _: None)
        else:
            with pytest.raises(
                InfrastructureError, match="could not be given back: it does not answer"
            ) as not_:
                bed.give_back(lambda _: None)
            assert "another one may use the machine" in not_.value.details
        assert bench.machine.done == done


def test_a_machine_that_was_silent_until_it_was_anothers_is_left_to_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Our mark had ended meanwhile. Its kernel under test is that one's, and measured."""
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bed = bench.testbed(**WITH_POWER)
    monkeypatch.setattr(bed._mark, "_now", lambda: 0.0)
    bench.boot(bed)
    monkeypatch.setattr(bed._mark, "_now", lambda: 1e5)
    bench.machine.answers, bench.machine.token = ["", "tested 7"], "another's"
    said: list[str] = []
    bed.give_back(said.append)
    assert bench.machine.done == ["request"]
    assert said[-1] == "'metal' is used by another perfbisect by now: it is left to that"


def test_a_machine_that_is_another_processs_by_now_is_left_alone_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bed = bench.testbed(**WITH_POWER)
    bench.boot(bed)
    with pytest.raises(Interrupted):
        bed.give_back(lambda _: None, lambda: True)
    assert bench.machine.done == ["request"]


def test_waits_end_when_told_to_stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for answers in ([""], [OWN, ""], [OWN, "", TESTED]):  # before the boot, of it, on the way back from it
        bench = Bench(monkeypatch, tmp_path, *answers)
        bench.machine.console.dead = len(answers) == 3
        asked = iter(range(100))
        bed = bench.testbed(lambda asked=asked: next(asked) > 8, perfbisect_boot_timeout=3600)  # type: ignore[misc]
        assert isinstance(failure(bench, bed), Interrupted)


def test_what_the_inventory_must_say_of_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN)
    with pytest.raises(RequestError, match="no boot method") as caught:
        bench.testbed(perfbisect_boot_method=None)
    assert "kexec, grub, systemd-boot or pxe" in caught.value.cure
    with pytest.raises(RequestError, match="the testbed 'metal' has no SSH key") as caught:
        bench.testbed(ansible_ssh_private_key_file="")
    assert "ansible_ssh_private_key_file" in caught.value.cure


def test_a_password_that_is_missing_is_told_before_anything_is_booted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else it is missed once a kernel has hung, hours later."""
    monkeypatch.delenv("PB_NO_PASSWORD", raising=False)
    bmc = {"kind": "ipmi", "address": "127.0.0.1", "user": "me", "password_env": "PB_NO_PASSWORD"}
    with pytest.raises(RequestError, match="PB_NO_PASSWORD"):
        Bench(monkeypatch, tmp_path, OWN).testbed(perfbisect_power=bmc)


def test_a_wrong_key_is_told_at_once_and_not_after_a_boots_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN)
    refused = LoginRefused("it does not accept the key")

    def ask(_: MachineReach) -> Answer:
        raise refused

    monkeypatch.setattr(MachineReach, "ask", ask)
    monkeypatch.setattr(ssh_testbed, "wait_for_answer", lambda *_, **__: pytest.fail("it was waited for"))
    assert failure(bench) is refused


def test_how_long_runs_take_is_known_for_each_workload(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After short ones a long one would count as hung."""
    bed = Bench(monkeypatch, tmp_path, OWN).testbed()
    job = Job("toy", tmp_path, ("toy",), (MetricSpec("real", "s"),), checksum="a")
    assert bed._watch_of(job) is bed._watch_of(replace(job, timeout=7.0))
    assert bed._watch_of(job) is not bed._watch_of(replace(job, checksum="b"))


def test_what_lives_on_is_put_back_and_the_agent_holds_the_lock_that_other_hosts_look_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, OWN, TESTED)
    bench.machine.facts = {"own.release": "6.1.0-own"}
    bed = bench.testbed(perfbisect_environment={"aslr": "off"})
    taken: list[float] = []
    take = bed._mark.take

    def note(seconds: float) -> bool:
        taken.append(seconds)
        return take(seconds)

    monkeypatch.setattr(bed._mark, "take", note)
    session = bench.boot(bed)
    ((job, how),) = bench.deployed
    assert how == {"boot_timeout": 1, "workdir": bed._spec.workdir, "undo": True, "agent_lock": AGENT_LOCK}
    assert job.environment == {"aslr": "0"}, "the lab's settings for this machine"
    assert taken == [300.0], "the mark holds for the longest run"
    assert session.before_run == bed._mark.before_run, "a machine that was taken over measures no more"
    assert session.facts.facts["own.release"] == "6.1.0-own"
    assert (bench.machine.requests_ended, bench.cancelled) == ([True], 0), "else it would boot that again"


def test_a_boot_that_fails_ends_the_deployment_that_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would begin as the machine's own kernel answers."""
    bench = Bench(monkeypatch, tmp_path, OWN, "", "own 2")
    failure(bench)
    assert bench.cancelled == 1


def test_a_run_begins_once_its_pause_is_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else the first run of a workload that rests for long would seem to hang."""
    bed = Bench(monkeypatch, tmp_path, OWN).testbed()
    job = Job("toy", tmp_path, ("toy",), (MetricSpec("real", "s"),))
    session: Any = SimpleNamespace(facts=BootFacts("6.1", ""))
    for settle, pause in ((7.0, 2.0), (2.0, 7.0)):
        rests = replace(job, settle=settle, pause=pause)
        assert bed._watched_session(session, rests, "boot", cast("Any", None)).settling == 7.0


def test_a_machine_that_was_waited_for_is_switched_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It had a boot's time already: with 20 minutes a boot, each dead machine would cost 20 more."""
    patience: list[float | None] = []

    def bring_back(_: Rescue, progress: object, patience_: float | None = None, **given: float) -> Return:
        patience.append(given.get("patience", patience_))
        return Return("never", why_not="no route")

    monkeypatch.setattr(Rescue, "bring_back", bring_back)
    bench = Bench(monkeypatch, tmp_path, "")
    assert "does not come back" in failure(bench).message
    assert patience == [0.0]

"""A machine is given back whole, or that is told."""

from __future__ import annotations

import pytest

from bisector.adapters.machine.bring_back import Rescue
from bisector.adapters.machine.give_back import give_back
from bisector.adapters.machine.machine_parts import RunningKernel
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.system.ssh import UnverifiedHost
from bisector.errors import InfrastructureError, OtherOwnKernel
from tests.support.machines.scripted_machine import OWN, TESTED, ScriptedMachine, quiet


def rescue(machine: ScriptedMachine) -> Rescue:
    return Rescue("box1", MachineReach.__new__(MachineReach), machine, machine, boot_timeout=0.2)


@pytest.mark.parametrize(
    ("answers", "awaits", "done"),
    [
        ((OWN,), "", ["rm", "forget"]),
        ((TESTED, "own 2"), "", ["restart", "rm", "forget"]),
        (("", OWN), "cycle", ["cycle", "rm", "forget"]),
    ],
)
def test_its_own_kernel_runs_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[str, ...], awaits: str, done: list[str]
) -> None:
    machine = ScriptedMachine(monkeypatch, *answers)
    machine.awaits = awaits
    give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert machine.done == done


def test_a_bmc_that_does_nothing_keeps_no_machine_from_being_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits, machine.stages = "cycle 2", 2
    give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert machine.done == ["cycle", "cycle 2", "rm", "forget"]


def test_a_machine_that_does_not_come_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "")
    with pytest.raises(InfrastructureError, match="'box1' could not be given back: no route") as caught:
        give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert "perfbisect testbed release box1" in caught.value.cure


def test_a_machine_that_does_not_let_us_in_is_told_and_not_switched(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)

    def refuse() -> Answer:
        raise UnverifiedHost("box1 shows another host key", cure="replace its line")

    monkeypatch.setattr(machine, "ask", refuse)
    with pytest.raises(
        InfrastructureError, match="not be given back: box1 shows another host key; it may be"
    ):
        give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert machine.done == []


def test_a_kernel_under_test_that_runs_again_in_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left on the disk; the machine was rebooted while the workload was removed."""
    machine = ScriptedMachine(monkeypatch, OWN)
    monkeypatch.setattr(
        machine, "running", lambda: RunningKernel("tested 2", "6.2.0", "", "key", (), machine.noted_release)
    )
    with pytest.raises(InfrastructureError, match="was not given back whole") as caught:
        give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert caught.value.details == "a kernel under test runs: key\nleft there: nothing"


def test_what_is_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    machine.left = ("/boot/vmlinuz-perfbisect",)
    with pytest.raises(InfrastructureError, match="was not given back whole") as caught:
        give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert "left there: /boot/vmlinuz-perfbisect" in caught.value.details


@pytest.mark.parametrize("noted", ["6.1.0-own", "5.10.0-other", ""])
def test_a_machine_that_comes_back_with_another_kernel_than_it_had_is_told_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, noted: str
) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    machine.noted_release = noted
    if noted in ("6.1.0-own", ""):  # nobody has noted what it had
        give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    else:
        with pytest.raises(OtherOwnKernel, match=r"'box1' .*: 6\.1\.0-own, not 5\.10\.0-other$") as caught:
            give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
        assert "upgraded" in caught.value.cure
    assert machine.done == ["rm", "forget"]


def test_removing_a_large_workload_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    seconds: dict[str, float | None] = {}

    def run(_: object, command: list[str], *, timeout: float | None = None, check: bool = True) -> str:
        seconds[command[0]] = timeout
        return ""

    monkeypatch.setattr(MachineReach, "run", run)
    give_back(rescue(machine), "/var/tmp/perfbisect", quiet)
    assert seconds == {"rm": 600.0}

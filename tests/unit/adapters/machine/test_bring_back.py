"""How a machine comes to run its own kernel again: by itself, by a restart, by its power switch."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from bisector.adapters.machine.bring_back import Rescue, Return
from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.machine.power.staged_power import StagedPower
from bisector.adapters.system.ssh import LoginRefused, UnverifiedHost
from bisector.errors import InfrastructureError, Interrupted
from bisector.testing.fake_power import FakePower
from tests.support.machines.scripted_machine import OWN, TESTED, ScriptedMachine, quiet

STRANGERS = [
    UnverifiedHost("box1 shows another host key", cure="replace its line"),
    LoginRefused("box1 does not accept the key", cure="add the key"),
]
DEAD = InfrastructureError("the BMC does not answer", details="timeout")


def rescue(machine: ScriptedMachine, *, power: bool = True) -> Rescue:
    reach = MachineReach.__new__(MachineReach)
    return Rescue("box1", reach, machine, machine if power else None, boot_timeout=0.2)


@pytest.mark.parametrize(
    ("answers", "awaits", "power", "how", "done"),
    [
        ((OWN,), "", "unknown", "answered", []),
        (("", "", OWN), "", "on", "by itself", []),
        (("", OWN), "on", "off", "switched on", ["on"]),
        (("", OWN), "cycle", "on", "power cycle", ["cycle"]),
        (("", OWN), "cycle", "unknown", "power cycle", ["cycle"]),
        ((TESTED, "", "own 2"), "", "on", "restarted", ["restart"]),
        (("", TESTED, "own 2"), "", "on", "restarted", ["restart"]),  # it came up late
        ((TESTED, "own 2"), "cycle", "on", "power cycle", ["restart", "cycle"]),  # no restart ends
        (("",), "", "on", "never", ["cycle"]),
        ((TESTED,), "", "on", "never", ["restart", "cycle"]),
    ],
)
def test_ways_back(
    monkeypatch: pytest.MonkeyPatch,
    answers: tuple[str, ...],
    awaits: str,
    power: PowerStatus,
    how: str,
    done: list[str],
) -> None:
    machine = ScriptedMachine(monkeypatch, *answers)
    machine.awaits, machine.now = awaits, power
    found = rescue(machine).bring_back(quiet)
    assert (found.how, machine.done) == (how, done)
    assert (found.answer is not None and found.answer.ours == "") == (how != "never")
    assert bool(found.why_not) == (how == "never")


@pytest.mark.parametrize(
    ("answers", "awaits", "done", "told"),
    [
        ((TESTED, "own 2"), "", ["restart"], False),
        ((TESTED, "own 2"), "cycle", ["restart", "cycle"], True),
    ],
    ids=["it shuts down", "it hangs at its shutdown"],
)
def test_a_kernel_under_test_is_left_by_a_restart_and_by_the_switch_where_it_does_not_shut_down(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[str, ...], awaits: str, done: list[str], told: bool
) -> None:
    """Each kernel of a range may hang so: as the machine's failure it would have set it aside."""
    machine, texts = ScriptedMachine(monkeypatch, *answers), list[str]()
    machine.awaits = awaits
    rescue(machine).leave_kernel_under_test(texts.append)
    assert machine.done == done
    assert ("the kernel that ran on 'box1' did not shut down" in " ".join(texts)) is told


def test_a_machine_that_is_not_left_is_told_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED)
    with pytest.raises(
        InfrastructureError, match="'box1' does not come back to its own kernel: it still runs"
    ):
        rescue(machine, power=False).leave_kernel_under_test(quiet)


@pytest.mark.parametrize(
    ("answers", "awaits", "stages", "how", "done"),
    [
        (("", OWN), "cycle 2", 2, "power cycle", ["cycle", "cycle 2"]),
        (("", OWN), "cycle 3", 3, "power cycle", ["cycle", "cycle 2", "cycle 3"]),
        (("", OWN), "cycle", 2, "power cycle", ["cycle"]),  # it obeyed
        (("", TESTED, "own 2"), "cycle 2", 2, "restarted", ["cycle", "cycle 2", "restart"]),
        ((TESTED, "own 2"), "cycle 2", 2, "power cycle", ["restart", "cycle", "cycle 2"]),  # the same boot
        ((TESTED, "tested 2"), "cycle", 2, "never", ["restart", "cycle"]),  # another one: it was switched
        (("",), "", 2, "never", ["cycle", "cycle 2"]),
        ((TESTED,), "", 2, "never", ["restart", "cycle", "cycle 2"]),  # the boot of before is no return
    ],
)
def test_the_next_stage_is_for_a_machine_that_the_one_before_did_not_switch(
    monkeypatch: pytest.MonkeyPatch,
    answers: tuple[str, ...],
    awaits: str,
    stages: int,
    how: str,
    done: list[str],
) -> None:
    machine = ScriptedMachine(monkeypatch, *answers)
    machine.awaits, machine.now, machine.stages = awaits, "on", stages
    found = rescue(machine).bring_back(quiet)
    assert (found.how, machine.done) == (how, done)
    assert found.idle_switch == (how != "never" and "cycle 2" in done)
    assert ("only by the next one" in found.trouble) == found.idle_switch
    assert ("nothing came of it, nor of the next one" in found.why_not) == (
        how == "never" and done[-1] == "cycle 2"
    )


def test_a_machine_that_was_switched_on_has_the_time_of_a_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is to be switched at once: to switch it off and on would break its boot off."""
    machine = ScriptedMachine(monkeypatch, "", "", "", "", OWN)
    machine.now = "off"
    found = rescue(machine).bring_back(quiet, patience=0.0)
    assert (found.how, machine.done) == ("switched on", ["on"])


@pytest.mark.parametrize("answers", [("",), (TESTED,)])
def test_a_switch_that_fails_on_a_machine_that_stays_away_is_named(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[str, ...]
) -> None:
    machine = ScriptedMachine(monkeypatch, *answers)
    machine.now, machine.switch_fails = "on", DEAD
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.power) == ("never", "on")
    assert found.trouble == "the BMC does not answer. timeout"
    failed = InfrastructureError(
        "'pdu' failed with code 2", details="pdu 4 cycle\nTraceback:\n  x.py\nno route"
    )
    machine.now = machine.switch_fails = failed
    assert rescue(machine).bring_back(quiet).trouble == "'pdu' failed with code 2. pdu 4 cycle. no route"
    assert found.why_not.endswith("its power switch: the BMC does not answer. timeout")


def test_a_machine_that_is_switched_on_in_vain_has_its_next_stage_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits, machine.now, machine.stages = "cycle 2", "off", 2
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.power, machine.done) == ("power cycle", "off", ["on", "on", "cycle 2"])


def test_a_machine_that_hangs_after_it_was_switched_on_is_switched_off_and_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To switch on what has power does nothing."""
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits = "cycle"
    said: list[PowerStatus] = ["on", "off"]
    monkeypatch.setattr(machine, "status", lambda: said.pop())
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.power, machine.done) == ("power cycle", "off", ["on", "cycle"])
    assert (found.trouble, said) == ("", [])


def test_a_machine_that_was_off_was_off_also_where_its_switch_says_on_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else whoever switched it off would not be told of, and the kernel under test would be blamed."""
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits, machine.stages = "cycle 2", 2
    said: list[PowerStatus] = ["off"]
    monkeypatch.setattr(machine, "status", lambda: said.pop() if said else "on")
    assert rescue(machine).bring_back(quiet).power == "off"


@pytest.mark.parametrize(
    ("error", "why_not"),
    [(None, "it answers only now"), *((error, f"{error.message}; it may be another") for error in STRANGERS)],
)
def test_a_machine_that_answers_too_late_is_not_switched_once_more(
    monkeypatch: pytest.MonkeyPatch, error: InfrastructureError | None, why_not: str
) -> None:
    machine = ScriptedMachine(monkeypatch, "")
    machine.stages = 2
    waited = Rescue._wait

    def wait(one: Rescue, *given: object) -> Answer | None:
        answer = waited(one, *given)  # type: ignore[arg-type]
        if machine.done == ["cycle"]:
            machine.answers = [OWN]
            if error is not None:
                lets_nobody_in(machine, error, 0)
        return answer

    monkeypatch.setattr(Rescue, "_wait", wait)
    found = rescue(machine).bring_back(quiet)
    assert (found.how, machine.done) == ("never", ["cycle"])
    assert found.why_not.startswith(why_not)


def test_a_stage_that_does_nothing_to_a_kernel_that_came_up_late_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, "", TESTED, TESTED, "own 2")
    machine.stages = 2

    def restart() -> None:
        machine.awaits = "cycle 2"

    machine.restart = restart  # type: ignore[method-assign]
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.idle_switch, machine.done) == ("power cycle", True, ["cycle", "cycle 2"])
    assert "the machine came back only by the next one" in found.trouble


@pytest.mark.parametrize("error", STRANGERS)
def test_who_lets_nobody_in_after_the_first_stage_is_not_switched_by_the_next(
    monkeypatch: pytest.MonkeyPatch, error: InfrastructureError
) -> None:
    machine = ScriptedMachine(monkeypatch, "")
    machine.stages = 2
    ask = machine.ask

    def answer() -> Answer:
        if "cycle" in machine.done:
            raise error
        return ask()

    machine.ask = answer  # type: ignore[method-assign]
    found = rescue(machine).bring_back(quiet)
    assert (found.how, machine.done) == ("never", ["cycle"])
    assert "it may be another machine" in found.why_not


def test_a_next_stage_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "")
    machine.stages = 2

    def dead() -> StagedPower:
        return StagedPower("box1", [FakePower("command pdu", dead=9)], quiet)

    monkeypatch.setattr(machine, "further", dead)
    found = rescue(machine).bring_back(quiet)
    assert found.how == "never"
    assert "nothing came of it; of the next one: " in found.why_not
    assert "command pdu: the BMC does not answer" in found.why_not


def test_a_next_stage_that_reports_a_failure_and_works_is_told_with_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its words are what its owner can mend."""
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits, machine.stages = "cycle 2", 2

    def cycle(_: object) -> None:
        machine.done.append("cycle 2")
        raise DEAD

    monkeypatch.setattr("tests.support.machines.scripted_machine._Stage.cycle", cycle)
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.trouble) == ("power cycle", "the BMC does not answer. timeout")


def test_a_machine_without_a_switch_may_only_come_back_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "")
    found = rescue(machine, power=False).bring_back(quiet, patience=0.0)
    assert found.how == "never"
    assert found.why_not == "no route (to the host); it cannot be switched from here"
    late = ScriptedMachine(monkeypatch, *[""] * 5, OWN)
    assert rescue(late, power=False).bring_back(quiet, patience=0.0).how == "by itself", (
        "it gets its boot's time"
    )


def test_a_kernel_under_test_that_stays_where_there_is_no_switch_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED)
    found = rescue(machine, power=False).bring_back(quiet)
    assert (found.how, machine.done) == ("never", ["restart"])
    assert found.why_not == "it still runs a kernel under test; it cannot be switched from here"


def test_a_machine_without_a_switch_gets_the_time_that_its_watchdog_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is armed for longer than the boot timeout, and then the machine has to boot."""
    silent = [""] * 60  # 10 ms each: three boot timeouts
    machine = ScriptedMachine(monkeypatch, *silent, OWN)
    assert rescue(machine, power=False).bring_back(quiet).how == "never"
    machine = ScriptedMachine(monkeypatch, *silent, OWN)
    machine.watchdog_spare = 30.0
    assert rescue(machine, power=False).bring_back(quiet).how == "by itself"


def test_no_patience_where_it_was_waited_for_already(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "", "", "", OWN)
    assert rescue(machine).bring_back(quiet, patience=0.0).how == "power cycle"


def test_a_dead_switch_is_evidence_and_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "", "", OWN)
    machine.now = machine.switch_fails = DEAD
    assert rescue(machine).bring_back(quiet) == Return(
        "by itself", "dead", "the BMC does not answer. timeout", answer=Answer(OWN, ""), first=Answer(OWN, "")
    )
    machine.answers = [""]
    found = rescue(machine).bring_back(quiet)
    assert found.how == "never"
    assert "its power switch: the BMC does not answer. timeout" in found.why_not


def test_a_switch_that_cannot_be_asked_and_works_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits, machine.now = "cycle", DEAD
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.trouble) == ("power cycle", "the BMC does not answer. timeout")


def test_a_restart_that_cannot_be_told_is_left_to_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, "own 2")
    machine.awaits = "cycle"

    def restart() -> None:
        raise InfrastructureError("no program starts", details="Input/output error")

    machine.restart = restart  # type: ignore[method-assign]
    assert rescue(machine).bring_back(quiet).how == "power cycle"
    found = rescue(machine, power=False)
    machine.answers = [TESTED]
    assert found.bring_back(quiet).why_not == "no program starts. Input/output error"


def test_a_restart_that_fails_is_waited_for_only_where_nothing_else_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have gone down meanwhile; a kernel that starts no programs would cost a boot's time."""

    def restart() -> None:
        raise InfrastructureError("no program starts")

    machine = ScriptedMachine(monkeypatch, TESTED, "own 2")
    machine.restart = restart  # type: ignore[method-assign]
    assert (rescue(machine).bring_back(quiet).how, machine.done) == ("power cycle", ["cycle"])
    machine.answers = [TESTED, "", "own 2"]
    assert rescue(machine, power=False).bring_back(quiet).how == "restarted"


@pytest.mark.parametrize(("answer", "asked"), [(TESTED, 1), ("", 2)])
def test_who_is_told_to_stop_neither_restarts_nor_switches_a_machine(
    monkeypatch: pytest.MonkeyPatch, answer: str, asked: int
) -> None:
    """Another perfbisect may have it by now."""
    machine = ScriptedMachine(monkeypatch, answer)
    ask, times = machine.ask, list[int]()

    def noted() -> Answer:
        times.append(1)
        return ask()

    machine.ask = noted  # type: ignore[method-assign]
    one = replace(rescue(machine), stop=lambda: len(times) >= asked)
    with pytest.raises(Interrupted, match="while 'box1' was brought back"):
        one.bring_back(quiet, patience=0.0)
    assert machine.done == []


def lets_nobody_in(machine: ScriptedMachine, error: InfrastructureError, *asked: int) -> None:
    """Have the machine answer so when it is asked for the n-th time, counted from 0; by default always."""
    times, ask = count(), machine.ask

    def answer() -> Answer:
        if not asked or next(times) in asked:
            raise error
        return ask()

    machine.ask = answer  # type: ignore[method-assign]


@pytest.mark.parametrize("error", STRANGERS)
@pytest.mark.parametrize("patience", [None, 0.0])
@pytest.mark.parametrize("power", [True, False])
def test_who_does_not_let_us_in_may_be_another_machine_and_is_not_switched(
    monkeypatch: pytest.MonkeyPatch, error: InfrastructureError, patience: float | None, power: bool
) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    lets_nobody_in(machine, error)
    found = rescue(machine, power=power).bring_back(quiet, patience)
    assert (found.how, machine.done) == ("never", [])
    assert found.why_not == f"{error.message}; it may be another machine, and is left alone: {error.cure}"


@pytest.mark.parametrize("error", STRANGERS)
def test_a_machine_that_boots_has_time_until_it_lets_us_in(
    monkeypatch: pytest.MonkeyPatch, error: InfrastructureError
) -> None:
    machine = ScriptedMachine(monkeypatch, OWN)
    lets_nobody_in(machine, error, 0, 1, 2)
    assert rescue(machine).bring_back(quiet).how == "answered"
    machine = ScriptedMachine(monkeypatch, "", OWN)  # it goes down in the end, and hangs
    machine.awaits = "cycle"
    lets_nobody_in(machine, error, 0, 1, 2)
    assert rescue(machine).bring_back(quiet).how == "power cycle"


@pytest.mark.parametrize("error", STRANGERS)
def test_a_machine_that_lets_nobody_in_on_the_way_back_is_not_switched(
    monkeypatch: pytest.MonkeyPatch, error: InfrastructureError
) -> None:
    later = range(1, 1000)
    machine = ScriptedMachine(monkeypatch, "")  # it was silent before
    lets_nobody_in(machine, error, *later)
    assert (rescue(machine).bring_back(quiet).how, machine.done) == ("never", [])
    machine = ScriptedMachine(monkeypatch, TESTED)  # it was restarted
    lets_nobody_in(machine, error, *later)
    assert (rescue(machine).bring_back(quiet).how, machine.done) == ("never", ["restart"])
    machine = ScriptedMachine(monkeypatch, TESTED)

    def restart() -> None:
        raise error

    machine.restart = restart  # type: ignore[method-assign]
    assert (rescue(machine).bring_back(quiet).how, machine.done) == ("never", [])


def test_a_kernel_under_test_that_a_restart_boots_once_more_is_not_the_machines_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, TESTED, "tested 2")
    machine.awaits = "restart"
    assert rescue(machine, power=False).bring_back(quiet).how == "never"


def test_a_machine_that_is_switched_off_while_it_is_waited_for_is_switched_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, "", "own 2")
    machine.awaits = "on"
    said: list[PowerStatus] = ["on", "off"]
    monkeypatch.setattr(machine, "status", lambda: said.pop(0))
    found = rescue(machine).bring_back(quiet)
    assert (found.how, found.power, machine.done) == ("switched on", "off", ["on"])


def test_the_first_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, "", TESTED, "own 2")
    found = rescue(machine).bring_back(quiet)
    assert found.first is not None
    assert found.first.boot_id == TESTED


def test_a_kernel_that_the_network_still_serves_is_withdrawn_before_anything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = ScriptedMachine(monkeypatch, "", OWN)
    machine.awaits = "cycle"
    asked: list[list[bool]] = []
    ask = machine.ask

    def noted() -> Answer:
        asked.append(machine.requests_ended.copy())
        return ask()

    machine.ask = noted  # type: ignore[method-assign]
    rescue(machine).bring_back(quiet)
    assert asked[0] == [False], "nothing is asked over SSH for it"

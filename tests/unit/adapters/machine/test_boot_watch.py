"""What is seen of a machine that boots, and who counts as an answer."""

from __future__ import annotations

import pytest

from bisector.adapters.machine.boot_watch import Sighting, wait_for_answer, watch_boot
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.system.ssh import LoginRefused, UnverifiedHost
from bisector.errors import InfrastructureError, Interrupted
from tests.support.machines.scripted_machine import OWN, PANIC, TESTED, ScriptedMachine

REACH = MachineReach.__new__(MachineReach)


def test_a_boot_is_watched_until_another_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = ScriptedMachine(monkeypatch, OWN, "", TESTED)
    assert watch_boot(REACH, OWN, machine.console, 5.0) == Sighting(Answer(TESTED, "key"))
    back = ScriptedMachine(monkeypatch, "own 2")
    fell_back = watch_boot(REACH, OWN, back.console, 5.0)
    assert fell_back == Sighting(Answer("own 2", ""), ""), "no death is known"
    silent = ScriptedMachine(monkeypatch, OWN, "")
    seen = watch_boot(REACH, OWN, silent.console, 0.05)
    assert (seen.answer, seen.refusal) == (None, "no route: to the host")
    with pytest.raises(Interrupted):
        watch_boot(REACH, OWN, silent.console, 5.0, lambda: True)
    with pytest.raises(Interrupted):
        wait_for_answer(REACH, 5.0, stop=lambda: True)


@pytest.mark.parametrize(
    ("answers", "before", "seen"),
    [
        ((TESTED, "", "tested 2"), TESTED, "tested 2"),  # from one kernel under test to the next, by kexec
        ((OWN, "own 2", TESTED), OWN, "own 2"),  # it fell back: no other boot is waited for
        ((OWN, "", OWN), OWN, OWN),  # it was out of reach for a while
    ],
)
def test_only_another_boot_ends_the_watch_and_whichever_it_is(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[str, ...], before: str, seen: str
) -> None:
    machine = ScriptedMachine(monkeypatch, *answers)
    found = watch_boot(REACH, before, machine.console, 0.2).answer
    assert found is not None
    assert found.boot_id == seen


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (OWN, Sighting(Answer(OWN, ""), PANIC)),  # at the shutdown, where it has not gone down yet
        ("", Sighting(None, PANIC, "no route: to the host")),
        ("own 2", Sighting(Answer("own 2", ""), PANIC)),  # it told its end late: the machine is back already
        (TESTED, Sighting(Answer(TESTED, "key"))),  # of the kernel that was tried before, told late
    ],
)
def test_a_death_on_the_console_ends_the_watch_and_who_answered_is_kept(
    monkeypatch: pytest.MonkeyPatch, answer: str, seen: Sighting
) -> None:
    machine = ScriptedMachine(monkeypatch, answer)
    machine.console.dead = True
    assert watch_boot(REACH, OWN, machine.console, 5.0) == seen


@pytest.mark.parametrize("error", [UnverifiedHost("another host key"), LoginRefused("the key is refused")])
def test_who_does_not_let_us_in_until_the_end_is_told(
    monkeypatch: pytest.MonkeyPatch, error: InfrastructureError
) -> None:
    machine = ScriptedMachine(monkeypatch, "")
    ask, refusals = machine.ask, [False, True, True, False]

    def answer() -> Answer:
        if refusals.pop(0) if refusals else True:
            raise error
        return ask()

    machine.ask = answer  # type: ignore[method-assign]
    with pytest.raises(type(error)):
        wait_for_answer(REACH, 0.2)
    refusals[:] = [True, True, False]
    machine.answers = [OWN]
    assert wait_for_answer(REACH, 5.0) == Answer(OWN, ""), "it was booting"
    refusals[:] = [True, *[False] * 1000]
    machine.answers = [""]
    assert wait_for_answer(REACH, 0.05) is None, "it has gone down since"

"""`lab check --deep`: what is tried after what, what the boots say, and that the machine is given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from bisector.adapters.machine.checks import deep_steps, lab_check
from bisector.adapters.machine.checks.lab_check import Around
from bisector.app.calibrate import SMALL_RUNS, Measured
from bisector.app.machines import deep_check
from bisector.app.machines.check_machines import user_of
from bisector.app.machines.kept_checks import last_check
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import find_holder
from bisector.errors import BootFailed, InfrastructureError, Interrupted, RequestError
from bisector.model.machines.lab_findings import LabFinding
from bisector.schemas.settings import Settings
from bisector.stats.aa_analysis import AABoot

INVENTORY = """all:
  children:
    testbeds:
      hosts:
        box: {ansible_host: 192.0.2.1, perfbisect_boot_method: kexec}
        guest: {perfbisect_kind: libvirt}
"""
OK = LabFinding("ssh", "ok", "answers")


class Machine:
    """What happens on the machine, and what was done to it."""

    def __init__(self) -> None:
        self.plain = [OK]
        self.cycle = LabFinding("power cycle", "ok", "off and on")
        self.console = LabFinding("console in boot", "ok", "heard")
        self.values = [(10.0 + b / 100, 10.1 + b / 100, 9.9 + b / 100, 10.05) for b in range(5)]
        self.fails_at = 99
        self.boot_seconds = [20.0] * 5
        self.done: list[str] = []

    name, has_own_kernel = "box", True
    back_fails: BaseException | None = None

    def give_back(self, progress: object) -> None:
        self.done.append("back")
        if self.back_fails is not None:
            raise self.back_fails

    def measure(self, *_: object, **asked: object) -> Iterator[Measured]:
        assert (asked["boots"], asked["runs"]) == (range(5), SMALL_RUNS)
        for number, values in enumerate(self.values):
            if number == self.fails_at:
                raise BootFailed("the kernel never answered", details="console")
            self.done.append("boot")
            yield Measured(AABoot("box", values, (0.0, 1.0, 2.0, 3.0)), self.boot_seconds[number], 0.5)


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    (tmp_path / "lab.yml").write_text(INVENTORY)
    lab, state, cache, locks = (tmp_path / name for name in ("lab.yml", "state", "cache", "locks"))
    return Wiring(Settings(lab=lab, state_dir=state, cache_dir=cache, lock_dir=locks))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    made = Machine()
    image = tmp_path / "vmlinuz"
    image.write_bytes(b"kernel")

    def cycle(*_: object) -> Iterator[LabFinding]:
        made.done.append("cycle")
        yield made.cycle
        yield made.console

    kernel = SimpleNamespace(release="6.1.0", image=image, arch="x86_64")
    monkeypatch.setattr(lab_check, "testbed_checks", lambda spec, around: iter(made.plain))
    monkeypatch.setattr(deep_steps, "cycle_power", cycle)
    monkeypatch.setattr(deep_steps, "watch_clock", lambda *_: LabFinding("clock rate", "ok", "right"))
    monkeypatch.setattr(deep_steps, "fetch_own_kernel", lambda *_: kernel)
    monkeypatch.setattr(deep_check, "_prepare", lambda *_: (made, SimpleNamespace(warmup=2), "real"))
    monkeypatch.setattr(deep_check, "measure", made.measure)
    return made


def results(wiring: Wiring, name: str = "box") -> dict[str, LabFinding]:
    found = deep_check.deep_check(wiring, name, lambda _: None)
    kept = last_check(wiring, name)
    assert kept is not None and kept.machine == found
    checks = [one.check for one in found.findings]
    assert len(checks) == len(set(checks)), "nothing is told twice"
    return {one.check: one for one in found.findings}


def test_a_sound_machine_and_what_its_noise_means(wiring: Wiring, machine: Machine) -> None:
    found = results(wiring)
    assert {one.result for one in found.values()} == {"ok"}
    first = ["ssh", "power cycle", "console in boot", "clock rate", "own kernel"]
    assert [*found] == [*first, "round trip", "noise", "given back"]
    assert "5 boots a side show a change of" in found["noise"].found
    assert found["round trip"].found.startswith("6.1.0 booted by kexec, was recognised, and ran pipe-test")
    assert machine.done == ["cycle", *["boot"] * 5, "back"]


def test_the_time_that_is_left_does_not_jump_with_each_boot(wiring: Wiring, machine: Machine) -> None:
    """Each boot alone told it, one of twice the time doubled it; and giving back, a boot, was not in it."""
    machine.boot_seconds = [31.0, 64.0, 30.0, 29.0, 62.0]
    said: list[str] = []
    deep_check.deep_check(wiring, "box", said.append)
    left = [words.partition("; ")[2] for words in said if "measured; " in words]
    assert left == [f"about {one} left" for one in ("3 min", "3 min", "2 min", "66 s", "31 s")]


def test_large_noise_is_doubtful_with_a_cure(wiring: Wiring, machine: Machine) -> None:
    machine.values = [(10.0 + 3 * (b % 2), 10.1 + 3 * (b % 2), 9.9, 10.0) for b in range(5)]
    noise = results(wiring)["noise"]
    assert noise.result == "doubtful" and "perfbisect_environment" in noise.cure


@pytest.mark.parametrize("fails_at", [0, 2])
def test_a_boot_that_fails_is_told_and_the_machine_given_back(
    wiring: Wiring, machine: Machine, fails_at: int
) -> None:
    machine.fails_at = fails_at
    found = results(wiring)
    assert machine.done[-1] == "back" and found["given back"].result == "ok"
    if fails_at:
        assert found["round trip"].result == "ok"
        assert (found["noise"].result, found["noise"].found) == (
            "wrong",
            "boot 3 of 5: the kernel never answered",
        )
    else:
        assert (found["round trip"].result, found["noise"].result) == ("wrong", "not tried")
    (state,) = wiring.coordinator.testbeds()
    assert (state.name, state.state) == ("box", "suspect") and "lab check --deep" in state.reason


@pytest.mark.parametrize("how", [KeyboardInterrupt(), Interrupted("stopped")])
def test_it_is_given_back_where_somebody_ends_it_and_what_fails_is_told(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch, how: BaseException
) -> None:
    def interrupted(*_: object, **__: object) -> Iterator[Measured]:
        raise how
        yield

    told: list[str] = []
    monkeypatch.setattr(deep_check, "measure", interrupted)
    machine.back_fails = InfrastructureError("it stays dark", cure="switch it on")
    with pytest.raises(type(how)):
        deep_check.deep_check(wiring, "box", told.append)
    assert machine.done[-1] == "back"
    assert told[-1] == "it stays dark; switch it on"


@pytest.mark.parametrize(("heard", "result"), [(b"Linux version 6.1", "doubtful"), (b"", "wrong")])
def test_a_console_that_is_silent_in_the_power_cycle_may_be_heard_in_the_boots(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch, heard: bytes, result: str
) -> None:
    """An emulated BMC hears nothing for 10 s after one, and the machine had booted by then."""

    def measured(*arguments: object, folder: Path, **more: object) -> Iterator[Measured]:
        (folder / "boot-0").mkdir()
        (folder / "boot-0" / "console.log").write_bytes(heard)
        yield from machine.measure(**more)

    machine.console = LabFinding("console in boot", "wrong", "its console was silent", "add console=")
    monkeypatch.setattr(deep_check, "measure", measured)
    found = results(wiring)
    assert found["console in boot"].result == result
    assert ("it was heard in 1 boot after that" in found["console in boot"].found) is bool(heard)
    assert bool(wiring.coordinator.testbeds()) is not bool(heard), "who has no console at all is suspect"


def test_another_interrupt_says_that_it_is_not_given_back(wiring: Wiring, machine: Machine) -> None:
    machine.back_fails = KeyboardInterrupt()
    with pytest.raises(Interrupted, match="box is not given back"):
        results(wiring)


def test_nothing_is_touched_where_the_plain_check_fails(wiring: Wiring, machine: Machine) -> None:
    machine.plain = [OK, LabFinding("tools", "wrong", "missing: kexec")]
    found = results(wiring)
    assert machine.done == []
    assert {found[name].result for name in ("power cycle", "round trip", "noise")} == {"not tried"}
    assert "first mend what is wrong: tools" in found["noise"].found


def test_what_is_doubtful_in_the_plain_check_stops_nothing(wiring: Wiring, machine: Machine) -> None:
    machine.plain = [OK, LabFinding("clock", "doubtful", "it is 20 s ahead")]
    results(wiring)
    assert machine.done == ["cycle", *["boot"] * 5, "back"]
    assert not wiring.coordinator.testbeds(), "it stays in use"


def test_a_second_check_takes_nothing_over_from_the_first(wiring: Wiring, machine: Machine) -> None:
    machine.console = LabFinding("console in boot", "wrong", "its console was silent", "add console=")
    results(wiring)
    heard = wiring.settings.state_dir / "lab-checks" / "box" / "raw" / "boot-0"
    heard.mkdir()
    (heard / "console.log").write_text("Linux version 6.1")
    assert results(wiring)["console in boot"].result == "wrong"


def test_a_machine_is_held_against_all_others_while_it_is_checked(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bisection that began beside it would boot the machine under the check."""
    seen: list[object] = []

    def look(spec: object, around: Around) -> Iterator[LabFinding]:
        holder = find_holder(wiring.settings.state_dir)
        seen.extend([user_of(wiring)("box"), holder and holder.doing, around.in_use("box")])
        return iter([OK])

    monkeypatch.setattr(lab_check, "testbed_checks", look)
    results(wiring)
    assert seen == ["another perfbisect of this machine", "lab check of box", ""]
    assert user_of(wiring)("box") == "" and find_holder(wiring.settings.state_dir) is None


@pytest.mark.parametrize("lacks", ["fetch_own_kernel", "_prepare"])
def test_without_a_kernel_or_a_workload_nothing_is_booted_and_it_is_told(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise InfrastructureError("there is no /boot/vmlinuz", cure="name a commit")

    monkeypatch.setattr(deep_steps if lacks == "fetch_own_kernel" else deep_check, lacks, refuse)
    found = results(wiring)
    assert machine.done == ["cycle"]
    first = "own kernel" if lacks == "fetch_own_kernel" else "round trip"
    assert (found[first].result, found[first].found) == ("wrong", "there is no /boot/vmlinuz")
    assert {found[name].result for name in ("noise", "given back")} == {"not tried"}
    assert found["clock rate"].result == "ok"
    assert [state.state for state in wiring.coordinator.testbeds()] == ["suspect"]


def test_a_check_that_fails_leaves_what_people_said_of_a_machine(wiring: Wiring, machine: Machine) -> None:
    wiring.coordinator.set_testbed("attic", "retired", "nobody has it", "ann")
    machine.fails_at = 2
    results(wiring)
    assert {one.name: one.state for one in wiring.coordinator.testbeds()}["box"] == "suspect"
    wiring.coordinator.set_testbed("box", "maintenance", "new memory comes", "ann")
    results(wiring)
    told = {one.name: (one.state, one.reason, one.by) for one in wiring.coordinator.testbeds()}
    assert told["box"] == ("maintenance", "new memory comes", "ann")
    wiring.coordinator.set_testbed("box", "retired", "sold", "ann")
    with pytest.raises(RequestError, match="retired: sold"):
        deep_check.require_usable(wiring, ["box"])


def test_before_any_machine_is_touched_all_are_asked_for(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(deep_check, "require_own", lambda _, names: asked.append(names))
    wiring.coordinator.set_testbed("box", "maintenance", "new memory", "ann")
    deep_check.require_usable(wiring, ["box", "guest"])
    assert asked == [["box", "guest"]]


def test_after_a_machine_that_cannot_be_used_the_next_is_checked_but_not_after_an_interrupt(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    found = [*deep_check.deep_checks(wiring, ["boxx", "box"], told.append)]
    assert [(one.name, one.ok) for one in found] == [("testbed boxx", False), ("testbed box", True)]
    assert found[0].findings[0].check == "use" and "box: noise: ok" in told

    def stopped(*_: object) -> NoReturn:
        raise Interrupted("stopped")

    monkeypatch.setattr(deep_check, "deep_check", stopped)
    with pytest.raises(Interrupted):
        next(deep_check.deep_checks(wiring, ["box"], told.append))


def test_a_check_that_waits_for_its_machine_may_be_stopped(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def use(*arguments: object) -> AbstractContextManager[None]:
        given.extend(arguments)
        return nullcontext()

    monkeypatch.setattr(deep_check, "use_testbed", use)
    results(wiring)
    assert not given[3]()
    wiring.stop.set()
    assert given[3]()


def test_a_machine_that_does_not_come_back_is_left_alone(wiring: Wiring, machine: Machine) -> None:
    machine.cycle = LabFinding("power cycle", "wrong", "it did not answer")
    found = results(wiring)
    assert machine.done == ["cycle"] and found["round trip"].result == "not tried"
    assert found["power cycle"].result == "wrong" and found["clock rate"].result == "not tried"


@pytest.mark.parametrize("stages", [0, 2])
def test_the_mark_outlasts_each_stage_of_the_power(
    wiring: Wiring, machine: Machine, monkeypatch: pytest.MonkeyPatch, stages: int
) -> None:
    held: list[float] = []

    def marked(_: Wiring, __: str, seconds: float) -> AbstractContextManager[None]:
        held.append(seconds)
        return nullcontext()

    monkeypatch.setattr(deep_check, "marked", marked)
    assert wiring.settings.lab is not None
    power = f", perfbisect_power: [{', '.join(['{cycle: [pdu]}'] * stages)}]"
    wiring.settings.lab.write_text(INVENTORY.replace(": kexec", f": kexec{power}", 1))
    results(wiring)
    assert held == [180.0 * (6 + stages)]


def test_a_guest_has_no_power_of_its_own(wiring: Wiring, machine: Machine) -> None:
    found = results(wiring, "guest")
    assert machine.done == [] and "testbed health" in found["noise"].found

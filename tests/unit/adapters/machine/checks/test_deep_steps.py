"""Steps of `lab check --deep` on a machine that is played here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.machine.boot_watch import Sighting
from bisector.adapters.machine.checks import deep_steps
from bisector.adapters.machine.machine_facts import MachineFacts
from bisector.adapters.machine.machine_reach import Answer
from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.ssh import LoginRefused, SSHRefused
from bisector.errors import InfrastructureError
from bisector.model.machines.lab_findings import LabFinding
from bisector.schemas.lab import TestbedSpec, lab_from_inventory


class Played:
    """A machine: its power, its console and its SSH server in one."""

    def __init__(self) -> None:
        self.after = Sighting(Answer("new", ""))
        self.state_ = "heard"
        self.text = "[ 0.1] Linux version 6.1"
        self.path: Path | None = None
        self.rate = 1.0
        self.closed = False
        self.next: Played | None = None
        self.fails: InfrastructureError | None = None

    def ask(self) -> Answer:
        return Answer("old", "")

    def cycle(self) -> None:
        if self.fails is not None:
            raise self.fails

    def further(self) -> Played | None:
        return self.next

    def status(self) -> str:
        return "on"

    def state(self) -> str:
        return self.state_

    def end(self) -> str:
        return self.text

    def close(self) -> None:
        self.closed = True


def spec(**more: Any) -> TestbedSpec:
    variables = {"ansible_ssh_private_key_file": "/key", "perfbisect_console": ["cat"], **more}
    lab = lab_from_inventory(
        {"_meta": {"hostvars": {"box": variables}}, "testbeds": {"hosts": ["box"]}}, Path("lab.yml")
    )
    return lab.testbeds[0]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Played:
    made = Played()
    made.path = tmp_path / "console.log"
    made.path.write_text("x" * 100)
    monkeypatch.setattr(deep_steps, "MachineReach", lambda *_: made)
    monkeypatch.setattr(deep_steps, "open_power", lambda *_, **__: made)
    monkeypatch.setattr(deep_steps, "open_console", lambda *_: made)
    monkeypatch.setattr(deep_steps, "watch_boot", lambda *_: made.after)
    return made


def cycled(tmp_path: Path, one: TestbedSpec | None = None) -> tuple[LabFinding, LabFinding]:
    power, console = deep_steps.cycle_power(one or spec(), tmp_path, lambda _: None)
    return power, console


def test_a_power_cycle_and_its_console(played: Played, tmp_path: Path) -> None:
    power, console = cycled(tmp_path)
    assert power.result == "ok" and power.found.endswith("its status is on")
    assert (console.result, console.found) == ("ok", "100 bytes were heard in the boot")
    assert played.closed


@pytest.mark.parametrize(
    ("after", "says", "cure"),
    [
        (Sighting(Answer("old", "")), "still runs the same boot", "another machine"),
        (Sighting(None, refusal="refused"), "did not answer within 180 s", "boot by itself"),
    ],
)
def test_a_power_cycle_that_fails(
    played: Played, tmp_path: Path, after: Sighting, says: str, cure: str
) -> None:
    played.after = after
    power, console = cycled(tmp_path)
    assert power.result == "wrong" and says in power.found and cure in power.cure
    assert power.details == (f"refused\n{played.text}" if after.answer is None else "")
    assert (console.result, console.details) == ("not tried", played.text), "what it said in spite of that"


IDLE = "a stage of its power said that it had switched, and nothing came of it"


@pytest.mark.parametrize("after", [Sighting(Answer("old", "")), Sighting(None, refusal="refused")])
def test_a_stage_that_has_no_effect_is_told_and_the_next_one_tried(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: Sighting
) -> None:
    seen, asked = iter([after, Sighting(Answer("new", ""))]), [0]

    def ask() -> Answer:
        asked[0] += 1
        if asked[0] > 1 and after.answer is None:
            raise SSHRefused("no route")
        return Answer("old", "")

    monkeypatch.setattr(played, "ask", ask)
    monkeypatch.setattr(deep_steps, "watch_boot", lambda *_: next(seen))
    played.next = Played()
    power, console = cycled(tmp_path)
    assert power.result == "doubtful" and power.found.startswith(f"{IDLE}; then switched in 0 s")
    assert "perfbisect_power" in power.cure
    assert console.result == "ok"


def test_both_are_told_where_the_next_stage_does_not_help_either(played: Played, tmp_path: Path) -> None:
    played.after = Sighting(Answer("old", ""))
    played.next = Played()
    power, _ = cycled(tmp_path)
    assert (power.result, power.found) == (
        "wrong",
        f"{IDLE}; it was switched off and on, and still runs the same boot",
    )
    played.next.fails = InfrastructureError("pdu: no route", cure="plug it in")
    power, _ = cycled(tmp_path)
    assert (power.result, power.found, power.cure) == ("wrong", f"{IDLE}; pdu: no route", "plug it in")


@pytest.mark.parametrize("now", [Answer("new", ""), LoginRefused("another key")])
def test_the_next_stage_is_not_for_a_machine_that_has_booted_or_may_be_another(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: Answer | LoginRefused
) -> None:
    said = iter([Answer("old", ""), now])

    def ask() -> Answer:
        one = next(said)
        if isinstance(one, LoginRefused):
            raise one
        return one

    monkeypatch.setattr(played, "ask", ask)
    played.after = Sighting(None, refusal="refused")
    played.next = Played()
    monkeypatch.setattr(played.next, "cycle", lambda: pytest.fail("it was switched again"))
    power, _ = cycled(tmp_path)
    assert power.result == "wrong" and IDLE not in power.found


def test_a_kernel_that_dies_in_the_boot_shows_that_the_switch_works(played: Played, tmp_path: Path) -> None:
    """What it said is told, and the next stage of the power is not blamed on the first."""
    played.after = Sighting(None, panic="Kernel panic - not syncing: VFS")
    played.text = "[ 0.1] the end of the console"
    played.next = Played()
    played.next.fails = InfrastructureError("it was switched again")
    power, console = cycled(tmp_path)
    assert (power.result, power.found) == ("wrong", "it did not answer within 180 s after the power cycle")
    assert power.details == "Kernel panic - not syncing: VFS"
    assert console.result == "not tried"


class Files:
    """A connection to a machine that sends files. lacks: the name of one that cannot be read."""

    def __init__(self, lacks: str) -> None:
        self.lacks = lacks
        self.asked: list[list[str]] = []

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def save(self, command: list[str], target: Path, **_: object) -> CompletedCommand:
        self.asked.append(command)
        target.write_text("bytes")
        failed = target.name == self.lacks
        return CompletedCommand(tuple(command), int(failed), "cannot open" if failed else "")


OWN_KERNEL = {"release": "6.1.0-9-amd64", "kernel_image": "/boot/vmlinuz-6.1.0-9-amd64", "arch": "x86_64"}


@pytest.mark.parametrize("lacks", ["", "config", "vmlinuz", "modules.tar.gz"])
@pytest.mark.parametrize("initrd", ["/boot/initrd.img", ""])
def test_the_own_kernel_is_fetched_with_what_it_boots_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacks: str, initrd: str
) -> None:
    there = Files(lacks)
    monkeypatch.setattr(deep_steps, "_connect", lambda _: there)
    arch = "arm64" if initrd else "x86_64"  # the workload is built for it
    facts = MachineFacts({**OWN_KERNEL, "initrd": initrd, "arch": arch})
    monkeypatch.setattr(deep_steps, "read_machine_facts", lambda *_: facts)
    if lacks == "vmlinuz" or (initrd and lacks == "modules.tar.gz"):
        with pytest.raises(InfrastructureError, match=f"cannot fetch {lacks}") as caught:
            deep_steps.fetch_own_kernel(spec(), tmp_path)
        assert caught.value.details == "cannot open"
        return
    kernel = deep_steps.fetch_own_kernel(spec(), tmp_path)
    assert (kernel.release, kernel.arch) == ("6.1.0-9-amd64", arch)
    assert kernel.modules == (tmp_path / "modules.tar.gz" if initrd else None)
    assert kernel.image.exists() and kernel.config.exists() is (lacks != "config")
    assert there.asked[0] == ["cat", "/boot/vmlinuz-6.1.0-9-amd64"]
    assert len(there.asked) == (3 if initrd else 2)


def test_a_machine_without_the_file_of_its_kernel_says_what_to_do_instead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(deep_steps, "_connect", lambda _: nullcontext())
    facts = MachineFacts({**OWN_KERNEL, "kernel_image": ""})
    monkeypatch.setattr(deep_steps, "read_machine_facts", lambda *_: facts)
    with pytest.raises(InfrastructureError, match=r"no /boot/vmlinuz-6\.1\.0-9-amd64") as caught:
        deep_steps.fetch_own_kernel(spec(), tmp_path)
    assert "health_commit" in caught.value.cure


def test_a_stage_that_cannot_be_used_is_told(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: Callable[[str], None] = print

    def open_power(spec: TestbedSpec, tell: Callable[[str], None]) -> Played:
        nonlocal told
        told = tell
        monkeypatch.setattr(played, "cycle", lambda: tell("the BMC is dead"))
        monkeypatch.setattr(played, "status", status)
        return played

    def status() -> str:
        told("it cannot tell its state")
        return "on"

    monkeypatch.setattr(deep_steps, "open_power", open_power)
    power, _ = cycled(tmp_path)
    assert power.result == "doubtful" and power.found.startswith("the BMC is dead; then switched")


@pytest.mark.parametrize(
    ("state", "text", "result"),
    [("silent", "", "wrong"), ("lost", "", "wrong"), ("heard", "BIOS", "doubtful")],
)
def test_a_console_without_the_kernels_words(
    played: Played, tmp_path: Path, state: str, text: str, result: str
) -> None:
    played.state_, played.text = state, text
    _, console = cycled(tmp_path)
    assert console.result == result and "console=" in console.cure
    assert console.details == text, "which shows whose words they are"


@pytest.mark.parametrize("text", ["Linux version 6.1", "box login: ", "[    1.2] usb 1-1"])
def test_each_word_of_a_kernel_or_its_login_shows_that_the_console_is_set(
    played: Played, tmp_path: Path, text: str
) -> None:
    played.text = text
    assert cycled(tmp_path)[1].result == "ok"


def test_what_the_lab_does_not_have_is_not_tried(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, console = cycled(tmp_path, spec(perfbisect_console=[]))
    assert console.result == "not tried" and "perfbisect_console" in console.cure
    monkeypatch.setattr(deep_steps, "open_power", lambda *_, **__: None)
    power, console = cycled(tmp_path)
    assert power.result == console.result == "not tried" and "perfbisect_power" in power.cure


@pytest.mark.parametrize(
    ("rate", "wrong"),
    [(1.0, False), (1.0005, False), (1.002, False), (1.004, True), (1.1, True), (0.5, True)],
)
def test_a_clock_that_goes_wrong(monkeypatch: pytest.MonkeyPatch, rate: float, wrong: bool) -> None:
    looks: list[float] = []

    def look() -> float:
        looks.append(10.0 * (len(looks) // 2))  # before and after a question no time passes, between two 10 s
        return looks[-1]

    class Connection:
        def __enter__(self) -> Connection:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, command: list[str], *, check: bool = True) -> CompletedCommand:
            text = f"{looks[-1] * rate:.2f} 0" if "uptime" in command[1] else "tsc"
            return CompletedCommand(tuple(command), 0, text)

    monkeypatch.setattr(deep_steps, "awake_seconds", look)
    monkeypatch.setattr(deep_steps, "_connect", lambda _: Connection())
    monkeypatch.setattr(deep_steps, "_CLOCK_SECONDS", 0.0)
    if wrong:
        with pytest.raises(InfrastructureError, match="its clock goes wrong") as error:
            deep_steps._clock_rate(spec())
        assert "clocksource=" in error.value.cure
        assert f": {100 * (rate - 1):+.2f}% +- " in error.value.message, "which way and how far"
    else:
        assert deep_steps._clock_rate(spec()).endswith("over 10 s, from tsc")


@pytest.mark.parametrize(
    ("questions", "result"),
    [((0.0, 4.0, 4.0), "doubtful"), ((0.0, 0.1, 0.1), "doubtful"), ((5.0, 0.0, 0.0), "ok")],
)
def test_a_connection_that_is_too_slow_tells_nothing_of_the_clock(
    monkeypatch: pytest.MonkeyPatch, questions: tuple[float, ...], result: str
) -> None:
    """Only the first question of a connection may take its time, for it sets things up. Seconds of each."""
    now, lasts = 0.0, [*questions, 0.0]

    class Slow:
        def __enter__(self) -> Slow:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, command: list[str], *, check: bool = True) -> CompletedCommand:
            half = lasts.pop(0) / 2
            sleep(half)
            text = f"{now:.2f} 0"
            sleep(half)
            return CompletedCommand(tuple(command), 0, text)

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(deep_steps, "awake_seconds", lambda: now)
    monkeypatch.setattr(deep_steps, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(deep_steps, "_connect", lambda _: Slow())
    found = deep_steps.watch_clock(spec(), lambda _: None)
    assert found.result == result and ("too slow to tell" in found.found) == (result == "doubtful")


def test_a_machine_whose_release_is_a_template_lends_no_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = {"release": "6.1{{lookup('pipe','id')}}", "kernel_image": "/boot/vmlinuz"}
    monkeypatch.setattr(deep_steps, "_connect", lambda _: nullcontext())
    monkeypatch.setattr(deep_steps, "read_machine_facts", lambda *_: MachineFacts(said))
    with pytest.raises(InfrastructureError, match=r"lookup.* which is no kernel's release"):
        deep_steps.fetch_own_kernel(spec(), tmp_path)


def test_a_busy_machine_may_miss_attempts_and_nothing_is_switched_before_it_answers(
    played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Iterator[SSHRefused | Answer] = iter([SSHRefused("busy"), SSHRefused("busy"), Answer("old", "")])

    def ask() -> Answer:
        one = next(answers)
        if isinstance(one, SSHRefused):
            raise one
        return one

    monkeypatch.setattr("bisector.adapters.machine.boot_watch.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(played, "ask", ask)
    assert cycled(tmp_path)[0].result == "ok"
    monkeypatch.setattr(deep_steps, "wait_for_answer", lambda *_: None)
    monkeypatch.setattr(played, "cycle", lambda: pytest.fail("it was switched"))
    power, _ = cycled(tmp_path)
    assert power.result == "wrong" and "nothing was switched" in power.found


def test_a_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def connect(*_: object, **__: object) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise SSHRefused("busy")
        return "connection"

    monkeypatch.setattr(deep_steps, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(deep_steps, "SSH", connect)
    assert str(deep_steps._connect(spec())) == "connection"
    tries.clear()
    now = iter((0.0, 181.0))  # a boot may take 180 s
    monkeypatch.setattr(deep_steps, "awake_seconds", lambda: next(now))
    with pytest.raises(SSHRefused):
        deep_steps._connect(spec())


def test_a_machine_that_does_not_take_the_key_is_not_asked_again_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = [LoginRefused("another key")]

    def connect(*_: object, **__: object) -> None:
        raise refused.pop()

    monkeypatch.setattr(deep_steps, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(deep_steps, "SSH", connect)
    with pytest.raises(LoginRefused):
        deep_steps._connect(spec())

"""A session over a line that says what a test wants: whose fault silence, an end and a wrong word are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.agent import cpu_deadline, monitor_output
from bisector.adapters.agent import session as module
from bisector.adapters.agent.session import AgentSession, await_greeting
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import LineClosed, LineFlood, LineSilent
from bisector.errors import BootFailed, InfrastructureError, KernelError, TestbedLost, WorkloadFailed
from bisector.ports import BootFacts, Job, MetricSpec, Monitor
from tests.support.agent_answers import GREETING, finished_line

GOOD = finished_line(out=b"real: 1.5\n", seconds=0.0)
PAUSED = '{"paused":1}'


UNTIL_KILLED = "silence until the run is killed"


class Line:
    """Gives the answers one by one: text, or an error to raise; then it is silent."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers: list[str | Exception] = list(answers)
        self.sent: list[str] = []
        self.closed = 0
        self.pause = 0.0

    def send(self, text: str) -> None:
        self.sent.append(text)

    def receive(self, timeout: float) -> str:
        if timeout == 0:
            raise LineSilent("nothing yet")
        if self.answers and self.answers[0] == UNTIL_KILLED and "kill" in self.sent:
            self.answers.pop(0)
        if not self.answers or self.answers[0] == UNTIL_KILLED:
            time.sleep(min(timeout, 0.01))
            raise LineSilent("nothing")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            time.sleep(self.pause)
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_CONSOLE_POLL_SECONDS", "_CONSOLE_DELAY_SECONDS"):
        monkeypatch.setattr(module, name, 0.02)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Callable[..., AgentSession]]:
    """Return a session whose line gives these answers; changed: of the job, or of the session."""

    def make(*answers: str | Exception, **changed: Any) -> AgentSession:
        about = {key: changed.pop(key) for key in ("settle", "pause", "results", "parse") if key in changed}
        job = Job("toy", tmp_path, ("toy",), (MetricSpec("real", "s"),), timeout=0.1, **about)
        given = {"crashed": lambda: None, "on_leave": lambda: None, "facts": BootFacts("6.1", "", {})}
        return AgentSession(job=job, line=Line(*answers), folder=tmp_path / "boot", **{**given, **changed})

    yield make


def _line(session: AgentSession) -> Line:
    assert isinstance(session.line, Line)
    return session.line


def test_a_run_gives_its_values_and_times(session: Callable[..., AgentSession], tmp_path: Path) -> None:
    one = session(finished_line(out=b"real: 1.5\n", seconds=0.25), wall=False)
    result = one.run(7)
    assert _line(one).sent == ["run"]
    assert (result.values, result.guest_seconds, result.flags) == ({"real": 1.5}, 0.25, ())
    assert result.raw == tmp_path / "boot" / "run-007.out"
    assert result.raw.read_text() == "real: 1.5\n", "what the user looks at where a number surprises"


def test_it_settles_once_and_pauses_between_runs(session: Callable[..., AgentSession]) -> None:
    one = session(PAUSED, GOOD, PAUSED, GOOD, settle=2.0, pause=0.5)
    one.run(0), one.run(1)
    assert _line(one).sent == ["pause 2000", "run", "pause 500", "run"]


def test_a_kernel_that_says_nothing_even_when_the_run_is_killed_hangs(
    session: Callable[..., AgentSession],
) -> None:
    one = session(crashed=lambda: None)
    with pytest.raises(BootFailed, match="the kernel hangs: no end of the workload within 0 s"):
        one.run(0)
    assert _line(one).sent == ["run", "kill"]
    with pytest.raises(BootFailed, match="hangs"):
        one.run(1)
    assert _line(one).sent == ["run", "kill"]  # a kernel that hangs is asked nothing more
    one.leave()
    assert "quit" not in _line(one).sent


def test_a_guest_that_was_paused_is_no_kernel_that_hangs(session: Callable[..., AgentSession]) -> None:
    paused = TestbedLost("the guest was paused from outside (I/O error)")
    one = session(paused=lambda: paused)
    for _ in range(2):
        with pytest.raises(TestbedLost) as caught:
            one.run(0)
        assert caught.value is paused
    went_on = [None, paused]
    once = session(paused=lambda: went_on.pop() if went_on else None)
    for _ in range(2):  # somebody lets it go on: what it measures then is no usual run, and no hang
        with pytest.raises(TestbedLost) as caught:
            once.run(0)
        assert caught.value is paused
    dead: AgentSession = session(
        paused=lambda: paused, crashed=lambda: "Kernel panic" if "kill" in _line(dead).sent else None
    )
    with pytest.raises(BootFailed) as died:
        dead.run(0)
    assert died.value.details == "Kernel panic"


def test_a_workload_that_is_killed_at_its_deadline_is_no_hang(session: Callable[..., AgentSession]) -> None:
    one = session(UNTIL_KILLED, finished_line(code=-1, signal=9, killed=1), GOOD)
    with pytest.raises(WorkloadFailed, match="did not end within 0 s"):
        one.run(0)
    assert _line(one).sent == ["run", "kill"]
    assert one.run(1).values == {"real": 1.5}


def test_answers_without_end_behind_a_killed_run_are_the_testbeds_failure(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KILLED_SECONDS", 0.1)
    monkeypatch.setattr(monitor_output, "deadline_seconds", lambda timeout, monitor: 0.1)
    one = session()

    def receive(timeout: float) -> str:
        if timeout == 0:
            raise LineSilent("nothing yet")
        return '{"file":"a","data":"","cut":0}'

    monkeypatch.setattr(one.line, "receive", receive)
    with pytest.raises(TestbedLost, match="no end of a killed run"):
        one.run_monitor(Monitor("proc", ()))
    assert _line(one).sent == ["monitor proc", "kill"]


def test_a_panic_on_the_console_during_a_run_is_the_kernels(session: Callable[..., AgentSession]) -> None:
    one = session(crashed=lambda: "Kernel panic - not syncing")
    with pytest.raises(BootFailed, match="died while the workload ran") as caught:
        one.run(0)
    assert caught.value.details == "Kernel panic - not syncing"
    assert _line(one).sent == ["run"]


def test_a_closed_line_is_a_lost_testbed_and_stays_one(session: Callable[..., AgentSession]) -> None:
    one = session(LineClosed("the line ended", details="Broken pipe"))
    for _ in range(2):
        with pytest.raises(TestbedLost, match="the testbed was lost during a run") as caught:
            one.run(0)
    assert "Broken pipe" in caught.value.details


def test_a_closed_line_is_the_kernels_where_the_console_says_so_a_moment_later(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CONSOLE_DELAY_SECONDS", 5.0)
    words = iter([None, None, "Kernel panic - not syncing"])
    one = session(LineClosed("the line ended"), crashed=lambda: next(words))
    with pytest.raises(BootFailed) as caught:
        one.run(0)
    assert caught.value.details == "Kernel panic - not syncing"


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        finished_line(seconds=None),
        finished_line(seconds=float("nan")),
        PAUSED,
        GREETING,
        '{"file":"a","data":"","cut":0}',
        finished_line(monitor="proc"),
    ],
)
def test_a_wrong_answer_is_the_testbeds_failure(session: Callable[..., AgentSession], line: str) -> None:
    one = session(line, GOOD)
    with pytest.raises(TestbedLost, match=r"garbled|not asked") as caught:
        one.run(0)
    assert not isinstance(caught.value, KernelError)
    with pytest.raises(TestbedLost):  # nobody knows which answer comes next
        one.run(1)


def test_an_answer_that_waits_before_it_was_asked_for_is_not_taken_for_one(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = session(GOOD)
    monkeypatch.setattr(one.line, "receive", lambda timeout: GOOD)
    with pytest.raises(TestbedLost, match="not asked"):
        one.run(0)
    assert _line(one).sent == []
    unasked = session(unasked=True)  # a guest that runs by itself may have ended its next run already
    monkeypatch.setattr(unasked.line, "receive", lambda timeout: GOOD)
    assert unasked.run(0).values == {"real": 1.5}


def test_a_run_that_is_killed_unasked_and_a_flood_are_the_testbeds_failure(
    session: Callable[..., AgentSession],
) -> None:
    with pytest.raises(TestbedLost, match="nobody told it to"):
        session(finished_line(code=-1, signal=9, killed=1)).run(0)
    with pytest.raises(TestbedLost, match="sent too much") as caught:
        session(LineFlood("the guest sent too much", details="\x1b[2J")).run(0)
    assert caught.value.details == "\\x1b[2J"


def test_half_an_answer_is_the_testbeds_unless_the_console_says_otherwise(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(timeout: float) -> str:
        time.sleep(min(timeout, 0.01))
        raise LineSilent("nothing", details='{"code":0,' if timeout else "")

    one = session()
    monkeypatch.setattr(one.line, "receive", half)
    with pytest.raises(TestbedLost, match="stopped in the middle of an answer") as lost:
        one.run(0)
    assert lost.value.details == '{"code":0,'
    other: AgentSession = session(crashed=lambda: "Kernel panic" if "kill" in _line(other).sent else None)
    monkeypatch.setattr(other.line, "receive", half)
    with pytest.raises(BootFailed) as caught:
        other.run(0)
    assert caught.value.details == "Kernel panic"


def test_a_wrong_answer_to_a_pause(session: Callable[..., AgentSession]) -> None:
    with pytest.raises(TestbedLost, match="not asked"):
        session(GOOD, settle=1.0).run(0)


def test_a_wrong_answer_of_a_dying_kernel_is_the_kernels(session: Callable[..., AgentSession]) -> None:
    with pytest.raises(BootFailed):
        session("Kernel pan", crashed=lambda: "Kernel panic").run(0)


def test_a_taint_is_compared_with_that_at_boot(session: Callable[..., AgentSession]) -> None:
    tainted = finished_line(out=b"real: 1.5\n", seconds=0.0, tainted=512)
    assert session(tainted).run(0).flags == ("taint",)
    at_boot = BootFacts("6.1", "", {"tainted": "512"})
    assert session(tainted, facts=at_boot).run(0).flags == ()


def test_the_clocks_that_are_compared_are_those_of_the_session(session: Callable[..., AgentSession]) -> None:
    slow = finished_line(out=b"real: 1.5\n", seconds=100.0, ticks=100_000_000_000)
    assert session(slow).run(0).flags == ("clock",)
    assert session(slow, wall=False).run(0).flags == ()
    assert session(slow, wall=False, ticks_per_second=1e9).run(0).flags == ()
    assert session(slow, wall=False, ticks_per_second=2e9).run(0).flags == ("clock",)


def test_messages_of_the_console_count_where_the_agent_has_none(
    session: Callable[..., AgentSession],
) -> None:
    said = iter([["WARNING: at boot"], [], ["WARNING: x"], ["Out of memory: y"]])
    own = finished_line(out=b"real: 1.5\n", seconds=0.0, kernel=["soft lockup"])
    one = session(PAUSED, GOOD, GOOD, own, settle=1.0, new_messages=lambda: next(said))
    assert [one.run(n).flags for n in range(3)] == [(), ("warn",), ("stall",)]


def test_files_of_an_interrupted_run_are_not_taken_for_this_ones(
    session: Callable[..., AgentSession], tmp_path: Path
) -> None:
    old = tmp_path / "boot" / "run-000.results" / "out"
    old.mkdir(parents=True)
    (old / "stats.json").write_text('{"real": 1}')
    with pytest.raises(WorkloadFailed, match="the run left no 'out'"):
        session(GOOD, results="out", parse="results", fetch=lambda name, home: False).run(0)
    assert not old.exists()


def test_files_of_a_run_are_not_looked_for_where_nothing_can_fetch_them(
    session: Callable[..., AgentSession],
) -> None:
    with pytest.raises(WorkloadFailed, match="the run left no 'out'"):
        session(GOOD, results="out", parse="results").run(0)


def test_a_monitor_that_is_killed_may_send_its_files_before_its_end(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(monitor_output, "deadline_seconds", lambda *_: 0.1)
    killed = finished_line(monitor="proc", code=-1, signal=9, killed=1)
    one = session(UNTIL_KILLED, '{"file":"vmstat","data":"eAo=","cut":0}', killed)
    one.run_monitor(Monitor("proc", ()))
    assert _line(one).sent == ["monitor proc", "kill"]
    assert (tmp_path / "boot" / "monitors" / "proc" / "vmstat").read_text() == "x\n"


def test_a_death_in_a_long_run_is_noticed_long_before_its_deadline(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def silent(timeout: float) -> str:
        waits.append(timeout)
        raise LineSilent("nothing")

    one = session(crashed=lambda: "Kernel panic" if len(waits) > 3 else None)
    monkeypatch.setattr(one.line, "receive", silent)
    with pytest.raises(BootFailed, match="died while the workload ran"):
        one.run(0)
    assert max(waits) == module._CONSOLE_POLL_SECONDS < one.job.timeout


def test_modules_are_asked_for_and_an_agent_of_before_knows_none(
    session: Callable[..., AgentSession],
) -> None:
    one = session('{"symbols":"eAo="}', GOOD)
    assert one.module_symbols() == "x\n"
    assert one.run(0).values == {"real": 1.5}
    assert _line(one).sent == ["symbols", "run"]
    assert session('{"error":"symbols","reason":"Invalid argument"}').module_symbols() == ""
    with pytest.raises(TestbedLost):
        session(GOOD).module_symbols()
    busy = session(unasked=True)
    assert busy.module_symbols() == ""
    assert _line(busy).sent == []


def test_leaving_says_quit_once_and_never_raises(session: Callable[..., AgentSession]) -> None:
    def fail() -> None:
        raise InfrastructureError("no libvirt")

    one = session(on_leave=fail)
    one.leave()
    one.leave()
    assert (_line(one).sent, _line(one).closed) == (["quit"], 1)


@pytest.mark.parametrize(("lives_on", "cleanup"), [(False, True), (True, False), (True, True)])
def test_the_end_of_the_cleanup_is_waited_for_on_machines_that_live_on(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch, lives_on: bool, cleanup: bool
) -> None:
    """A guest is destroyed: each boot would wait for nothing. A machine would keep what runs there."""
    awaited: list[Job] = []
    monkeypatch.setattr(module, "await_cleanup", lambda line, job: awaited.append(job))
    one = session(lives_on=lives_on)
    one.job = replace(one.job, cleanup=cleanup)
    one.leave()
    assert _line(one).sent == ["quit"]
    assert awaited == ([one.job] if lives_on and cleanup else [])


def test_a_run_of_a_guest_that_gets_no_cpu_has_more_time(
    session: Callable[..., AgentSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy host an emulated guest gets a tenth of a CPU: its runs would be killed for no fault."""
    late = awake_seconds() + 0.2  # twice the run's limit
    monkeypatch.setattr(cpu_deadline, "awake_seconds", lambda: late)
    slow = session(LineSilent("nothing"), GOOD, cpu_time=lambda: 0.0)
    assert slow.run(0).values == {"real": 1.5}
    assert _line(slow).sent == ["run"]


def test_a_pause_may_end_late(session: Callable[..., AgentSession]) -> None:
    """It is timed by the guest's clock; the kernel of a slow guest would seem to hang."""
    slow = session(*[LineSilent("nothing")] * 10, PAUSED, GOOD, settle=0.05)
    _line(slow).pause = 0.02
    assert slow.run(0).values == {"real": 1.5}


def test_a_run_that_leaves_no_files_has_none_fetched(session: Callable[..., AgentSession]) -> None:
    def fetch(name: str, home: Path) -> bool:
        raise AssertionError("nothing is there to be fetched")

    assert session(GOOD, fetch=fetch).run(0).values == {"real": 1.5}


def test_only_an_agent_that_greets_is_one() -> None:
    await_greeting(Line(GREETING))
    for wrong in ("Linux version 2.6.22", PAUSED, GREETING.replace("1", "2")):
        with pytest.raises(InfrastructureError):
            await_greeting(Line(wrong))


def test_leaving_ends_the_boot_once(session: Callable[..., AgentSession]) -> None:
    """Else the guest goes on, and keeps its memory, its processors and the testbed's lock."""
    ended: list[str] = []
    one = session(on_leave=lambda: ended.append("boot"))
    one.leave()
    one.leave()
    assert ended == ["boot"]

"""The serial line of old guests over real FIFOs; a guest that runs unasked is stopped between runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bisector.adapters.agent.answers import AnswerError
from bisector.adapters.agent.session import AgentSession
from bisector.adapters.guest.channel_fifo import FifoLine
from bisector.adapters.guest.libvirt_connection import Domain
from bisector.adapters.guest.liveness import Liveness
from bisector.adapters.guest.serial import ConsoleMessages, FreeRunningLine, agent_facts, open_session
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import LineClosed, LineSilent
from bisector.errors import BootFailed, InfrastructureError, TestbedLost
from bisector.ports import Job, Kernel, MetricSpec
from tests.support.agent_answers import GREETING


@pytest.fixture
def line(tmp_path: Path) -> Iterator[FifoLine]:
    one = FifoLine(tmp_path / "serial")
    yield one
    one.close()


def _guest_end(line: FifoLine) -> tuple[int, int]:
    """Open both FIFOs as QEMU does: for reading and writing."""
    into, out = (f"{line.path}.{end}" for end in ("in", "out"))
    return os.open(into, os.O_RDWR), os.open(out, os.O_RDWR)


def test_lines_go_both_ways_whole(line: FifoLine) -> None:
    into, out = _guest_end(line)
    os.write(out, b"first\r\nsec")
    assert line.receive(1.0) == "first"
    with pytest.raises(LineSilent):
        line.receive(0.05)
    os.write(out, b"ond\n\n")
    assert (line.receive(1.0), line.receive(1.0)) == ("second", "")
    line.send("run")
    assert os.read(into, 10) == b"run\n"
    os.close(into)
    os.close(out)


def test_nobody_there_yet_is_silence_and_gone_is_the_end(line: FifoLine) -> None:
    with pytest.raises(LineSilent):
        line.receive(0.05)
    into, out = _guest_end(line)
    os.write(out, b"last words\nhalf")
    os.close(into)
    os.close(out)
    assert line.receive(1.0) == "last words"
    with pytest.raises(LineClosed) as caught:
        line.receive(1.0)
    assert caught.value.details == "half"


def test_a_guest_that_reads_nothing_does_not_block_us(
    line: FifoLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bisector.adapters.guest.channel_fifo._SEND_SECONDS", 0.2)
    with pytest.raises(LineClosed):
        line.send("x" * (1 << 20))


def test_the_time_in_which_we_were_stopped_does_not_count_while_the_guest_is_to_read(
    line: FifoLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    into, out = _guest_end(line)
    jumped: list[int] = []

    def stopped_meanwhile(*_: object) -> None:
        jumped.append(1)
        os.read(into, 1 << 16)  # the guest reads on before we look again

    monkeypatch.setattr("bisector.adapters.guest.channel_fifo._SEND_SECONDS", 1.0)
    monkeypatch.setattr("select.select", stopped_meanwhile)
    clock = SimpleNamespace(monotonic=lambda: 1e6 * len(jumped))
    monkeypatch.setattr("bisector.adapters.guest.channel_fifo.time", clock, raising=False)
    monkeypatch.setattr("bisector.adapters.guest.channel_fifo.awake_seconds", lambda: 0.0)
    line.send("x" * (1 << 18))
    assert len(jumped) > 1
    os.close(into)
    os.close(out)


def test_a_line_that_cannot_be_made_is_an_error_of_the_host_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "line.out").mkdir()
    with pytest.raises(InfrastructureError, match=f"cannot make FIFOs at {tmp_path}/line: Is a directory"):
        FifoLine(tmp_path / "line")
    assert not (tmp_path / "line.in").exists()


def test_a_closed_line_leaves_nothing_and_says_so(line: FifoLine) -> None:
    line.close()
    line.close()
    assert list(line.path.parent.iterdir()) == []
    with pytest.raises(LineClosed):
        line.send("run")
    with pytest.raises(LineClosed):
        line.receive(0.1)


class _Line:
    def __init__(self, *answers: str) -> None:
        self.answers, self.closed = list(answers), False
        self.sent: list[str] = []

    def send(self, text: str) -> None:
        self.sent.append(text)

    def receive(self, timeout: float) -> str:
        if not self.answers:
            raise LineSilent("nothing")
        return self.answers.pop(0)

    def close(self) -> None:
        self.closed = True


class _Guest:
    def __init__(self) -> None:
        self.did: list[str] = []
        self.broken = False

    def suspend(self) -> None:
        self._do("suspend")

    def resume(self) -> None:
        self._do("resume")

    def _do(self, what: str) -> None:
        if self.broken:
            raise InfrastructureError("no libvirt")
        self.did.append(what)


def test_a_guest_runs_only_while_a_run_is_wanted() -> None:
    inner, guest = _Line("hello", "one", "two"), _Guest()
    line = FreeRunningLine(inner, guest)
    assert line.receive(1.0) == "hello"
    line.send("run")
    assert line.receive(1.0) == "one"
    line.send("run")
    assert line.receive(1.0) == "two"
    assert guest.did == ["suspend", "resume", "suspend", "resume", "suspend"]
    assert inner.sent == []  # nothing from outside reaches the guest


def test_silence_does_not_stop_a_guest_and_kill_reaches_it() -> None:
    inner, guest = _Line("hello"), _Guest()
    line = FreeRunningLine(inner, guest)
    line.receive(1.0)
    line.send("run")
    with pytest.raises(LineSilent):
        line.receive(0.1)
    line.send("kill")
    line.send("quit")
    assert guest.did == ["suspend", "resume"]
    assert inner.sent == ["kill"]


def test_without_libvirt_the_answers_still_count_and_a_stopped_guest_is_lost() -> None:
    inner, guest = _Line("hello", "one"), _Guest()
    line = FreeRunningLine(inner, guest)
    guest.broken = True
    assert line.receive(1.0) == "hello"  # it could not be stopped: it simply runs on
    line.send("run")
    guest.broken = False
    assert line.receive(1.0) == "one"
    guest.broken = True
    with pytest.raises(LineClosed):
        line.send("run")


def test_only_what_the_console_said_since_the_last_time_is_read(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_bytes(b"booting\r\n")
    messages = ConsoleMessages(console)
    assert messages.read_new() == []
    with console.open("ab") as file:
        file.write(b"WARNING: at kernel/sched.c:1\r\n\r\n")
    assert messages.read_new() == ["WARNING: at kernel/sched.c:1"]
    with console.open("ab") as file:
        file.write(b"line\n" * 100)
    assert len(messages.read_new()) == 64
    console.unlink()
    assert messages.read_new() == []


def test_what_speaks_on_the_agents_port_and_is_not_the_agent_is_the_kernels_doing() -> None:
    assert agent_facts('{"uname.release": "2.6.18"}\n') == {"uname.release": "2.6.18"}
    with pytest.raises(BootFailed, match="something else than the measuring agent") as error:
        agent_facts("[    0.000000] Linux version 2.6.22-rc7\n")
    assert "2.6.22-rc7" in error.value.details


def test_garbled_facts_say_nothing_of_the_kernel() -> None:
    for text in (
        ' {"uname.release": "2.6"}',
        '{"uname.release": "2.6',
        '{"uname.release": 2.6}',
        '{"tainted": "x"}',
    ):
        with pytest.raises(AnswerError):
            agent_facts(text)


# --- a session over a line that is not real ---------------------------------------------------------------

FACTS = json.dumps({"uname.release": "2.6.18", "uname.version": "#1"})
PANIC = "Kernel panic - not syncing: late\n"


class _Domain(_Guest):
    why: str | None = None

    def ended(self) -> None:
        return None

    def paused(self) -> str | None:
        return self.why

    def cpu_seconds(self) -> None:
        return None


def opened(
    tmp_path: Path, line: _Line, *, release: str = "2.6.18", said: str = "", ticks: float | None = None
) -> AgentSession:
    """Open a session 5 s after its boot began. said: on the console."""
    console = tmp_path / "console.log"
    console.write_text(said)
    image = tmp_path / "image"
    image.write_bytes(b"no header that names a release")
    kernel = Kernel("a", "old", "a", image, tmp_path, tmp_path, release, "", 1.0, False)
    job = Job("toy", tmp_path, ("toy",), (MetricSpec("real", "s"),), settle=1.0, pause=1.0)
    alive = Liveness(console, cast("Domain", _Domain()))
    return open_session(
        kernel,
        job,
        tmp_path,
        cast("FifoLine", line),
        alive,
        timeout=60.0,
        started=awake_seconds() - 5.0,
        ticks_per_second=ticks,
    )


def test_a_session_knows_its_boot_and_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = _Line(FACTS, GREETING)
    session = opened(tmp_path, line)
    assert session.facts.release == "2.6.18"
    assert 5.0 <= session.facts.seconds < 15.0
    assert 0.0 <= session.facts.overhead_seconds < 5.0
    assert (session.job.name, session.job.settle, session.wall, session.unasked) == ("toy", 1.0, True, False)
    (tmp_path / "console.log").write_text(PANIC)
    assert (session.crashed() or "").startswith("kernel panic: late")
    assert session.paused() is None
    monkeypatch.setattr(_Domain, "why", "user")
    assert isinstance(session.paused(), TestbedLost)
    session.leave()
    assert (line.sent, line.closed) == (["quit"], True)


def test_where_instructions_are_counted_the_guest_runs_unasked_and_rests_by_itself(tmp_path: Path) -> None:
    line = _Line(FACTS, GREETING)
    session = opened(tmp_path, line, ticks=1e9)
    assert (session.job.settle, session.job.pause) == (0.0, 0.0)
    assert (session.ticks_per_second, session.wall, session.unasked) == (1e9, False, True)
    session.leave()
    assert (line.sent, line.closed) == ([], True)


@pytest.mark.parametrize(
    ("said", "release", "told"),
    [
        ("", "2.6.19", InfrastructureError),  # another kernel runs
        ("", "2.6.18", AnswerError),  # no greeting but noise
        (PANIC, "2.6.18", BootFailed),
    ],
)
def test_what_comes_before_the_first_run_is_the_kernels_only_where_it_died(
    tmp_path: Path, said: str, release: str, told: type[Exception]
) -> None:
    with pytest.raises(told) as caught:
        opened(tmp_path, _Line(FACTS, "noise"), release=release, said=said)
    assert type(caught.value) is told

"""When a guest's silence is held against its kernel, and when against a busy host."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.guest import liveness as module
from bisector.adapters.guest.libvirt_connection import Domain, End
from bisector.adapters.guest.liveness import Liveness, new_console, wait_for_agent, wait_for_ssh
from bisector.adapters.system.channel import LineClosed, LineFlood, LineSilent
from bisector.errors import BootFailed, Interrupted, TestbedLost
from tests.support.servers.free_port import free_port


class Guest:
    """A domain that gets so much CPU time a second."""

    def __init__(self, share: float | None) -> None:
        self.share, self.began = share, time.monotonic()

    def ended(self) -> None:
        return None

    def paused(self) -> None:
        return None

    def cpu_seconds(self) -> float | None:
        return None if self.share is None else self.share * (time.monotonic() - self.began)


class Silence:
    """A line on which a guest speaks after so many looks."""

    def __init__(self, after: int) -> None:
        self.left = after

    def send(self, text: str) -> None:
        raise AssertionError("nothing is to be sent")

    def close(self) -> None:
        raise AssertionError("the line is not its own")

    def receive(self, timeout: float) -> str:
        self.left -= 1
        if self.left < 0:
            return "{}"
        time.sleep(0.01)
        raise LineSilent("nothing")


def _wait(
    tmp_path: Path, share: float | None, *, spins: bool = True, timeout: float = 0.1, after: int = 20
) -> str:
    liveness = Liveness(tmp_path / "console.log", cast("Domain", Guest(share)), always_busy=spins)
    return wait_for_agent(liveness, Silence(after), CpuDeadline(timeout, liveness.cpu_time))


def test_a_boot_that_is_to_stop_is_not_waited_for(tmp_path: Path) -> None:
    """Ctrl-C waited until the guest was up, half a minute, and then had the workload put there."""
    guest = cast("Domain", Guest(None))
    liveness = Liveness(tmp_path / "console.log", guest, stop=lambda: True)
    deadline = CpuDeadline(0.5, liveness.cpu_time)
    with pytest.raises(Interrupted, match="stopped while a guest booted"):
        wait_for_agent(liveness, Silence(1000), deadline)
    with pytest.raises(Interrupted, match="stopped while a guest booted"):
        wait_for_ssh(liveness, free_port(), deadline)


def test_a_guest_that_the_host_starves_is_waited_for(tmp_path: Path) -> None:
    assert _wait(tmp_path, 0.01) == "{}"


@pytest.mark.parametrize(
    ("share", "spins"),
    [
        (0.9, True),  # it had its share and said nothing
        (None, True),
        (0.01, False),  # an idle guest on a wall clock uses no CPU, hanging or not
    ],
)
def test_a_guest_that_had_its_chance_hangs(tmp_path: Path, share: float | None, spins: bool) -> None:
    with pytest.raises(BootFailed, match="did not boot within 0 s: it never said a word"):
        _wait(tmp_path, share, spins=spins, after=1000)


def test_patience_ends(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(BootFailed, match="did not boot"):
        _wait(tmp_path, 0.01, after=10_000)
    assert 0.3 < time.monotonic() - started < 60


def test_an_init_that_gives_up_says_more_than_its_restart(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(
        "perfbisect: not ready: there is no second serial port\n[1.0] reboot: Restarting system\n"
    )
    with pytest.raises(BootFailed, match="the measuring agent cannot run on it") as caught:
        _wait(tmp_path, 0.0)
    assert "no second serial port" in caught.value.details
    (tmp_path / "console.log").write_text("perfbisect: not ready: x\nKernel panic - not syncing: late\n")
    with pytest.raises(BootFailed, match="kernel panic: late"):
        _wait(tmp_path, 0.0)


def test_the_line_that_says_how_a_kernel_died_is_read_whole(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_text("[0.1] booting\nKernel panic - not syncing: this commit does n")

    def end() -> None:
        with console.open("a") as file:
            file.write("ot boot\n")

    later = threading.Timer(0.2, end)
    later.start()
    with pytest.raises(BootFailed, match=r"kernel panic: this commit does not boot$"):
        _wait(tmp_path, 0.0)
    later.join()


def test_a_kernel_that_died_in_the_middle_of_its_line_is_not_waited_for_long(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("Kernel panic - not syncing: this commit does n")
    with pytest.raises(BootFailed, match=r"kernel panic: this commit does n$"):
        _wait(tmp_path, 0.0)


def test_a_kernel_whose_last_line_is_whole_is_waited_for_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each boot that panics would take a second more, each time that its console is read."""
    monkeypatch.setattr(module, "_LINE_SECONDS", 60.0)
    (tmp_path / "console.log").write_text("Kernel panic - not syncing: no init\n")
    began = time.monotonic()
    with pytest.raises(BootFailed, match=r"kernel panic: no init$"):
        _wait(tmp_path, 0.0)
    assert time.monotonic() - began < 30.0


class Ended:
    """A domain that has ended, one way or the other, or is paused."""

    def __init__(self, how: End | None) -> None:
        self.how, self.asked = how, 0
        self.why: str | None = None

    def paused(self) -> str | None:
        return self.why

    def ended(self) -> End | None:
        self.asked += 1
        return self.how


def liveness(tmp_path: Path, how: End | None, console: str = "") -> tuple[Liveness, Ended]:
    (tmp_path / "console.log").write_text(console)
    domain = Ended(how)
    return Liveness(tmp_path / "console.log", domain), domain  # type: ignore[arg-type]


def test_a_guest_that_runs_is_not_lost(tmp_path: Path) -> None:
    assert liveness(tmp_path, None)[0].lost() is None


def test_a_reset_without_a_word_is_the_kernels(tmp_path: Path) -> None:
    lost = liveness(tmp_path, "shutdown", "[0.1] decompressing\n")[0].lost()
    assert isinstance(lost, BootFailed)
    assert "reset the guest without a word" in lost.message
    assert lost.details == "[0.1] decompressing"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("destroyed", "was destroyed from outside"),
        ("crashed", "its QEMU was killed"),
        ("failed", "its QEMU died"),
        ("lost", "its QEMU is gone"),
    ],
)
def test_any_other_end_is_the_testbeds(tmp_path: Path, how: End, words: str) -> None:
    lost = liveness(tmp_path, how, "[0.1] booting\n")[0].lost()
    assert isinstance(lost, TestbedLost)
    assert words in lost.message
    assert lost.details == "[0.1] booting"


@pytest.mark.parametrize("how", ["shutdown", "destroyed", "crashed", "failed", "lost"])
def test_a_guest_that_ended_behind_a_panic_was_not_taken_away(tmp_path: Path, how: End) -> None:
    one, _ = liveness(tmp_path, how, "Kernel panic - not syncing: x\n")
    assert one.lost() is None
    assert (one.crashed() or "").startswith("kernel panic: x\n")


def test_qemu_is_looked_for_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, domain = liveness(tmp_path, None)
    assert [one.lost(), one.lost()] == [None, None]
    assert domain.asked == 1
    later = time.monotonic() + 1.1
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: later))
    domain.how = "crashed"
    assert isinstance(one.lost(), TestbedLost)


def test_a_boot_whose_guest_was_taken_away_is_no_failure_of_the_kernel(tmp_path: Path) -> None:
    one, _ = liveness(tmp_path, "crashed", "[0.1] booting\n")
    with pytest.raises(TestbedLost):
        wait_for_agent(one, Silence(1000), CpuDeadline(60.0, lambda: None))


@pytest.mark.parametrize("timeout", [0.0, 60.0])
def test_a_guest_that_was_paused_while_it_booted_does_not_hang(tmp_path: Path, timeout: float) -> None:
    one, domain = liveness(tmp_path, None, "[0.1] booting\n")
    domain.why = "I/O error"
    with pytest.raises(TestbedLost, match=r"paused from outside \(I/O error\)") as lost:
        wait_for_agent(one, Silence(1000), CpuDeadline(timeout, lambda: None))
    assert lost.value.details == "[0.1] booting"
    assert "make room" in lost.value.cure


def test_a_guest_that_is_paused_behind_a_panic_is_the_kernels(tmp_path: Path) -> None:
    one, domain = liveness(tmp_path, None, "Kernel panic - not syncing: x\n")
    domain.why = "user"
    assert one.lost() is None


def test_a_guest_whose_console_is_heard_no_more_is_lost(tmp_path: Path) -> None:
    one, _ = liveness(tmp_path, None, "[0.1] booting\n")
    one.console_ended = lambda: "Connection reset by peer"
    with pytest.raises(TestbedLost, match="console was lost") as lost:
        wait_for_ssh(one, 1, CpuDeadline(60.0, lambda: None))
    assert lost.value.details == "Connection reset by peer"


def test_what_the_console_said_before_it_was_lost_counts(tmp_path: Path) -> None:
    one, _ = liveness(tmp_path, None, "Kernel panic - not syncing: x\n")
    one.console_ended = lambda: "Connection reset by peer"
    assert one.lost() is None


class Blank(Silence):
    """Empty lines without end."""

    def receive(self, timeout: float) -> str:
        return ""


class Flood(Silence):
    def receive(self, timeout: float) -> str:
        raise LineFlood("the guest sent too much", details="xxxx")


@pytest.mark.timeout(60)
def test_empty_lines_without_end_do_not_hide_that_the_guest_is_gone(tmp_path: Path) -> None:
    one, _ = liveness(tmp_path, "crashed", "[0.1] booting\n")
    with pytest.raises(TestbedLost):
        wait_for_agent(one, Blank(1000), CpuDeadline(60.0, lambda: None))


def test_a_flood_before_the_agent_speaks_is_the_testbeds_failure(tmp_path: Path) -> None:
    one, _ = liveness(tmp_path, None, "[0.1] booting\n")
    with pytest.raises(TestbedLost, match="sent too much") as caught:
        wait_for_agent(one, Flood(1000), CpuDeadline(60.0, lambda: None))
    assert caught.value.details == "xxxx", "what it sent"


def test_the_console_of_an_earlier_try_is_kept(tmp_path: Path) -> None:
    for number in range(3):
        console = new_console(tmp_path / "boot")
        assert console.read_text() == ""
        console.write_text(str(number))
    names = sorted(path.name for path in console.parent.iterdir())
    assert names == ["console.1.log", "console.2.log", "console.log", "console.log.first"]
    assert (console.parent / "console.1.log").read_text() == "0"


class Closed:
    """A line whose other side has ended, and the domain that libvirt finds gone a moment later."""

    def __init__(self, ended: Ended, how: End) -> None:
        self.ended, self.how, self.looks = ended, how, 0

    def send(self, text: str) -> None:
        raise AssertionError("nothing is to be sent")

    def close(self) -> None:
        raise AssertionError("the line is not its own")

    def receive(self, timeout: float) -> str:
        self.looks += 1
        if self.looks == 3:
            self.ended.how = self.how
        raise LineClosed("QEMU has closed its socket")


def test_a_line_that_closed_waits_for_the_cause_that_libvirt_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed QEMU is the testbed's failure; the closed line alone says nothing of whose it is."""
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "_PROBE_SECONDS", 0.0)
    one, domain = liveness(tmp_path, None, "[0.1] booting\n")
    with pytest.raises(TestbedLost, match="its QEMU was killed"):
        wait_for_agent(one, Closed(domain, "crashed"), CpuDeadline(60.0, lambda: None))


@contextlib.contextmanager
def server(greeting: bytes) -> Iterator[int]:
    """Yield the port of a server that greets everybody so, once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    with client:
                        client.sendall(greeting)

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10.0)


def test_a_guest_is_up_when_an_ssh_server_greets_and_not_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """QEMU takes connections long before the guest does, and hangs up."""
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "stage", lambda text: "ready")
    one, _ = liveness(tmp_path, None, "[0.1] booting\n")
    with server(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        wait_for_ssh(one, port, CpuDeadline(60.0, lambda: None))
    with server(b"") as port, pytest.raises(BootFailed, match="did not boot within 0 s") as caught:
        wait_for_ssh(one, port, CpuDeadline(0.2, lambda: None))
    assert "perfbisect_boot_timeout" in caught.value.cure
    assert caught.value.details == "[0.1] booting"


def test_a_port_that_nobody_listens_on_yet_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No error of a socket ends a boot: its time has to pass."""
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "stage", lambda text: "ready")
    one, _ = liveness(tmp_path, None, "[0.1] booting\n")
    with pytest.raises(BootFailed, match="sshd listens, but cannot be reached over the network"):
        wait_for_ssh(one, free_port(), CpuDeadline(0.2, lambda: None))


def test_an_ssh_server_is_not_asked_before_the_console_says_that_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    one, _ = liveness(tmp_path, None, "[0.1] booting\n")
    with (
        server(b"SSH-2.0-OpenSSH_9.2\r\n") as port,
        pytest.raises(BootFailed, match="before its first process"),
    ):
        wait_for_ssh(one, port, CpuDeadline(0.2, lambda: None))

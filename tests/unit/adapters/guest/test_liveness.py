"""When a guest's silence is held against its kernel, and when against a busy host."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from bisector.adapters.agent.cpu_deadline import CpuDeadline
from bisector.adapters.guest.libvirt_connection import Domain
from bisector.adapters.guest.liveness import Liveness, wait_for_agent
from bisector.adapters.system.channel import LineSilent
from bisector.errors import BootFailed


class Guest:
    """A domain that gets so much CPU time a second."""

    def __init__(self, share: float | None) -> None:
        self.share, self.began = share, time.monotonic()

    def ended(self) -> None:
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
    liveness = Liveness(tmp_path / "console.log", cast("Domain", Guest(share)), spins=spins)
    return wait_for_agent(liveness, Silence(after), CpuDeadline(timeout, liveness.cpu_time))


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
    assert 0.3 < time.monotonic() - started < 5


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

"""A machine's console: what is kept, heard and taken for a death; what happens when it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bisector.adapters.machine.console import recorded_console
from bisector.adapters.machine.console.command_streams import CommandStream
from bisector.adapters.machine.console.recorded_console import RecordedConsole
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.linux.console_text import clean


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def recorded(command: list[str], path: Path) -> RecordedConsole:
    return RecordedConsole(lambda: CommandStream(command), path)


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("Kernel panic - not syncing: VFS", True),
        ("---[ end Kernel panic", True),
        ("VFS: Unable to mount root fs on unknown-block(0,0)", True),
        ("Oops: 0002 [#1] SMP", False),  # a machine may survive it
        ("login: ", False),
    ],
)
def test_what_the_command_prints_is_kept_and_read(tmp_path: Path, text: str, dead: bool) -> None:
    console = recorded(["sh", "-c", f"echo '{text}'; exec sleep 60"], tmp_path / "boot" / "console.log")
    try:
        wait_until(console.end)
        assert console.end() == f"{text}\n"
        if dead:
            wait_until(console.death)
        assert console.death() == (text if dead else None)
    finally:
        started = time.monotonic()
        console.close()
    assert time.monotonic() - started < 15
    assert (tmp_path / "boot" / "console.log").read_text() == f"{text}\n"


def test_without_a_command_there_is_no_console(tmp_path: Path) -> None:
    console = RecordedConsole(None, tmp_path / "console.log")
    assert (console.path, console.end(), console.death()) == (None, "", None)
    console.close()
    assert not list(tmp_path.iterdir())


def test_a_command_that_ends_or_is_not_there_does_not_end_the_boot(tmp_path: Path) -> None:
    for command in (["true"], ["/nonexistent/conserver"]):
        console = recorded(command, tmp_path / "console.log")
        assert console.death() is None
        console.close()


def test_a_panic_is_seen_however_much_is_printed_behind_it(tmp_path: Path) -> None:
    script = "echo 'Kernel panic - not syncing: x'; yes firmware | head -n 2000; exec sleep 60"
    console = recorded(["sh", "-c", script], tmp_path / "console.log")
    try:
        wait_until(console.death)
        wait_until(lambda: len(console.end()) >= 4000)
        assert str(console.death()).startswith("Kernel panic - not syncing: x\nfirmware")
    finally:
        console.close()


def test_a_console_without_end_is_bounded(tmp_path: Path) -> None:
    script = "echo first; yes $(seq 999) | head -c 12000000; echo last; exec sleep 60"
    console = recorded(["sh", "-c", script], tmp_path / "console.log")
    try:
        wait_until(lambda: console.end().endswith("last\n"))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 16 << 20
    finally:
        console.close()
    kept = (tmp_path / "console.log").read_bytes()
    assert kept.startswith(b"first\n")
    assert len(kept) < 9 << 20


class Spoken:
    """A console that says what it is told to."""

    def __init__(self) -> None:
        self.waiting: list[bytes] = []

    def read(self, seconds: float) -> bytes | None:
        time.sleep(0.001)
        return self.waiting.pop(0) if self.waiting else None

    def close(self) -> None:
        pass


@contextmanager
def told(folder: Path) -> Iterator[tuple[Spoken, RecordedConsole]]:
    """Open what says things, and the console that records them."""
    spoken = Spoken()
    console = RecordedConsole(lambda: spoken, folder / "console.log")
    try:
        yield spoken, console
    finally:
        console.close()


PANIC = b"Kernel panic - not syncing: "


@pytest.mark.parametrize("left", [b"Linux version 6.2", b"Restarting system", b"kexec: Starting new kernel"])
def test_a_death_at_the_shutdown_of_the_kernel_before_is_not_the_next_ones(
    tmp_path: Path, left: bytes
) -> None:
    with told(tmp_path) as (spoken, console):
        console.begin_boot()
        spoken.waiting = [PANIC + b"of the old\n", b"firmware\n" + left[:9]]
        wait_until(lambda: "firmware" in console.end())
        assert console.death() is None
        spoken.waiting = [left[9:] + b"\n" + PANIC + b"of the new\n"]
        wait_until(console.death)
        assert "of the new" in str(console.death())
        assert "of the old" not in str(console.death())


def test_a_kernel_that_answers_dies_itself_whatever_was_seen_of_its_start(tmp_path: Path) -> None:
    with told(tmp_path) as (spoken, console):
        console.begin_boot()
        console.booted()
        spoken.waiting = [PANIC + b"x\n"]
        wait_until(console.death)


def test_a_death_of_the_kernel_before_that_comes_with_the_start_of_the_next_is_not_the_next_ones(
    tmp_path: Path,
) -> None:
    """What a BMC has kept comes in one piece."""
    with told(tmp_path) as (spoken, console):
        console.begin_boot()
        spoken.waiting = [PANIC + b"of the old\nLinux version 6.2\nall is well\n"]
        wait_until(lambda: "all is well" in console.end())
        wait_until(lambda: console.state() == "heard")
        assert console.death() is None


def test_a_console_that_went_quiet_was_heard_all_the_same(tmp_path: Path) -> None:
    with told(tmp_path) as (spoken, console):
        assert console.state() == "silent"
        spoken.waiting = [b"Linux version 6.2\n", b" \r\n"]
        wait_until(lambda: "6.2\n \n" in console.end())
        time.sleep(0.05)
        assert console.state() == "heard"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('echo "console \\`box1\' not found"; exit 1', "ended at once: console `box1' not found"),
        ("printf '\\033[1mPermission denied\\033[0m\\r\\n\\r\\n'; exit 255", "at once: Permission denied"),
        ("true", "the connection ended at once"),
    ],
)
def test_a_command_that_only_says_why_it_ends_is_lost_and_was_not_heard(
    tmp_path: Path, script: str, reason: str
) -> None:
    """`lab check` said 'the machine printed something', and nothing said that a panic could not be seen."""
    console = recorded(["sh", "-c", script], tmp_path / "console.log")
    try:
        wait_until(lambda: console.state() == "lost")
        assert console.reason().endswith(reason)
    finally:
        console.close()
    assert not console._heard


def test_what_was_heard_stays_where_a_connection_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_console, "_OPEN_SECONDS", 0.3)
    console = recorded(["sh", "-c", "echo Linux; sleep 1"], tmp_path / "console.log")
    try:
        wait_until(lambda: console.state() == "heard")
        wait_until(lambda: console.end().count("Linux") == 2)
        assert console.state() == "heard"
    finally:
        console.close()
    assert console._heard


@pytest.mark.parametrize(
    ("pieces", "state"),
    [
        ((b"[Enter `", b"^Ec", b"?' for help]\n", b"[spying]\r\n"), "silent"),
        ((b"[`box1' -- console is down]\r\n[Enter `^Ec?' for help]\n",), "silent"),
        ((b"[Enter `^Ec?' for help]\n[no, ann@desk is attached]\r\n",), "silent"),
        (
            (b"[Enter `^Ec?' for help]\n[bumped ann@desk]\r\n[forced to `spy' mode by bob@desk]\r\n",),
            "silent",
        ),
        ((b"[-- Console server shutting down --]\r\n",), "silent"),
        ((b"[spying]\r\n[    0.0", b"00000] Linux version 6.2\r\n"), "heard"),
        ((b"[spying]\r\nbox1 login: ",), "heard"),  # it waits behind that
        ((b"[  OK  ] Started OpenSSH\r\n",), "heard"),
    ],
)
def test_what_conserver_says_itself_is_not_heard_from_the_machine(
    tmp_path: Path, pieces: tuple[bytes, ...], state: str
) -> None:
    """Its own lines are of conserver 8.2.7."""
    with told(tmp_path) as (spoken, console):
        spoken.waiting = list(pieces)
        wait_until(lambda: not spoken.waiting)
        wait_until(lambda: console.end().endswith(clean(pieces[-1])))
        time.sleep(0.05)
        assert console.state() == state


def test_a_console_that_cannot_be_opened_is_lost_at_once_and_says_why(tmp_path: Path) -> None:
    """Nobody could see a panic there: a verdict says so."""

    tried: list[str] = []

    def refuse() -> Spoken:
        tried.append("with the wrong password")
        raise PowerRefused("the BMC does not accept the user")

    console = RecordedConsole(refuse, tmp_path / "console.log")
    try:
        wait_until(lambda: console.state() == "lost")
        assert console.reason() == "the BMC does not accept the user"
        wait_until(lambda: console._thread is not None and not console._thread.is_alive())
    finally:
        console.close()
    assert len(tried) == 1, "a BMC locks an account after some tries"

"""Streaming a command: lines as they come, deadlines, stops, and nothing left running."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest

from bisector.adapters.system import command
from bisector.adapters.system.channel import LineClosed, LineSilent
from bisector.adapters.system.command import Conversation, reading_bytes, run_command, stream_command
from bisector.errors import InfrastructureError, Interrupted
from tests.support.waiting import until


def asleep(seconds: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], stdout=subprocess.DEVNULL).returncode == 0


def test_a_command_run_to_its_end_gives_its_code_and_all_it_printed(tmp_path: Path) -> None:
    done = run_command(
        ["sh", "-c", "pwd; echo $WORD >&2; printf end; exit 4"],
        cwd=tmp_path,
        env={"WORD": "more"},
        check=False,
    )
    assert (done.code, done.output) == (4, f"{tmp_path}\nmore\nend\n")
    with pytest.raises(InfrastructureError, match="'sh' failed with code 4") as error:
        run_command(["sh", "-c", "echo the reason; exit 4"])
    assert "the reason" in error.value.details


def test_a_command_that_overstays_its_deadline_is_ended_with_its_group() -> None:
    with pytest.raises(InfrastructureError, match="'sh' did not end within 1 s") as error:
        run_command(["sh", "-c", "sleep 87650 & sleep 87650"], timeout=1)
    assert "sleep 87650" in error.value.details
    assert not asleep("87650")


@pytest.mark.parametrize(
    "start", [run_command, Conversation, lambda argv, **more: stream_command(argv, print, **more)]
)
def test_what_cannot_be_started_says_why(tmp_path: Path, start: Callable[..., object]) -> None:
    with pytest.raises(InfrastructureError, match="the program 'no-such-tool' is not installed") as error:
        start(["no-such-tool"])
    assert error.value.cure.startswith("install it") and "doctor" in error.value.cure
    with pytest.raises(InfrastructureError, match=r"folder .*none does not exist"):
        start(["true"], cwd=tmp_path / "none")
    with pytest.raises(InfrastructureError, match="none' cannot be started: No such file or directory"):
        start([tmp_path / "none"])
    (tmp_path / "data").write_text("not a program")
    with pytest.raises(InfrastructureError, match="data' cannot be started: Permission denied") as error:
        start([tmp_path / "data"])
    assert "noexec" in error.value.cure and "TMPDIR" in error.value.cure


def test_lines_come_in_order_with_the_code() -> None:
    lines: list[str] = []
    code = stream_command(["sh", "-c", "echo a; echo b >&2; printf 'c\\377'; exit 4"], lines.append)
    assert (lines, code) == (["a", "b", "c\ufffd"], 4)


def test_the_deadline_ends_what_left_the_group_and_ignores_requests() -> None:
    script = "(setsid sh -c 'trap \"\" TERM; exec sleep 87651' &) ; sleep 87651"
    with pytest.raises(InfrastructureError, match="did not end within 1 s"):
        stream_command(["sh", "-c", script], print, timeout=1)
    assert not asleep("87651")


def test_a_stop_is_seen_soon() -> None:
    started = time.monotonic()
    with pytest.raises(Interrupted):
        stream_command(["sleep", "87652"], print, stop=lambda: time.monotonic() > started + 0.2)
    assert time.monotonic() - started < 30
    assert not asleep("87652")


def test_a_daemon_that_keeps_the_pipe_does_not_hold_us_up_and_is_ended() -> None:
    started = time.monotonic()
    assert stream_command(["sh", "-c", "setsid sleep 87653 &"], print) == 0
    assert time.monotonic() - started < 30
    assert not asleep("87653")


@pytest.mark.timeout(60)
def test_a_daemon_that_goes_on_printing_is_left_at_the_deadline_and_ended() -> None:
    assert stream_command(["sh", "-c", "setsid yes 87655 & sleep 0.1"], lambda _: None, timeout=1) == 0
    assert subprocess.run(["pgrep", "-f", "^yes 87655$"], stdout=subprocess.DEVNULL).returncode == 1


@pytest.mark.parametrize(
    "run", [run_command, lambda argv, **more: stream_command(argv, lambda _: None, **more)]
)
def test_output_beyond_its_limit_ends_the_command(run: Callable[..., object]) -> None:
    with pytest.raises(InfrastructureError, match="'yes' sent more than 1 MiB"):
        run(["yes", "87656"], max_bytes=1 << 20)
    assert subprocess.run(["pgrep", "-f", "^yes 87656$"], stdout=subprocess.DEVNULL).returncode == 1


def test_a_command_that_leaves_a_daemon_behind_is_not_waited_for() -> None:
    started = time.monotonic()
    assert run_command(["sh", "-c", "setsid sleep 87657 & echo begun"]).output == "begun\n"
    assert time.monotonic() - started < 30
    until(lambda: asleep("87657"), 30)  # it may not be `sleep` yet: the shell did not wait for it either
    subprocess.run(["pkill", "-f", "^sleep 87657$"], check=True)


def test_an_error_of_the_reader_ends_the_command() -> None:
    def refuse(_: str) -> Never:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        stream_command(["sh", "-c", "echo a; exec sleep 87654"], refuse)
    assert not asleep("87654")


def test_a_conversation() -> None:
    line = Conversation(["cat"])
    line.send("hello")
    assert line.receive(5) == "hello"
    with pytest.raises(LineSilent):
        line.receive(0.05)
    line.close()
    line.close()
    with pytest.raises(LineClosed):
        line.send("again")
    with pytest.raises(LineClosed):
        line.receive(1)


def test_a_conversation_with_a_program_that_ends() -> None:
    line = Conversation(["sh", "-c", "echo last"])
    assert line.receive(5) == "last"
    with pytest.raises(LineClosed):
        line.receive(5)
    line.close()


def test_a_program_that_stays_after_its_output_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.2)
    program = ["sh", "-c", "echo x; exec sleep 60 >&-"]
    with pytest.raises(OSError, match="did not end after its output"), reading_bytes(program) as stream:
        assert stream.read() == b"x\n"

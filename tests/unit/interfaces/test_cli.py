"""How a command line ends: its exit code, and what is said of an error, a defect, an interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bisector.errors import ExitCode, InfrastructureError
from bisector.interfaces import cli
from bisector.interfaces.cli.options import global_options


def ending(monkeypatch: pytest.MonkeyPatch, outcome: object) -> None:
    """Have every command end this way: an exception that it raises, or what it returns."""

    def command(**_: object) -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(cli, "application", lambda _: command)


@pytest.mark.parametrize(
    ("outcome", "code", "said"),
    [
        (None, 0, ""),
        (4, 4, ""),
        (ExitCode.INTERRUPTED, 130, "interrupted"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (InfrastructureError("no disk", cure="buy one"), 3, "cure: buy one"),
        (RuntimeError("lost"), 3, "perfbisect itself failed: RuntimeError: lost"),
        (
            PermissionError(13, "Permission denied", "/elsewhere"),
            3,
            "/elsewhere: Permission denied\ncure: check",
        ),
        (PermissionError(13, "Permission denied", "/x/list"), 3, "/x/list: Permission denied\ncure: check"),
        (OSError(28, "No space left on device"), 3, "this machine refuses: No space left on device"),
        (MemoryError(), 3, "there is not enough memory"),
    ],
)
def test_an_ending_has_its_exit_code(
    outcome: object,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ending(monkeypatch, outcome)
    assert cli.run(["list"]) == code
    err = capsys.readouterr().err
    assert said in err
    assert bool(err) == bool(said)


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("/x", 1),
        ("/x/state/", 1),
        ("--output=/x/state/import-a", 1),
        ("../x/state", 1),
        ("import", 3),
        ("state", 3),
        ("/x/st", 3),
        ("", 3),
    ],
)
def test_only_a_path_that_the_command_line_names_makes_a_wrong_request(
    argument: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'perfbisect import' into a folder that may not be written was called wrong: 'import-a' has its name."""
    monkeypatch.chdir("/tmp")
    ending(monkeypatch, PermissionError(13, "Permission denied", "/x/state/import-a"))
    assert cli.run(["list", argument]) == code


@pytest.mark.parametrize("error", [InfrastructureError("no disk"), RuntimeError("lost")])
def test_debug_shows_where_it_was(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ending(monkeypatch, error)
    monkeypatch.setattr(global_options(), "debug", True)
    assert cli.run(["list"]) == ExitCode.INFRASTRUCTURE
    said = capsys.readouterr().err
    assert said.startswith("Traceback") and said.count(str(error)) > 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_ctrl_c_does(number: signal.Signals) -> None:
    script = (
        "import time\nfrom bisector.interfaces import cli\n"
        "def command(**_):\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "cli.application = lambda _: command\ncli.main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "error: interrupted")


def test_a_reader_that_ends_early_is_no_error() -> None:
    script = "from bisector.interfaces import cli\nimport sys\n"
    script += "cli.application = lambda _: lambda **_: [print('x' * 9999, flush=True) for _ in range(99)]\n"
    script += "sys.argv[1:] = ['list']\ncli.main()\n"
    reader, writer = os.pipe()
    with subprocess.Popen([sys.executable, "-c", script], stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        os.close(reader)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")


def test_a_thread_that_never_ends_does_not_keep_the_process() -> None:
    script = "import threading, time\nfrom bisector.interfaces import cli\n"
    script += "threading.Thread(target=time.sleep, args=(60,)).start()\nprint('said')\ncli.leave(5)\n"
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stdout) == (5, "said\n")
    assert time.monotonic() - started < 40

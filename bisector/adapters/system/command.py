"""The one door to other programs: logged, ended at its deadline with its whole process group.

Nothing else in perfbisect imports `subprocess`. Commands are lists, never shell strings.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bisector.adapters.system import orphans
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.channel import LineClosed, LineFlood, LineReader, LineSilent
from bisector.adapters.system.processes import GRACE_SECONDS, end_group, identity
from bisector.errors import InfrastructureError, Interrupted
from bisector.schemas.masking import mask, mask_command, secrets_of

log = logging.getLogger(__name__)

_STDERR = 2  # the descriptor, whatever Python's streams are
PIPE = subprocess.PIPE  # as input: a program that reads to its end, ends with this process

_POLL_SECONDS = 0.2  # how soon a request to stop is seen: short enough that Ctrl-C feels immediate

_READ_BYTES = 1 << 16  # from a pipe at once: its capacity on Linux (pipe(7))

MAX_OUTPUT_BYTES = 1 << 30
"""Of one command: perf prints some hundred MB about a recording of an hour, nothing else comes near it."""

_KEPT_BYTES = 64 << 20  # of a command whose whole output is kept: apt and compilers print a few MB


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """A finished command. output: the lines of stdout and stderr, interleaved as they came."""

    command: tuple[str, ...]
    code: int
    output: str


def run_command(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    max_bytes: float = _KEPT_BYTES,
    check: bool = True,
    stdin: int = subprocess.DEVNULL,
) -> CompletedCommand:
    """Run a command to its end.

    env: added to this process's environment. timeout: seconds. Raises InfrastructureError when the program is
    missing, overstays its deadline, prints more than `max_bytes`, or (with check) does not end with code 0.
    """
    argv = tuple(str(part) for part in command)
    process = start_process(argv, cwd=cwd, env=env, stdin=stdin)
    lines: list[str] = []
    try:
        _read_lines(process, lines.append, timeout, max_bytes, None, argv)
    finally:
        end_process(process)
    output = "".join(f"{line}\n" for line in lines)
    if check and process.returncode != 0:
        raise InfrastructureError(
            f"'{argv[0]}' failed with code {process.returncode}",
            details=f"{' '.join(mask_command(argv))}\n{mask(output[-4000:], secrets_of(argv))}",
        )
    return CompletedCommand(argv, process.returncode, output)


def run_on_terminal(command: Sequence[str | Path]) -> int:
    """Run a command that may ask its user something, such as sudo; return its code.

    It stays in this process's group and keeps its terminal. Its output goes to stderr as it is: only for
    programs of this machine that are trusted. Raises InfrastructureError when the program is missing.
    """
    argv = tuple(str(part) for part in command)
    log.debug("run %s", mask_command(argv))
    try:
        return subprocess.run(argv, stdout=_STDERR, check=False).returncode  # noqa: S603 - a list
    except OSError as error:
        raise _not_started(argv, error) from error


def stream_command(
    command: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    max_bytes: float = MAX_OUTPUT_BYTES,
    stop: Callable[[], bool] | None = None,
) -> int:
    """Run a command, give each line of its output (stdout and stderr) to `on_line` as it comes.

    A line of more than `MAX_LINE_BYTES` comes in pieces.
    stop: asked several times a second; when it says True, Interrupted is raised. Whatever way this ends,
    nothing that the command started is left behind, not even what moved to a session of its own.
    Returns the command's code; raises InfrastructureError when the program is missing, overstays `timeout`
    seconds or prints more than `max_bytes`.
    """
    argv = tuple(str(part) for part in command)
    mark = f"{identity(os.getpid())}.{uuid.uuid4().hex}"
    marks = ":".join(part for part in (os.environ.get(orphans.MARK, ""), mark) if part)
    process = start_process(argv, cwd=cwd, env={**(env or {}), orphans.MARK: marks})
    try:
        _read_lines(process, on_line, timeout, max_bytes, stop, argv)
    finally:
        orphans.end_marked(mark)
        end_process(process)
    return process.returncode


def find_program(program: str) -> str | None:
    """Return where a program is, in PATH or in sbin."""
    return shutil.which(program, path=search_path())


def search_path() -> str:
    """Return PATH and behind it sbin, which not every user has: libvirtd and mke2fs live there."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


@contextlib.contextmanager
def reading_bytes(command: Sequence[str | Path], stdin: Path | None = None) -> Iterator[IO[bytes]]:
    """Give the output of a program as bytes; it is ended with the block, whether it was read whole or not.

    stdin: the file that it reads. Only for programs that end when nobody reads them. Raises OSError for a
    file that cannot be read, and at the end when the program failed or stays; InfrastructureError when it is
    missing.
    """
    argv = tuple(str(part) for part in command)
    log.debug("read from %s", argv)
    with (stdin or Path(os.devnull)).open("rb") as source:
        try:
            process = subprocess.Popen(  # noqa: S603 - a list, never a shell
                argv, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise _not_started(argv, error) from error
        try:
            assert process.stdout is not None
            yield process.stdout
            if not process.stdout.read(1) and process.wait(GRACE_SECONDS) != 0:
                raise OSError(errno.EIO, f"'{argv[0]}' failed with code {process.returncode}")
        except subprocess.TimeoutExpired as error:
            raise OSError(errno.ETIMEDOUT, f"'{argv[0]}' did not end after its output") from error
        finally:
            end_process(process)


class Conversation:
    """A program of this machine that is talked with in lines; see `adapters/system/channel.py`.

    Raises InfrastructureError when the program cannot be started.
    """

    def __init__(self, command: Sequence[str | Path], *, cwd: Path | None = None) -> None:
        argv = tuple(str(part) for part in command)
        self._process = start_process(argv, cwd=cwd, stdin=subprocess.PIPE)
        self._name = argv[0]
        self._reader = LineReader(f"'{self._name}'", self._read)

    def send(self, text: str) -> None:
        """Send one line. Raises LineClosed."""
        assert self._process.stdin is not None
        self._reader.restart_count()
        try:
            self._process.stdin.write(text + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise LineClosed(f"'{self._name}' has ended") from error

    def receive(self, timeout: float) -> str:
        """Return the next line. Raises LineSilent after `timeout` seconds, LineClosed at the end."""
        return self._reader.receive(timeout)

    def _read(self, timeout: float) -> bytes | None:
        assert self._process.stdout is not None
        return b"" if self._process.stdout.closed else _read_pipe(self._process.stdout.fileno(), timeout)

    def close(self) -> None:
        """End the program and its group. Never raises."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)  # the end of its input ends a well-behaved program
        end_process(self._process)


def start_process(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.STDOUT,
) -> subprocess.Popen[str]:
    """Start a program in a process group of its own; `end_process` ends it. Raises InfrastructureError."""
    log.debug("start %s (cwd=%s)", mask_command(command), cwd)
    try:
        return subprocess.Popen(  # noqa: S603 - a list, never a shell
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        if cwd is not None and not cwd.exists():
            raise InfrastructureError(f"folder {cwd} does not exist") from error
        raise _not_started(command, error) from error


def _not_started(argv: Sequence[str], error: OSError) -> InfrastructureError:
    if isinstance(error, FileNotFoundError) and "/" not in argv[0]:
        cure = "install it; 'perfbisect doctor' says how, if it is one that perfbisect itself needs"
        return InfrastructureError(f"the program '{argv[0]}' is not installed", cure=cure)
    noexec = "mend its rights; where its disk is mounted noexec, another folder: TMPDIR, PERFBISECT_CACHE_DIR"
    cure = noexec if isinstance(error, PermissionError) else ""
    return InfrastructureError(f"'{argv[0]}' cannot be started: {error.strerror}", cure=cure)


def _read_lines(
    process: subprocess.Popen[str],
    on_line: Callable[[str], None],
    timeout: float,
    max_bytes: float,
    stop: Callable[[], bool] | None,
    argv: Sequence[str],
) -> None:
    """Hand out lines until the process has ended; a daemon that keeps the pipe open does not hold us up."""
    assert process.stdout is not None
    deadline = awake_seconds() + timeout
    handle = process.stdout.fileno()
    reader = LineReader(
        f"'{argv[0]}'", lambda seconds: _read_pipe(handle, seconds), max_bytes=max_bytes, split=True
    )
    while True:
        ended = process.poll() is not None
        try:
            on_line(reader.receive(0.0 if ended else _POLL_SECONDS))
        except LineFlood as error:
            raise InfrastructureError(error.message, details=error.details) from error
        except (LineSilent, LineClosed) as none:
            if ended:
                break
            if isinstance(none, LineClosed):  # the pipe is closed, the process not yet gone
                time.sleep(_POLL_SECONDS / 10)
        if stop is not None and stop():
            raise Interrupted(f"'{argv[0]}' was stopped on request")
        if awake_seconds() > deadline:
            if ended:  # a daemon that keeps the pipe open goes on printing
                break
            raise InfrastructureError(
                f"'{argv[0]}' did not end within {timeout:.0f} s", details=" ".join(mask_command(argv))
            )
    if rest := reader.take_rest():
        on_line(rest)


def _read_pipe(handle: int, timeout: float) -> bytes | None:
    """Wait for bytes; return None if there are none, b"" at the end."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return os.read(handle, _READ_BYTES) if poll.poll(timeout * 1000) else None


def end_process(process: subprocess.Popen[Any]) -> None:
    """Close the pipes of a process; end it and its group unless it has been waited for."""
    if process.returncode is None:
        end_group(process.pid)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:  # stuck in the kernel
            log.warning("process %d does not end", process.pid)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()

"""The one door to other programs: logged, ended at its deadline with its whole process group.

Nothing else in perfbisect imports `subprocess`. Commands are lists, never shell strings.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.errors import InfrastructureError

log = logging.getLogger(__name__)

_GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL: long enough for make and QEMU to remove their temporary files."""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command. output holds stdout and stderr, interleaved as they came."""

    command: tuple[str, ...]
    code: int
    output: str


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    check: bool = True,
    stdin: str | None = None,
) -> Done:
    """Run a command to its end.

    env: added to this process's environment. timeout: seconds. Raises InfrastructureError when the
    program is missing, overstays its deadline, or (with check) ends with a code other than 0.
    """
    argv = tuple(str(part) for part in command)
    log.debug("run %s (cwd=%s)", argv, cwd)
    try:
        process = subprocess.Popen(  # noqa: S603 - a list, never a shell
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except FileNotFoundError as error:
        if cwd is not None and not cwd.exists():
            raise InfrastructureError(f"folder {cwd} does not exist") from error
        raise InfrastructureError(
            f"the program '{argv[0]}' is not installed", cure="run 'perfbisect doctor' to see what is missing"
        ) from error
    try:
        output, _ = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        end_group(process)
        raise InfrastructureError(
            f"'{argv[0]}' did not end within {timeout:.0f} s", details=" ".join(argv)
        ) from error
    except BaseException:
        end_group(process)
        raise
    done = Done(argv, process.returncode, output)
    if check and done.code != 0:
        raise InfrastructureError(
            f"'{argv[0]}' failed with code {done.code}", details=f"{' '.join(argv)}\n{output[-4000:]}"
        )
    return done


def end_group(process: subprocess.Popen[str]) -> None:
    """End a process and everything it started: SIGTERM, then SIGKILL after a grace period."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_SECONDS)
            break
        except subprocess.TimeoutExpired:
            continue
    process.communicate()

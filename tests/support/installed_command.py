"""The installed command, run in a folder that holds no settings; and programs on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

PERFBISECT = str(Path(sys.executable).with_name("perfbisect"))


def perfbisect(
    *arguments: str, environment: dict[str, str], timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run perfbisect to its end. environment: names PERFBISECT_STATE_DIR, which is its folder."""
    return subprocess.run(
        [PERFBISECT, *arguments],
        cwd=environment["PERFBISECT_STATE_DIR"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def read_terminal(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    """Run a command whose stdin, stdout and stderr are a terminal; return what it wrote until its end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # EIO: nobody has the other end open any more
            break
        data += piece
    os.close(ours)
    process.wait(60)
    return data.decode()

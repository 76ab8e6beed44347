"""A command that is told to end takes what it has started with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SECONDS = 120.0
MANIFEST = """\
name: sleepy
description: Sleeps.
metrics:
  - {name: real, unit: s, better: lower, threshold: 5%, decides: true}
files: [sleepy.sh]
run: [sleepy.sh]
"""


def sleepers(mark: str) -> list[str]:
    """Return the processes that have the word among their arguments."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def wait_for(mark: str, there: bool) -> bool:
    end = time.monotonic() + SECONDS
    while bool(sleepers(mark)) is not there and time.monotonic() < end:
        time.sleep(0.1)
    return bool(sleepers(mark)) is there


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_a_command_has_started_ends_with_it(tmp_path: Path, number: signal.Signals) -> None:
    mark = f"3217.{os.getpid()}{int(number)}"
    folder = tmp_path / "sleepy"
    folder.mkdir()
    (folder / "workload.yaml").write_text(MANIFEST)
    (folder / "sleepy.sh").write_text(f"#!/bin/sh\nexec sleep {mark}\n")
    (folder / "sleepy.sh").chmod(0o755)
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("perfbisect")), "workload", "run", str(folder)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PERFBISECT_STATE_DIR": str(tmp_path / "state")},
        text=True,
    )
    try:
        assert wait_for(mark, there=True)
        process.send_signal(number)
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 130, said
        assert said.endswith("error: interrupted\n")
        assert wait_for(mark, there=False)
    finally:
        process.kill()

"""A simulation that is killed leaves no process behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.waiting import until


def workers(pid: int) -> list[int]:
    """Return the processes that a process has started to compute, without Python's resource tracker."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(c) for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_workers_end_with_it(number: int, tmp_path: Path) -> None:
    words = ["simulate", "--effect", "2", "--run-noise", "2", "--trials", "5000", "--jobs", "2"]
    command = [str(Path(sys.executable).with_name("perfbisect")), *words]
    with (tmp_path / "out").open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            until(lambda: len(workers(process.pid)) == 2, 60)
            started = workers(process.pid)
            time.sleep(3)  # until they compute
        finally:
            os.kill(process.pid, number)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), 20)

"""What a killed perfbisect left on this host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bisector.adapters.build.kernel_cache import WORKSPACE_PREFIX
from bisector.adapters.system import orphans
from bisector.adapters.system.leftovers import make_temporary_folder
from bisector.adapters.system.processes import identity
from bisector.app.execution.killed_work import end_killed_work


def test_a_killed_build_ends_and_its_workspace_goes_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    killed = subprocess.Popen(["sleep", "60"])
    mark = f"{identity(killed.pid)}.1"
    left, ours = (make_temporary_folder(WORKSPACE_PREFIX, kernels) for _ in range(2))
    (left / "owner").write_text(identity(killed.pid))
    killed.kill()
    killed.wait()
    program = [sys.executable, "-c", "import time; time.sleep(60)"]
    compiler = subprocess.Popen(program, env={**os.environ, orphans.MARK: mark})
    try:
        end_killed_work(tmp_path)
        assert compiler.wait(30) != 0
    finally:
        compiler.kill()
        compiler.wait()
    assert [folder for folder in (left, ours) if folder.exists()] == [ours]

"""The installed command, run in a folder that holds no settings."""

from __future__ import annotations

import subprocess
import sys
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

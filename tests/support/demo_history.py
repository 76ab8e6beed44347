"""The demo's kernel history, prepared once in perfbisect's own cache: the base of tests on real kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from bisector.resources import resource

CACHE = Path(os.environ.get("PERFBISECT_CACHE_DIR") or platformdirs.user_cache_dir("perfbisect"))
"""Of kernels, images and the demo's history: the user's own, so that nothing is made twice."""


def environment(state: Path) -> dict[str, str]:
    """Return the environment of a perfbisect with a state folder of its own, and the common cache."""
    return {**os.environ, "PERFBISECT_STATE_DIR": str(state), "PERFBISECT_CACHE_DIR": str(CACHE)}


def prepare() -> Path:
    """Return the demo's repository; skip only where this machine's archive has no kernel source."""
    demo = CACHE / "demo" / "linux"
    command = [sys.executable, str(resource("kernels") / "demo" / "prepare-history"), str(demo)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip(f"no kernel source to be had: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return demo

"""The whole service on real guests: nights, an alert, its bisection, the page and the mail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.postgres import programs

SECONDS = 1800.0
"""On a machine that is busy; alone it takes a few minutes."""

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.end_to_end
@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed, or we are not root")
def test_a_regression_is_found_by_nights_bisected_and_mailed(cache: Path, demo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.service_demo.play", "tiny"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    print(done.stdout)  # with -s, or where it fails
    assert done.returncode == 0, done.stdout + done.stderr
    nights = [line for line in done.stdout.splitlines() if line.startswith("night ")]
    assert nights[-1].endswith("suspect")
    assert not any(line.endswith("suspect") for line in nights[:-1])
    assert "Subject: " in done.stdout

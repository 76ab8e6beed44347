"""Benchmarks are run by hand: that they still start, and end with a table, is checked here on a small one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_search_benchmark_runs_a_cell(tmp_path: Path) -> None:
    words = [
        *(sys.executable, "-m", "tests.bench.search.run", "--only", "n 128", "--trials", "10"),
        *("--no-rivals", "--jobs", "1", "--out", str(tmp_path)),
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    cells = {c["name"]: c for c in json.loads((tmp_path / "results.json").read_text())["cells"]}
    assert cells["n 128"]["ours"]["trials"] == 10
    assert "| n 128 |" in (tmp_path / "results.md").read_text()

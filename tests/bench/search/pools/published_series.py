"""A pool of what a published CI has measured.

    python -m tests.bench.search.pools.published_series REPO OUT.npz

REPO is a clone of conda/conda-benchmarks: some 340 commits of conda, each timed by airspeed velocity on one
machine, with the least and the greatest of its repetitions, mostly two. A commit stands for a boot, and these
two for its runs. What is kept of a value is its distance, in percent, from the median of the commits around
it: slower changes of the level are changes of the program.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from bisector.adapters.git.repository import Repository
from tests.bench.search.pool_oracle import Floats

FOLDER = ".asv/results/benchmarkers-MacBook-Pro.local"
AROUND = 7
"""Commits before and behind of which the median is taken."""
FEWEST = 300
"""Commits of a series."""


def series(repository: Path) -> dict[str, list[tuple[int, str, float, float]]]:
    """Return, by benchmark, each commit's date (Unix ms), id, least and greatest time in seconds."""
    git = Repository(repository)
    found = defaultdict(list)
    for path in git.run("ls-tree", "-r", "--name-only", "HEAD", f"{FOLDER}/").output.splitlines():
        if not path.endswith(".json") or path.endswith("/machine.json"):
            continue
        measured = json.loads(git.run("show", f"HEAD:{path}").output)
        for name, value in measured["results"].items():
            if isinstance(value, dict) and value.get("stats") and value["stats"][0]:
                stats = value["stats"][0]
                if stats["repeat"] >= 2:
                    times = (float(stats["min"]), float(stats["max"]))
                    found[name].append((int(measured["date"]), str(measured["commit_hash"]), *times))
    return {name: sorted(of) for name, of in sorted(found.items()) if len(of) >= FEWEST}


def distances(times: Floats) -> Floats:
    """Return times (commits, runs) in percent of the median level of the commits around each."""
    level = times.mean(axis=1)
    around = [np.median(level[max(0, i - AROUND) : i + AROUND + 1]) for i in range(len(level))]
    result: Floats = (times / np.array(around)[:, None] - 1) * 100
    return result


def main(repository: str, out: str) -> None:
    """Write the pool: names, and percent (series, commit, run) of the last commits that all have."""
    found = series(Path(repository))
    fewest = min(len(of) for of in found.values())
    values = [distances(np.array([times for _, _, *times in of]))[-fewest:] for of in found.values()]
    np.savez_compressed(out, names=np.array(list(found)), percent=np.round(np.array(values), 3))
    for name, of in zip(found, values, strict=True):
        print(f"{name}: {len(of)} commits, deviation {of.mean(axis=1).std(ddof=1):.2f}%")


if __name__ == "__main__":
    main(*sys.argv[1:])

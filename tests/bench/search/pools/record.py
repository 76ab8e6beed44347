"""Record pools of noise: how long real programs take, start by start and run by run, under two clocks.

    python -m tests.bench.search.pools.record OUT.npz [STARTS [NAME ...]]

One start of a program stands for a boot: it gets its own addresses, pages and seeds of hashes, and keeps them
for all of its runs. Every round starts each program once, so all programs see the same hours. A C compiler,
git, gzip and bash are needed.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

RUNS = 24
"""Runs of each start. One before them is not counted."""
HERE = Path(__file__).parent
COMPILED = ("chase", "copy", "table", "malloc", "sort", "pipe", "lock", "fork")
"""Of programs.c."""


def _dictionary() -> Callable[[], object]:
    words = [f"word{i * 7919 % 100003}" for i in range(9000)]
    return lambda: sum(len(k) for k in set(words) | {w + "s" for w in words})


def _objects() -> Callable[[], object]:
    text = json.dumps([{"id": i, "name": f"n{i}", "parts": list(range(i % 9))} for i in range(2000)])
    return lambda: json.dumps(json.loads(text), sort_keys=True)


def _compression() -> Callable[[], object]:
    data = random.Random(1).randbytes(60000).hex().encode()
    return lambda: zlib.compress(data, 6)


def _database() -> Callable[[], object]:
    table = sqlite3.connect(":memory:")
    table.execute("create table t (k integer primary key, v text)")
    table.executemany("insert into t values (?, ?)", ((i, str(i * 7919)) for i in range(20000)))
    return lambda: table.execute("select v, count(*) from t where v like '%9%' group by k % 97").fetchall()


def _sums() -> Callable[[], object]:
    values = np.random.default_rng(1).standard_normal(1 << 20)
    return lambda: (np.sqrt(values * values + 1.0).sum(), np.sort(values[:50000]))


INSIDE = {
    "py-dict": _dictionary,
    "py-json": _objects,
    "py-zlib": _compression,
    "py-sqlite": _database,
    "numpy": _sums,
}
"""What one Python process repeats."""
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy's threads otherwise wait by spinning, which the process's clock counts, in ticks of 4 ms."""
OUTSIDE = {
    "gzip": "gzip -c <{folder}/data >/dev/null",
    "git-log": "git -C {folder}/repo log --stat -n 12 >/dev/null",
}
"""Commands that are a process in each run. Their start is a fresh copy of what they read."""


def repeat_inside(name: str) -> None:
    """Run in a process of its own: print wall and processor nanoseconds of each run."""
    work = INSIDE[name]()
    work()
    for _ in range(RUNS):
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        work()
        print(time.perf_counter_ns() - wall, time.process_time_ns() - cpu)


def repeat_outside(name: str, folder: Path) -> list[tuple[int, int]]:
    """Run a command again and again."""
    command = ["bash", "-c", OUTSIDE[name].format(folder=folder)]
    found = []
    for _ in range(RUNS + 1):
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter_ns()
        subprocess.run(command, check=True)
        wall = time.perf_counter_ns() - wall
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append((wall, round(cpu * 1e9)))
    return found[1:]


def start(name: str, compiled: Path, sources: Path) -> list[tuple[int, int]]:
    """Start a program once; return (wall, processor) nanoseconds of its runs."""
    if name in OUTSIDE:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cp", "-r", f"{sources}/.", folder], check=True)
            return repeat_outside(name, Path(folder))
    command = [str(compiled), name, str(RUNS)]
    if name in INSIDE:
        command = [sys.executable, "-m", "tests.bench.search.pools.record", "--inside", name]
    environment = os.environ | ONE_THREAD
    text = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return [(int(wall), int(cpu)) for wall, cpu in (line.split() for line in text.splitlines())]


def prepare(folder: Path) -> None:
    """Make what the commands read: a text and a small repository."""
    source = random.Random(1)
    words = [f"{source.randrange(10**6):x} {source.randrange(100)}" for _ in range(25000)]
    (folder / "data").write_text("\n".join(words))
    repository = folder / "repo"
    repository.mkdir()
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    for i in range(30):
        for k in range(20):
            lines = (f"{i * k % 7} {source.randrange(1000)}" for _ in range(60))
            (repository / f"f{k}").write_text("\n".join(lines))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"c{i}"], check=True)


def main(arguments: list[str]) -> int:
    if arguments[0] == "--inside":
        repeat_inside(arguments[1])
        return 0
    starts = int(arguments[1]) if len(arguments) > 1 else 120
    names = arguments[2:] or [*COMPILED, *INSIDE, *OUTSIDE]
    values = np.zeros((len(names), starts, RUNS, 2), dtype=np.uint32)
    at, load = np.zeros((len(names), starts)), np.zeros((len(names), starts))
    with tempfile.TemporaryDirectory() as scratch:
        compiled, sources = Path(scratch) / "programs", Path(scratch) / "sources"
        sources.mkdir()
        command = ["cc", "-O2", "-o", str(compiled), str(HERE / "programs.c"), "-lpthread"]
        subprocess.run(command, check=True)
        prepare(sources)
        for k in range(starts):
            for i, name in enumerate(names):
                at[i, k], load[i, k] = time.time(), os.getloadavg()[0]
                values[i, k] = start(name, compiled, sources)
            # Kept after each round, so that a long recording that is ended has lost nothing.
            np.savez_compressed(
                arguments[0],
                names=np.array(names),
                nanoseconds=values[:, : k + 1],
                at=at[:, : k + 1],
                load=load[:, : k + 1],
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

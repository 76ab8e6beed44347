"""The detector on nights in which nothing changed: real programs, started again and again on a real machine.

    python -m tests.bench.series.real_nights record FILE [--nights N] [--pause SECONDS]
    python -m tests.bench.series.real_nights judge FILE ... [--years N] [--series N] [--seed N]

tests/bench/series/nights holds what was recorded.

`record` measures each program of PROGRAMS in BOOTS + 1 fresh processes a night, RUNS runs in each: the last
process is the reference. A night is over as soon as it is measured. `judge` prints the table of `run.py`, for
each program by wall clock and by CPU time: the nights as they came, years made of blocks of them (the block
bootstrap of Künsch 1989 keeps what follows what), and steps of 1, 2 and 5% put into such years.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from bisector.model.dag import Floats
from bisector.search.series.suspect_test import Outcome
from bisector.stats.variance_components import VarianceComponents, components
from tests.bench.series.run import AFTER, STEP_AT, YEAR, Confirmation, compare, print_head, print_rows
from tests.bench.series.simulated import BOOTS, RUNS, Simulated, confirm_with

PROGRAMS = {
    # Hash seeds and addresses differ from start to start.
    "words": """
d = {}
for k in range(30000): d['w' + str(k * 7919 % 4001)] = d.get('w' + str(k % 4001), 0) + 1
""",
    "sqlite": """
import sqlite3
c = sqlite3.connect(':memory:')
c.execute('create table t (a integer, b text)')
c.executemany('insert into t values (?, ?)', ((k % 997, str(k)) for k in range(8000)))
c.execute('select a, count(*), max(b) from t group by a order by 2').fetchall()
""",
    "zlib": """
import zlib
zlib.compress(bytes(range(256)) * 1500 + b'perf' * 9000, 6)
""",
}
"""What a run executes: 2 to 15 ms of CPU each, so that a night takes seconds."""
_PROCESS = """
import sys, time
code = compile(sys.argv[1], 'run', 'exec')
exec(code, {})
for _ in range(int(sys.argv[2])):
    wall, cpu = time.perf_counter(), time.process_time()
    exec(code, {})
    print(time.perf_counter() - wall, time.process_time() - cpu)
"""
CLOCKS = ("wall", "CPU")
STEPS = (1.0, 2.0, 5.0)
BLOCK = 10
"""Nights of a block: whatever holds for longer is lost from the years that are made of blocks."""


def record(path: Path, nights: int, pause: float) -> None:
    """Append nights to a file: a line for each process, 'program night process wall cpu wall cpu ...'."""
    command = [sys.executable, "-c", _PROCESS]
    with path.open("a", encoding="utf-8") as out:
        for night in range(nights):
            for (name, code), process in itertools.product(PROGRAMS.items(), range(BOOTS + 1)):
                ran = subprocess.run([*command, code, str(RUNS)], capture_output=True, text=True, check=True)
                times = " ".join(f"{float(x):.6f}" for x in ran.stdout.split())
                print(name, night, process, times, file=out, flush=True)
            time.sleep(pause)


def load(path: Path) -> dict[str, Floats]:
    """Return the runs of each program and clock in seconds, (nights, BOOTS + 1, RUNS)."""
    raw = path.read_bytes()
    lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    found: dict[str, Floats] = {}
    for name in dict.fromkeys(row[0] for row in rows):
        values = np.array([[float(x) for x in row[3:]] for row in rows if row[0] == name])
        whole = len(values) // (BOOTS + 1) * (BOOTS + 1)
        shaped = values[:whole].reshape(-1, BOOTS + 1, RUNS, len(CLOCKS))
        found |= {
            f"{path.name.split('.')[0]}: {name}, {clock}": shaped[..., i] for i, clock in enumerate(CLOCKS)
        }
    return found


def as_nights(runs: Floats, step: float, at: int) -> Simulated:
    """Return nights in percent of the typical level, `step` percent worse from night `at` on."""
    level = 100 * np.log(np.median(runs, axis=2) / np.median(runs))
    truth = np.where(np.arange(len(runs)) >= at, step, 0.0)
    return Simulated(level[:, :BOOTS] + truth[:, None], level[:, BOOTS:], truth)


def of_blocks(runs: Floats, nights: int, random: np.random.Generator) -> Floats:
    """Return nights that are made of blocks of the recorded ones."""
    starts = random.integers(len(runs) - BLOCK + 1, size=-(-nights // BLOCK))
    made: Floats = runs[(starts[:, None] + np.arange(BLOCK)).ravel()[:nights]]
    return made


def noise_of(nights: Floats) -> VarianceComponents:
    """Return the noise within nights (N, BOOTS + 1, RUNS), as a series tells it to its confirmation."""
    boots = np.log(nights[:, :BOOTS])
    boots = boots - boots.mean(axis=(1, 2), keepdims=True)
    run, run_df, boot, boot_df = components(list(boots.reshape(-1, RUNS)))
    return VarianceComponents(run.estimate, run_df, boot.estimate, boot_df - len(nights))


def confirmation(runs: Floats, known: Floats) -> Confirmation:
    """Return what confirms by the processes that were recorded one after the other from some night on.

    runs: the recording; known: nights of the series before.
    """
    noise, recorded = noise_of(known), runs.reshape(-1, RUNS)

    def confirm(effect: float, night: int, seed: int) -> tuple[Outcome, int]:
        start = np.random.default_rng((seed, night)).integers(len(recorded))
        following = itertools.cycle(np.roll(recorded, -int(start), axis=0))
        return confirm_with(lambda commit: next(following) * math.exp(effect * commit / 100), noise)

    return confirm


def judge(name: str, runs: Floats, series: int, years: int, seed: int) -> list[list[str]]:
    """Return the rows of one recording: as it came, in years, and with steps."""
    random = np.random.default_rng(seed)
    confirm = confirmation(runs, runs[:STEP_AT])
    lines = compare(f"{name}, as it came", 0.0, [as_nights(runs, 0.0, 0)], 0, seed, confirm)
    for step, length, count in ((0.0, YEAR, years), *((s, STEP_AT + AFTER, series) for s in STEPS)):
        drawn = [as_nights(of_blocks(runs, length, random), step, STEP_AT) for _ in range(count)]
        lines += compare(name, step, drawn, STEP_AT, seed, confirm)
    return lines


def main() -> None:
    """Record nights, or judge those that were recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("file", type=Path)
    recorder.add_argument("--nights", type=int, default=200)
    recorder.add_argument("--pause", type=float, default=1.0)
    judging = commands.add_parser("judge")
    judging.add_argument("file", type=Path, nargs="+")
    for option, default in (("--series", 50), ("--years", 20), ("--seed", 1)):
        judging.add_argument(option, type=int, default=default)
    options = parser.parse_args()
    if options.command == "record":
        record(options.file, options.nights, options.pause)
        return
    print_head()
    for path in options.file:
        for name, runs in load(path).items():
            print_rows(judge(name, runs, options.series, options.years, options.seed))


if __name__ == "__main__":
    main()

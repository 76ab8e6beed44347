"""How often two equal commits are said to differ, in families of noise.

    python -m tests.bench.search.equal_ends [--trials N] [--only FAMILY]... [--minutes N] [--jobs N] [--keep]

*Ends*: each trial boots both ends in the order ABBA on each testbed, so many boots of each, and asks after
every boot of all testbeds whether the ends differ. A claim at any look counts, as it would end the
verification; of several testbeds also one that one of them shows it. The planner's alpha is 5%.

*Parent*: the ends differ by so much, and a suspect, the first one, is compared with its equal parent as a
certificate does. Any proof counts, also one of a small change. Its share of alpha is 6 / pi^2.

*History*: a whole search of 16 equal commits under an instruction clock whose boots do not repeat. Any ending
counts that claims a change. The search is exact until two boots of one commit differ.

Trials go round-robin over the families and are kept in build/bench-search/rows.jsonl as they end.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Ending, Purpose
from bisector.model.goal import Budget, Goal, Metric, Threshold
from bisector.model.records import Booted, Ran, Record
from bisector.model.state import State, extend, fold
from bisector.search import confirmation, endpoints
from bisector.search.cache import PlannerCache
from bisector.search.testbeds.ends_by_testbed import choose_testbeds
from bisector.simulation.batch import end_with_parent
from tests.bench.search import kept, measured
from tests.support.searching import drive

GOAL = Goal(Metric("m", "s", "lower", Threshold(0.01)))
ORDER = (0, 1, 1, 0)
BOOTS, RUNS = 16, 3
"""Boots of each commit on each testbed, and runs in each."""
ENDS_BOOTS, LOSS = 8, 6.0
"""Before a certificate: boots of both ends, and by how many percent they differ."""
COMMITS, MAX_RUNS = 16, 2000
"""Commits of a history, and the runs after which its search gives up."""
TRIALS, BATCH = 1000, 20
"""Trials of a family, and how many of them are carried out at once."""

Random = np.random.Generator
Draw = Callable[[int, int], list[float]]
"""The values of a boot, in percent about the level, by its number on its testbed and by the testbed."""
Begin = Callable[[Random], Draw]
"""Begins a trial: what lasts for longer than a boot is drawn once."""


@dataclass(frozen=True)
class Family:
    """What is drawn. noise: factor on each testbed's scatter; their number is that of the testbeds."""

    begin: Begin
    noise: tuple[float, ...] = (1.0,)


def boots(offset: Callable[[Random], float], run: float) -> Begin:
    """Return boots that are alike but for an offset of their own, with normal runs in percent."""

    def begin(random: Random) -> Draw:
        def draw(number: int, testbed: int) -> list[float]:
            return _floats(offset(random) + run * random.standard_normal(RUNS))

        return draw

    return begin


def _floats(values: Iterable[float]) -> list[float]:
    return [float(value) for value in values]


def normal(boot: float, run: float) -> Begin:
    """Return normal boots and runs of these deviations, in percent."""
    return boots(lambda random: boot * float(random.standard_normal()), run)


def heavy_boots(scale: float, run: float, freedom: float = 2.5) -> Begin:
    """Return boots with the heavy tails of Student's t, as starts of real programs have."""
    return boots(lambda random: scale * float(random.standard_t(freedom)), run)


def modes(gap: float, run: float, share: float = 0.3) -> Begin:
    """Return boots in a fast or a slow mode, so many percent apart."""
    return boots(lambda random: gap * float(random.random() < share), run)


def grouped_modes(gap: float, run: float, together: bool, length: int = 4) -> Begin:
    """Return boots whose mode stays for so many in a row. together: it is the same on all testbeds."""

    def begin(random: Random) -> Draw:
        mode: dict[int, float] = {}

        def draw(number: int, testbed: int) -> list[float]:
            group = number // length * 100 + (0 if together else testbed)
            mode.setdefault(group, gap * float(random.random() < 0.5))
            return _floats(mode[group] + run * random.standard_normal(RUNS))

        return draw

    return begin


def correlated_boots(boot: float, run: float, rho: float) -> Begin:
    """Return boots whose offsets follow each other as AR(1) on each testbed."""

    def begin(random: Random) -> Draw:
        last: dict[int, float] = {}

        def draw(number: int, testbed: int) -> list[float]:
            z = float(random.standard_normal())
            before = last.get(testbed)
            last[testbed] = z if before is None else rho * before + math.sqrt(1 - rho**2) * z
            offset = boot * last[testbed]
            return _floats(offset + run * random.standard_normal(RUNS))

        return draw

    return begin


def correlated_runs(run: float, rho: float) -> Begin:
    """Return runs that follow each other as AR(1) in their boot; boots do not scatter."""

    def begin(random: Random) -> Draw:
        def draw(number: int, testbed: int) -> list[float]:
            values = [float(random.standard_normal())]
            for z in random.standard_normal(RUNS - 1):
                values.append(rho * values[-1] + math.sqrt(1 - rho**2) * float(z))
            return [run * value for value in values]

        return draw

    return begin


def bimodal_runs(gap: float, run: float, share: float = 0.3) -> Begin:
    """Return runs each of which is fast or slow, whatever their boot."""

    def begin(random: Random) -> Draw:
        def draw(number: int, testbed: int) -> list[float]:
            return [
                gap * float(random.random() < share) + run * float(z) for z in random.standard_normal(RUNS)
            ]

        return draw

    return begin


def drifting(slope: float, walk: float, run: float) -> Begin:
    """Return boots on a testbed that drifts: so many percent a boot, and a random walk of such steps."""

    def begin(random: Random) -> Draw:
        level: dict[int, float] = {}

        def draw(number: int, testbed: int) -> list[float]:
            step = slope + walk * float(random.standard_normal())
            level[testbed] = level.get(testbed, 0.0) + step
            return _floats(level[testbed] + run * random.standard_normal(RUNS))

        return draw

    return begin


def stepped(step: float, boot: float, run: float) -> Begin:
    """Return normal boots and runs whose values are rounded to a step, in percent: a coarse clock."""
    exact = normal(boot, run)

    def begin(random: Random) -> Draw:
        draw = exact(random)
        return lambda number, testbed: [step * round(value / step) for value in draw(number, testbed)]

    return begin


ENDS: Mapping[str, Family] = {
    "runs": Family(normal(0.0, 2.0)),
    "boots": Family(normal(2.0, 0.2)),
    "boots as runs": Family(normal(1.0, 1.0)),
    "boots with heavy tails": Family(heavy_boots(1.0, 0.1)),
    "boots with heavy tails, as runs": Family(heavy_boots(1.0, 1.0)),
    "boots with heavier tails": Family(heavy_boots(1.0, 0.5, 2.0)),
    "boots with heavier tails, noisy runs": Family(heavy_boots(1.0, 2.0, 2.0)),
    "boots, AR(1) of .5": Family(correlated_boots(2.0, 0.2, 0.5)),
    "runs, AR(1) of .5 in a boot": Family(correlated_runs(2.0, 0.5)),
    "runs in two modes 3% apart": Family(bimodal_runs(3.0, 0.1)),
    "boots in two modes 3% apart": Family(modes(3.0, 0.1)),
    "boots in two modes 1% apart, as runs": Family(modes(1.0, 1.0)),
    "even modes half a run deviation apart": Family(modes(1.0, 2.0, 0.5)),
    "even modes one run deviation apart": Family(modes(2.0, 2.0, 0.5)),
    "even modes 1.5 run deviations apart": Family(modes(3.0, 2.0, 0.5)),
    "one boot in ten 3% slower": Family(modes(3.0, 0.1, 0.1)),
    "modes that stay for four boots": Family(grouped_modes(3.0, 0.1, False)),
    "two values 2% apart": Family(modes(2.0, 0.0, 0.5)),
    "values in steps of 2%": Family(stepped(2.0, 0.0, 1.0)),
    "values in steps of 5%": Family(stepped(5.0, 0.0, 1.0)),
    "boots in steps of 2%": Family(stepped(2.0, 1.0, 0.1)),
    "drift of .2% a boot": Family(drifting(0.2, 0.0, 0.5)),
    "random walk of .5% a boot": Family(drifting(0.0, 0.5, 0.5)),
    "two testbeds, runs": Family(normal(0.0, 2.0), (1.0, 1.0)),
    "two testbeds, boots": Family(normal(2.0, 0.2), (1.0, 1.0)),
    "two testbeds 1:3, boots": Family(normal(1.0, 0.1), (1.0, 3.0)),
    "three testbeds 1:1.7:3, boots": Family(normal(1.0, 0.1), (1.0, 1.7, 3.0)),
    "two testbeds, boots in two modes": Family(modes(3.0, 0.1), (1.0, 1.0)),
    "two testbeds, modes that stay for four boots": Family(grouped_modes(3.0, 0.1, False), (1.0, 1.0)),
    "two testbeds, modes that both share": Family(grouped_modes(3.0, 0.1, True), (1.0, 1.0)),
    "three testbeds, modes that all share": Family(grouped_modes(3.0, 0.1, True), (1.0, 1.0, 1.0)),
}
PARENT: Mapping[str, Family] = {
    name: ENDS[name]
    for name in (
        "runs",
        "boots",
        "boots as runs",
        "boots with heavy tails",
        "boots in two modes 3% apart",
        "one boot in ten 3% slower",
        "two values 2% apart",
        "values in steps of 2%",
        "drift of .2% a boot",
    )
}
HISTORY: Mapping[str, Family] = {
    name: ENDS[name]
    for name in ("boots", "boots as runs", "boots in two modes 3% apart", "two values 2% apart")
}
COMPARED: Mapping[str, Mapping[str, Family]] = {
    "equal ends": ENDS,
    "equal parent": PARENT,
    "equal history": HISTORY,
}


def line_of_commits(count: int) -> CommitGraph:
    """Return a history of good and so many commits behind it, the last of them bad."""
    parents = ((), *((i,) for i in range(count)))
    shas = tuple(f"{i:040x}" for i in range(count + 1))
    return CommitGraph(shas, parents, (False, *[True] * count), 0, count)


def ends_claim(family: Family, random: Random) -> int:
    """Return after how many boots of all testbeds the equal ends are said to differ; 0 for never."""
    graph = line_of_commits(1)
    cache, state, draw = PlannerCache(graph, None), fold(graph, GOAL, ()), family.begin(random)
    for number in range(BOOTS):
        for testbed, factor in enumerate(family.noise):
            values = [factor * value for value in draw(number, testbed)]
            state = _boot(state, "verify", number, testbed, ORDER[number % 4], values)
        context = cache.context(state)
        together = endpoints.ends_differ(context, endpoints.compare_ends(context, cache))
        if choose_testbeds(context, cache, together).differ:
            return (number + 1) * len(family.noise)
    return 0


def parent_claim(family: Family, random: Random) -> int:
    """Return after how many fresh boots a suspect is proven against its equal parent; 0 for never."""
    graph, parent, suspect = line_of_commits(3), 1, 2
    cache, state, draw = PlannerCache(graph, None), fold(graph, GOAL, ()), family.begin(random)
    for number in range(ENDS_BOOTS):
        bad = bool(ORDER[number % 4])
        values = [value + LOSS * bad for value in draw(number, 0)]
        state = _boot(state, "verify", number, 0, graph.bad if bad else graph.good, values)
    for number in range(2 * BOOTS):
        commit = suspect if ORDER[number % 4] else parent
        state = _boot(state, "certify", ENDS_BOOTS + number, 0, commit, draw(ENDS_BOOTS + number, 0))
        context = cache.context(state)
        if not confirmation.enough_boots(context, cache, suspect, (parent,), (), LOSS / 100):
            continue
        found = confirmation.compare_with_parent(context, cache, parent, suspect, (), LOSS / 100)
        if found and confirmation.judge_suspect(context, (suspect,), suspect, (parent,), [found]) is not None:
            return number + 1
    return 0


def history_claim(family: Family, random: Random) -> int:
    """Return after how many boots a search of equal commits ends with a claim of a change; 0 for none."""
    draw, boot, values = family.begin(random), 0, list[float]()

    def value(commit: int, run: int) -> float:
        nonlocal boot, values
        if run == 0:
            values, boot = draw(boot, 0), boot + 1
        return 100.0 * math.exp(values[run % RUNS] / 100)

    wanted = replace(GOAL, metric=replace(GOAL.metric, name="real"), clock="instructions")
    wanted = replace(wanted, budget=Budget(runs=MAX_RUNS))
    end, records, _ = drive(line_of_commits(COMMITS), wanted, value, limit=MAX_RUNS)
    if end.ending in (Ending.NOT_REPRODUCED, Ending.INCONCLUSIVE):
        return 0
    return sum(isinstance(record, Booted) for record in records)


def _boot(
    state: State, purpose: Purpose, number: int, testbed: int, commit: int, values: list[float]
) -> State:
    key, at = f"b{number}.{testbed}", float(number)
    layout = number // 2 % 3
    level = 100.0 + 20.0 * testbed
    records: list[Record] = [
        Booted(key, commit, f"t{testbed}", True, 5.0, at, layout=layout, purpose=purpose)
    ]
    records += [
        Ran(key, k, {"m": level * math.exp(value / 100)}, 1.0, at + k / 10) for k, value in enumerate(values)
    ]
    return extend(state, records)


def carry_out(job: tuple[str, str, int]) -> list[measured.Row]:
    """Carry out a batch of trials of one family, from the given one on."""
    bench, name, first = job
    claim = {"equal ends": ends_claim, "equal parent": parent_claim, "equal history": history_claim}[bench]
    family, number = COMPARED[bench][name], zlib.crc32(f"{bench} {name}".encode())
    return [
        {"bench": bench, "cell": name, "seed": k, "after": claim(family, np.random.default_rng((number, k)))}
        for k in range(first, first + BATCH)
    ]


def alpha_of(bench: str) -> float:
    """Return the share of false claims that a comparison may make."""
    return GOAL.alpha * (6 / math.pi**2 if bench == "equal parent" else 1.0)


def summary(rows: Sequence[measured.Row]) -> kept.Line:
    """Return what is kept of the trials of one family. few: claims by two boots of each commit at most."""
    first = rows[0]
    after = [row["after"] for row in rows]
    families = list(COMPARED[first["bench"]])
    return {
        **{key: first[key] for key in ("bench", "cell", "at")},
        "place": families.index(first["cell"]),
        "trials": len(rows),
        "false": sum(when > 0 for when in after),
        "few": sum(0 < when <= 4 for when in after),
        "alpha": alpha_of(first["bench"]),
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure what is missing; print a row for each family."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--only", action="append", default=[], metavar="FAMILY")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing behind this time")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=Path, default=measured.ROWS)
    parser.add_argument("--keep", action="store_true", help="put the families into RESULTS.md")
    options = parser.parse_args(words)
    until = time.monotonic() + 60 * options.minutes
    chosen = [(b, n) for b, of in COMPARED.items() for n in of if not options.only or n in options.only]
    codes = {
        key: measured.fingerprint((*measured.PLANNER, "tests/bench/search/equal_ends.py"), key)
        for key in chosen
    }
    at, file = measured.commit_of(measured.PLANNER), measured.RowFile(options.rows)
    found: dict[tuple[str, str], dict[int, measured.Row]] = {key: {} for key in chosen}
    for row in file.read():
        if row["code"] == codes.get((row["bench"], row["cell"])) and row["seed"] < options.trials:
            found[row["bench"], row["cell"]][row["seed"]] = row
    starts = range(0, options.trials, BATCH)
    jobs = [(*key, first) for first in starts for key in chosen if first not in found[key]]
    print(f"{len(jobs)} batches of {BATCH} trials to do, of {len(starts) * len(chosen)}", file=sys.stderr)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, end_with_parent) as pool:
        for begin in range(0, len(jobs), options.jobs):
            if time.monotonic() > until:
                break
            for rows in pool.map(carry_out, jobs[begin : begin + options.jobs]):
                key = rows[0]["bench"], rows[0]["cell"]
                rows = [row | {"code": codes[key], "at": at} for row in rows]
                found[key] |= {row["seed"]: row for row in rows}
                file.append(rows)
    lines = [summary(list(rows.values())) for rows in found.values() if rows]
    for line in lines:
        print(f"{line['bench']}, {line['cell']}: {line['false']} of {line['trials']}, {line['few']} by few")
    if options.keep:
        kept.keep(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())

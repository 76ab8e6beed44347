"""The search benchmark: perfbisect's planner beside git-bayesect and git bisect, on the same histories.

    python -m tests.bench.search.run                     # 10 minutes, as many trials as fit
    python -m tests.bench.search.run --full              # 1,000 trials a cell: a day or more
    python -m tests.bench.search.run --only "d 2" --only "centre" --trials 40 --no-rivals --keep

Trials go round-robin over the cells in a fixed order. Each is kept in build/bench-search/rows.jsonl as it
ends, so any call goes on where one with the same code and seed was stopped. Writes results.md and
cost-success.png into --out; --keep also puts the cells into RESULTS.md of this folder.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from bisector.simulation.batch import derive_seeds, end_with_parent, simulate_one
from bisector.simulation.judge import Judged
from bisector.simulation.summary import summarise
from tests.bench.search import bounds, kept, measured, realdag, rivals, tables
from tests.bench.search.grid import EFFECT, Cell, cells
from tests.bench.search.trials import chosen as chosen_names

TRIALS, FULL_TRIALS, LEAST_TRIALS = 100, 1000, 10
"""Trials of a cell of weight 1 in the quick and in the full form; of any cell at least, time permitting."""
MINUTES = 10.0
"""Time of the quick form."""
STARTING_SHARE = 0.93
"""Trials are begun in this share of the time. What was begun is ended and counted, however long it takes:
leaving out long trials would make a planner look better than it is."""
RIVALS = ("tests/bench/search/rivals.py", "tests/bench/search/bounds.py")
JUDGED = TypeAdapter(Judged)

_grid: list[Cell] = []


@dataclass(frozen=True)
class Job:
    """One history of one cell. ours: whether our planner searches it; else the rivals do."""

    cell: int
    seed: int
    ours: bool

    @property
    def key(self) -> tuple[str, str, int]:
        return ("grid" if self.ours else "rivals", _grid[self.cell].name, self.seed)


def load(graph: Any) -> None:
    """Make the grid."""
    _grid[:] = cells(graph)


def load_in_worker(graph: Any) -> None:
    """Make the grid in a worker process."""
    load(graph)
    end_with_parent()


def carry_out(job: Job) -> measured.Row:
    """Search one history; return what came out."""
    cell = _grid[job.cell]
    row: measured.Row = dict(zip(("bench", "cell", "seed"), job.key, strict=True))
    if not job.ours:
        return row | {"rivals": _rivals(cell, job.seed)}
    try:
        return row | {"ours": JUDGED.dump_python(simulate_one(cell.scenario, job.seed), mode="json")}
    except Exception as error:  # a defect of the planner is a result of the benchmark, not its end
        return row | {"error": f"seed {job.seed}: {type(error).__name__}: {error}"}


def _rivals(cell: Cell, seed: int) -> dict[str, Any]:
    """Return what the rivals need on one history, for each setting of their knob."""
    lab = cell.scenario.draw(seed)[1]
    found = {"git bisect": [asdict(o) for o in rivals.git_bisect(lab)]}
    most = round(1000 + 250 / cell.d**2)  # five times what it needs at the centre
    if cell.rivals == "both":
        found["git-bayesect"] = [asdict(o) for o in rivals.bayesect(lab, most)]
    linear = cell.scenario.history == "linear" and cell.scenario.graph is None
    if linear and (cell.factor in ("centre", "d", "n") or cell.factor.startswith("costs")):
        found["oracle"] = [asdict(bounds.oracle(lab, EFFECT, EFFECT / cell.d))]
    return found


def chosen(texts: Sequence[str]) -> list[int]:
    """Return the cells of these names, or whose name contains the text where none has it; all by default."""
    names = chosen_names(texts, [c.name for c in _grid])
    return [i for i, cell in enumerate(_grid) if cell.name in names]


def plan(wanted: Sequence[int], trials: int, seed: int, who: Sequence[bool]) -> list[Job]:
    """Return all jobs in the order in which they are begun: round-robin over the cells.

    A cell of weight w has w times the trials, each 1/w rounds apart. who: ours, the rivals, or both.
    """
    found = []
    for i in wanted:
        cell = _grid[i]
        count = max(LEAST_TRIALS, round(trials * cell.weight)) if trials >= LEAST_TRIALS else trials
        for k, s in enumerate(derive_seeds(count, seed)):
            found += [(k / cell.weight, i, Job(i, s, o)) for o in who if o or cell.rivals != "none"]
    return [job for _, _, job in sorted(found, key=lambda x: x[:2])]


def code_of(job: Job) -> str:
    """Return the fingerprint of what decides the numbers of a job."""
    scenario = _grid[job.cell].scenario
    if job.ours:
        return measured.fingerprint((*measured.PLANNER, *measured.SIMULATION), scenario)
    return measured.fingerprint((*measured.LAB, *RIVALS), scenario)


def known_rows(
    jobs: Sequence[Job], codes: Mapping[tuple[str, str], str], rows: Sequence[measured.Row]
) -> dict[Job, measured.Row]:
    """Return the rows of jobs that the present code has carried out already. codes: by benchmark and cell."""
    by_key = {
        (r["bench"], r["cell"], r["seed"]): r for r in rows if codes.get((r["bench"], r["cell"])) == r["code"]
    }
    return {job: by_key[job.key] for job in jobs if job.key in by_key}


def measure(
    jobs: Sequence[Job], processes: int, graph: Any, until: float | None
) -> Iterator[tuple[Job, measured.Row]]:
    """Carry the jobs out and yield their rows as they come. until: no job begins after this time."""
    left = iter(jobs)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, load_in_worker, (graph,)) as pool:
        running: dict[Future[measured.Row], Job] = {}
        while True:
            if until is None or time.monotonic() < until:
                for job in islice(left, processes - len(running)):
                    running[pool.submit(carry_out, job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()


KNOBS = {"git bisect": rivals.RUNS_A_STEP, "git-bayesect": rivals.CONFIDENCES, "oracle": (0.95,)}


def rival_table(rows: Sequence[measured.Row]) -> dict[str, Any]:
    """Return for each rival the curve over its knob and its best setting with at least 95% success."""
    table: dict[str, Any] = {}
    for name, knobs in KNOBS.items():
        trials = [r["rivals"][name] for r in rows if name in r["rivals"]]
        if not trials:
            continue
        curve = []
        for i, knob in enumerate(knobs):
            at = [t[i] for t in trials]
            means = {key: float(np.mean([t[key] for t in at])) for key in ("runs", "boots", "builds", "cost")}
            curve.append({"knob": knob, "success": float(np.mean([t["correct"] for t in at])), **means})
        best = min((c for c in curve if c["success"] >= 0.95), key=lambda c: c["cost"], default=None)
        table[name] = {"curve": curve, "best": best}
    return table


def bound_table(cell: Cell) -> dict[str, float]:
    """Return the theoretical limits of a linear single-culprit cell."""
    if cell.d > 100 or cell.scenario.graph is not None:
        return {}
    model, n = cell.scenario.lab, cell.scenario.commits
    visit = model.build_seconds + model.boot_seconds
    return {
        "fano_runs": bounds.fano_runs(n, cell.d),
        "search_cost": bounds.cost_bound(n, cell.d, visit, model.run_seconds),
        "certificate_runs": bounds.certificate_runs(cell.d),
    }


def lines_of(cell: Cell, rows: Sequence[measured.Row], seed: int) -> list[kept.Line]:
    """Return what is kept of one cell: a line of ours, and one of the rivals, where they were measured."""
    ours = [r for r in rows if r["bench"] == "grid"]
    theirs = [r for r in rows if r["bench"] == "rivals"]
    found: list[kept.Line] = []
    if ours:
        judged = [JUDGED.validate_python(r["ours"]) for r in ours if "ours" in r]
        line = {"bench": "grid", "cell": cell.name, "at": ours[-1]["at"], "seed": seed, "trials": len(ours)}
        line["factor"], line["n"], line["bounds"] = cell.factor, cell.scenario.commits, bound_table(cell)
        line["ours"] = summarise(judged).model_dump(exclude={"warnings"}) if judged else None
        line["slowest"] = max((j.slowest for j in judged), default=0.0)
        line["errors"] = [r["error"] for r in ours if "error" in r]
        found.append(line)
    if theirs:
        line = {"bench": "rivals", "cell": cell.name, "at": theirs[-1]["at"], "seed": seed}
        found.append(line | {"trials": len(theirs), "rivals": rival_table(theirs)})
    return found


def results(wanted: Sequence[int], rows: Mapping[Job, measured.Row], seed: int) -> list[kept.Line]:
    """Return the lines of all cells that have a trial."""
    by_cell: dict[int, list[measured.Row]] = {i: [] for i in wanted}
    for job, row in rows.items():
        by_cell[job.cell].append(row)
    return [line for i in wanted for line in lines_of(_grid[i], by_cell[i], seed)]


def with_known_rivals(lines: Sequence[kept.Line]) -> list[kept.Line]:
    """Return the lines with the kept ones of rivals where those are of more trials."""
    known = kept.load()
    found = []
    for line in lines:
        older = known.get(("rivals", line["cell"]))
        if line["bench"] == "grid":
            found.append(line)
            if older and not any(x["bench"] == "rivals" and x["cell"] == line["cell"] for x in lines):
                found.append(older)
        else:
            found.append(older if older and older["trials"] > line["trials"] else line)
    return found


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--full", action="store_true", help=f"{FULL_TRIALS} trials a cell, without a limit of time")
    add("--trials", type=int, help=f"instead of {TRIALS} or {FULL_TRIALS}; without a limit of time")
    add("--minutes", type=float, help=f"limit of time; {MINUTES:g} where nothing else says how much to do")
    add(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="a cell, or all with this in the name; repeatable",
    )
    add("--seed", type=int, default=1)
    add("--jobs", type=int, default=os.cpu_count() or 1)
    add("--rows", type=Path, default=measured.ROWS, help="where each trial is kept")
    add("--out", type=Path, default=measured.ROWS.parent)
    add("--history", type=Path, help="commit graph for the cell 'real DAG'")
    add("--range", default="v2.6.30-rc3..v2.6.30", help="tags in --history")
    add("--no-rivals", action="store_true", help="only perfbisect's own numbers")
    add("--rivals-only", action="store_true", help="only those of the rivals")
    add("--keep", action="store_true", help="put the cells into RESULTS.md")
    options = parser.parse_args(words)
    if options.minutes is None and not options.full and options.trials is None:
        options.minutes = MINUTES
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Measure; print the tables."""
    started = time.monotonic()
    options = parse(words)
    graph = None
    if options.history:
        good, _, bad = options.range.partition("..")
        graph = realdag.read_range(options.history, good, bad)
    load(graph)
    wanted = chosen(options.only)
    trials = options.trials or (FULL_TRIALS if options.full else TRIALS)
    who = [o for o, skipped in ((True, options.rivals_only), (False, options.no_rivals)) if not skipped]
    jobs = plan(wanted, trials, options.seed, who)
    codes = {job.key[:2]: "" for job in jobs}
    codes |= {job.key[:2]: code_of(job) for job in {j.key[:2]: j for j in jobs}.values()}
    file = measured.RowFile(options.rows)
    rows = known_rows(jobs, codes, file.read())
    left = [job for job in jobs if job not in rows]
    until = None if options.minutes is None else started + 60 * STARTING_SHARE * options.minutes
    limit = "" if until is None else f", begun within {STARTING_SHARE * options.minutes:.1f} minutes"
    say(f"{len(wanted)} cells, {len(jobs)} trials of which {len(rows)} are known; {len(left)} to do{limit}")
    at = {True: measured.commit_of(measured.PLANNER), False: measured.commit_of(RIVALS)}
    told = started
    for job, row in measure(left, options.jobs, graph, until):
        rows[job] = row | {"code": codes[job.key[:2]], "at": at[job.ours]}
        file.append([rows[job]])
        if time.monotonic() > told + 30:
            told = time.monotonic()
            say(f"{len(rows)} of {len(jobs)} trials after {told - started:.0f} s")
    lines = results(wanted, rows, options.seed)
    shown = with_known_rivals(lines)
    options.out.mkdir(parents=True, exist_ok=True)
    text = f"# Search benchmark\n\n{tables.markdown(shown)}\n"
    (options.out / "results.md").write_text(text)
    tables.plot(shown, options.out / "cost-success.png")
    if options.keep:
        kept.keep(shown)
    print(text)
    spent = time.monotonic() - started
    say(f"{len(rows)} of {len(jobs)} trials in {spent:.0f} s; the same call goes on there")
    return 0


def say(text: str) -> None:
    """Tell progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

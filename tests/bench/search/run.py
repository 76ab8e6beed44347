"""The search benchmark: perfbisect's planner beside git-bayesect and git bisect, on the same histories.

    python tests/bench/search/run.py [--full] [--only TEXT] [--trials N] [--history FILE.xz --range A..B]

Writes results.json, results.md and cost-success.png into --out. The quick form takes 100 trials a cell
(fewer where a trial is long), the full one 1,000.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bisector.simulation.batch import derive_seeds, end_with_parent, simulate_one
from bisector.simulation.summary import summarise
from tests.bench.search import bounds, realdag, rivals, tables
from tests.bench.search.grid import EFFECT, Cell, cells

_grid: list[Cell] = []


def load(graph: Any) -> None:
    """Make the grid."""
    _grid.extend(cells(graph))


def load_in_worker(graph: Any) -> None:
    """Make the grid in a worker process."""
    load(graph)
    end_with_parent()


def task(job: tuple[int, int, bool, bool]) -> tuple[int, int, dict[str, Any]]:
    """Run one trial of one cell: ours, and the rivals unless their numbers are already known."""
    index, seed, with_ours, with_rivals = job
    cell = _grid[index]
    result: dict[str, Any] = {}
    if with_ours:
        try:
            result["ours"] = simulate_one(cell.scenario, seed)
        except Exception as error:  # a defect of the planner is a result of the benchmark, not its end
            result["error"] = f"seed {seed}: {type(error).__name__}: {error}"
    if with_rivals:
        lab = cell.scenario.draw(seed)[1]
        linear = cell.scenario.history == "linear" and cell.scenario.graph is None
        result["git bisect"] = [asdict(o) for o in rivals.git_bisect(lab)]
        most = round(1000 + 250 / cell.d**2)  # five times what it needs at the centre
        if cell.rivals == "both":
            result["git-bayesect"] = [asdict(o) for o in rivals.bayesect(lab, most)]
        plain = cell.factor in ("centre", "d", "n") or cell.factor.startswith("costs")
        if linear and plain:
            result["oracle"] = [asdict(bounds.oracle(lab, EFFECT, EFFECT / cell.d))]
    return index, seed, result


KNOBS = {"git bisect": rivals.RUNS_A_STEP, "git-bayesect": rivals.CONFIDENCES, "oracle": (0.95,)}


def rival_table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for each rival the curve over its knob and its best setting with at least 95% success."""
    table: dict[str, Any] = {}
    for name, knobs in KNOBS.items():
        trials = [r[name] for r in rows if name in r]
        if not trials:
            continue
        curve = []
        for i, knob in enumerate(knobs):
            at = [t[i] for t in trials]
            means = {key: float(np.mean([t[key] for t in at])) for key in ("runs", "boots", "builds", "cost")}
            curve.append({"knob": knob, "success": float(np.mean([t["correct"] for t in at])), **means})
        best = min((c for c in curve if c["success"] >= 0.95), key=lambda c: c["cost"], default=None)
        table[name] = {"trials": len(trials), "curve": curve, "best": best}
    return table


def short(rows: dict[int, dict[str, Any]]) -> str:
    """Return our result in a cell in a few words."""
    ours = [r["ours"] for r in rows.values() if "ours" in r]
    if not ours:
        return f"{len(rows)} trials"
    s = summarise(ours)
    parts = ", ".join(f"{name} {part.cost:.0f}" for name, part in s.by_purpose.items() if part.cost)
    words = f"{s.success_with_sets.count}/{s.trials} right, {s.wrong} wrong, {s.inconclusive} inconclusive"
    speed = 1000 * s.planner_cpu_seconds_per_decision
    return f"{words}, cost {s.cost.mean:.0f} ({parts}), {s.runs.mean:.0f} runs, {speed:.1f} ms a decision"


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--full", action="store_true", help="1,000 trials a cell (overnight)")
    parser.add_argument("--trials", type=int, help="instead of 100 or 1,000")
    parser.add_argument("--only", default="", help="cells whose name contains one of these, comma-separated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("build/bench-search"))
    parser.add_argument("--history", type=Path, help="commit graph for the cell 'real DAG'")
    parser.add_argument("--range", default="v2.6.30-rc3..v2.6.30", help="tags in --history")
    parser.add_argument("--rivals-from", type=Path, help="results.json whose rivals' numbers are used again")
    parser.add_argument("--rivals-only", action="store_true", help="for a later --rivals-from")
    parser.add_argument("--no-rivals", action="store_true", help="only perfbisect's own numbers")
    options = parser.parse_args()
    graph = None
    if options.history:
        good, _, bad = options.range.partition("..")
        graph = realdag.read_range(options.history, good, bad)
    load(graph)
    trials = options.trials or (1000 if options.full else 100)
    wanted = [
        i for i, c in enumerate(_grid) if any(part.strip() in c.name for part in options.only.split(","))
    ]
    known: dict[str, Any] = {}
    if options.rivals_from and options.rivals_from.is_file():
        known = {
            c["name"]: c["rivals"]
            for c in json.loads(options.rivals_from.read_text())["cells"]
            if c["rivals"]
        }
    jobs = []
    for i in wanted:
        cell = _grid[i]
        count = max(10, round(trials * cell.weight))
        need = cell.rivals != "none" and cell.name not in known and not options.no_rivals
        jobs += [(i, s, not options.rivals_only, need) for s in derive_seeds(count, options.seed)]
    rows: dict[int, dict[int, dict[str, Any]]] = {i: {} for i in wanted}
    counts = Counter(job[0] for job in jobs)
    started = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, load_in_worker, (graph,)) as pool:
        futures = [pool.submit(task, job) for job in jobs]
        for done, future in enumerate(as_completed(futures), start=1):
            index, seed, result = future.result()
            rows[index][seed] = result
            if len(rows[index]) == counts[index]:
                spent = time.monotonic() - started
                left = spent / done * (len(jobs) - done)
                line = f"{_grid[index].name}: {short(rows[index])}; {spent:.0f} s, about {left:.0f} s to go"
                print(line, file=sys.stderr, flush=True)
                complete = {i: r for i, r in rows.items() if len(r) == counts[i]}
                report_of(options, trials, started, complete, known)
    report = report_of(options, trials, started, rows, known)
    text = tables.markdown(report)
    (options.out / "results.md").write_text(text)
    tables.plot(report, options.out / "cost-success.png")
    print(text)
    return 0


def report_of(
    options: argparse.Namespace,
    trials: int,
    started: float,
    rows: dict[int, dict[int, dict[str, Any]]],
    known: dict[str, Any],
) -> dict[str, Any]:
    """Return the results of these cells, and keep them: a long run that is stopped has lost little."""
    report: dict[str, Any] = {"seed": options.seed, "trials": trials, "seconds": time.monotonic() - started}
    report["cells"] = [cell_of(_grid[i], rows[i], known) for i in sorted(rows)]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(report, indent=1))
    return report


def cell_of(cell: Cell, rows: dict[int, dict[str, Any]], known: dict[str, Any]) -> dict[str, Any]:
    """Return one cell's result."""
    ordered = [rows[s] for s in sorted(rows)]
    ours = [r["ours"] for r in ordered if "ours" in r]
    return {
        "name": cell.name,
        "factor": cell.factor,
        "value": cell.value,
        "d": cell.d,
        "n": cell.scenario.commits,
        "ours": summarise(ours).model_dump() if ours else None,
        "rivals": known.get(cell.name) or rival_table(ordered),
        "bounds": bound_table(cell),
        "errors": [r["error"] for r in ordered if "error" in r],
    }


if __name__ == "__main__":
    sys.exit(main())

"""A state of many bisections, the same for the same seed: records as the engine writes them, in bulk.

python -m tests.bench.state.make_state FOLDER BISECTIONS [TRIALS] [COMMITS] [SEED]
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bisector.adapters.store.notes_v1 import NO_NOTE
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval, Measure
from bisector.model.facts import KernelFacts
from bisector.model.records import Booted, Built, Left, Ran, Record
from bisector.model.stored_bisection import Stored
from bisector.schemas import serialization
from bisector.simulation.histories import linear
from bisector.testing.fakes import METRIC
from tests.support import fake_bisection

GRAPHS_SHARE = 10
"""Bisections of one graph: a range is searched again with another workload, metric or testbed."""
TEMPLATES = 8
"""Different sets of records; the times and values of more would make the same work."""
RUNS = 3
OPTIONS = {f"OPTION_{n}": "y" for n in range(40)}
"""Of a kernel's configuration; a real guest's has about a thousand more, which only `report` reads."""
FACTS = {f"sysctl.kernel.number_{n}": str(n) for n in range(30)}
DAY = 86400.0
EXECUTED = 100
"""So many bisections before the last one are queued, as far as this share allows."""
EXECUTED_SHARE = 0.1


def make_state(
    folder: Path, bisections: int, trials: int = 100, commits: int = 2000, seed: int = 1
) -> SqlStore:
    """Write perfbisect.sqlite into a folder; the second half of the bisections ended over 90 days ago."""
    file = open_state_file(folder / "perfbisect.sqlite")
    store = SqlStore(file)
    random = np.random.default_rng(seed)
    request = fake_bisection.accepted(fake_bisection.a_lab()).model_dump_json()
    templates = [_events(random, trials, commits) for _ in range(TEMPLATES)]
    now, graph = time.time(), linear(commits)
    for number in range(bisections):
        if number % GRAPHS_SHARE == 0:
            graph = _graph(random, commits)
        culprit = int(random.integers(1, commits))
        effect = Interval(0.04, 0.05, 0.06)
        finding = Finding((culprit,), effect, 0.99, (culprit - 1,), certified=True)
        conclusion = Conclusion(Ending.CULPRIT, "One commit explains the change.", (finding,), effect)
        created = now - (100 * DAY if number < bisections // 2 else 0) - (bisections - number)
        last = bisections - 1  # it has ended: a command of the benchmark removes it
        executed = last - min(EXECUTED, EXECUTED_SHARE * bisections) <= number < last
        stored = Stored(f"fake-{number:06x}", created, request, "done", graph, conclusion)
        if executed:
            stored = replace(stored, status="queued", conclusion=None, owner=f"user{number % 7}@lab")
        store.create(stored)
        if executed:
            store.decide(stored.id, Measure(culprit, RUNS, "search", "why", left=60.0 * (number % 50)))
        rows = [
            {"sequence": sequence, "bisection": stored.id, "kind": kind, "body": body, "note": NO_NOTE}
            for sequence, (kind, body) in enumerate(templates[number % TEMPLATES], 2)
        ]

        def write(rows: list[dict[str, Any]] = rows, name: str = stored.id) -> None:
            for row in rows:
                file.execute(
                    "INSERT INTO events (sequence, bisection, kind, body, note) "
                    "VALUES (:sequence, :bisection, :kind, :body, :note)",
                    **row,
                )
            file.execute("UPDATE bisections SET changed = created WHERE id = :id", id=name)

        file.transact(write)
    return store


def _graph(random: np.random.Generator, commits: int) -> CommitGraph:
    plain = linear(commits)
    shas = tuple(random.bytes(20).hex() for _ in plain.shas)
    return CommitGraph(shas, plain.parents, plain.candidate, plain.good, plain.bad)


def _events(random: np.random.Generator, trials: int, commits: int) -> list[tuple[str, str]]:
    """Return (kind, body) of each record and decision of one bisection."""
    found: list[tuple[str, str]] = []

    def add(value: Record | Measure) -> None:
        kind = "decision" if isinstance(value, Measure) else "record"
        found.append((kind, json.dumps(serialization.to_json(value))))

    for trial in range(trials):
        commit, boot = int(random.integers(commits)), f"boot-{trial + 1:03d}"
        at = 1.7e9 + 100 * trial
        add(Measure(commit, RUNS, "search", "it splits the probability that is left in two halves"))
        if trial % 2 == 0:
            kernel = KernelFacts(
                "6.1.0", "ab" * 20, "/c/image", "/c/config", "/c/log", {"text": 1}, OPTIONS, key="0" * 64
            )
            add(Built(commit, True, 60.0, binary=f"{trial:064x}", kernel=kernel))
        add(
            Booted(
                boot, commit, "fake", True, 7.5, at, purpose="search", facts=FACTS, workload="w", image="i"
            )
        )
        for run in range(RUNS):
            value = float(random.normal(100.0, 1.0))
            add(Ran(boot, run, {METRIC: value}, 2.0, at + run, raw=f"/s/{boot}/run-{run}"))
        add(Left(boot))
    return found


if __name__ == "__main__":
    make_state(Path(sys.argv[1]), *map(int, sys.argv[2:]))

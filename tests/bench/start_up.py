"""What a command that only looks costs: CPU seconds and modules, beside `python -c pass`.

    python -m tests.bench.start_up [COMMITS]

The state holds a finished bisection of COMMITS (200) commits and one that was stopped half way. CPU seconds
are those of the process and of all that it starts, the least of five: other work only makes one dearer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.model.decisions import Conclusion, Measure
from bisector.simulation.histories import branched
from tests.bench.process_cost import measure, perfbisect
from tests.support import fake_bisection as fake

REPEATS = 5
COUNT = "import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr))\n"
LINES = (
    "--version",
    "--help",
    "start --help",
    "simulate --help",
    "workload --help",
    "help",
    "list",
    "status {done}",
    "status {half}",
    "show {done}",
    "log {done}",
    "workload list",
    "workload show pipe-test",
    "kernel list",
    "lab list",
    "report {done}",
    "report {half}",
)
COMPLETED = ("perfbisect sta", "perfbisect status ", "perfbisect start --workload ")


def store_bisections(folder: Path, commits: int) -> dict[str, str]:
    """Write a bisection that ended and the first half of the same one; return their ids."""
    lab = fake.a_lab(branched(commits, 1), replace(fake.QUIET, run_noise=2.0))
    memory = MemoryStore()
    stored = fake.begin(memory, lab)
    bisections.run(stored, fake.services(lab, folder, store=memory), lambda _: None, threading.Event())
    events = sorted([*memory.records(stored.id), *memory.decisions(stored.id)], key=lambda event: event[0])
    store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
    for name, kept in (("done", events), ("half", events[: len(events) // 2])):
        store.create(replace(memory.load(stored.id), id=name, status="running", conclusion=None))
        for _, event in kept:
            if isinstance(event, Measure | Conclusion):
                store.decide(name, event)
            else:
                store.append(name, event)
    store.set_status("done", "done", memory.load(stored.id).conclusion)
    return {"done": "done", "half": "half"}


def modules(command: list[str], variables: dict[str, str]) -> int:
    """Return how many modules a command has loaded when it ends."""
    command = [*command[:2], COUNT + command[2], *command[3:]]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return int(done.stderr.splitlines()[-1])


def main(commits: int) -> None:
    """Print a row for each command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ids = store_bisections(folder, commits)
        own = {f"PERFBISECT_{part}_DIR": name for part in ("STATE", "CACHE")}
        nothing = measure([sys.executable, "-c", "pass"], own, REPEATS).cpu
        print(f"| command | CPU | over `python -c pass` ({nothing:.3f} s) | modules |\n|---|---|---|---|")
        rows = [(line, line.format(**ids).split(), own) for line in LINES]
        for typed in COMPLETED:
            words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
            rows.append((f"{typed}<TAB>", [], {**own, "_PERFBISECT_COMPLETE": "complete_bash", **words}))
        for line, arguments, variables in rows:
            command = perfbisect(*arguments)
            seconds, loaded = measure(command, variables, REPEATS).cpu, modules(command, variables)
            print(f"| `{line}` | {seconds:.2f} s | {seconds / nothing:.0f} | {loaded} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

"""How far each counted number spreads over boots of one kernel, run by run, on whatever load the machine has.

Prints the spread (largest less smallest, of the mean) of run k over boots, the worst run, and that of all
runs, for each metric; and which functions' instructions differ. One busy process a CPU is a load: LOAD=N.
SEED=1 gives all boots one seed also with a model; settings replace those of the workload's environment.
python -m tests.bench.counters.determinism REPO REV [BOOTS] [RECIPE] [WORKLOAD] [model|instructions] [aslr=0]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest import mock

from bisector.adapters.agent.payload import workload_job
from bisector.adapters.guest import guest_launch
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed
from bisector.app import kernels
from bisector.interfaces.cli import options
from bisector.ports import Counting, Monitor
from bisector.schemas.workload.counted_metrics import COUNTERS, is_unasked
from bisector.schemas.workload.workload import load_workload

RUNS = 3
COUNTED = {
    "model": Counting(tuple(COUNTERS), ("LL-misses",), profile=True, cpu="skylake", models=True),
    "instructions": Counting(tuple(filter(is_unasked, COUNTERS)), profile=True),
}
SHOWN = 8
SAID = ("instructions", "L1d-misses", "LL-misses")


def one_seed() -> AbstractContextManager[object]:
    """Give all boots the seed SEED, where there is one."""
    seed = os.environ.get("SEED")
    return mock.patch.object(guest_launch, "_seed", return_value=int(seed)) if seed else nullcontext()


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep so many processes busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main(
    repo: str, rev: str, boots: int, recipe: str, workload: str, what: str, settings_more: dict[str, str]
) -> None:
    """Boot the kernel so many times, and print the table."""
    wiring = options.make_wiring(repo=Path(repo), trust_repo=True)
    settings, ansible = wiring.settings, wiring.ansible(lambda: False)
    machine = LibvirtTestbed(wiring.lab.testbeds[0], ansible, settings.cache_dir, settings.state_dir)
    kernel = wiring.builder().build(kernels.order(wiring, rev, recipe), print)
    values: defaultdict[str, list[list[float]]] = defaultdict(list)
    functions: defaultdict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch, one_seed(), load(int(os.environ.get("LOAD", "0"))):
        job = workload_job(load_workload(workload), Path(scratch) / "workload")
        job = replace(job, environment={**job.environment, **settings_more})
        for boot in range(boots):
            folder = Path(scratch) / str(boot)
            folder.mkdir()
            session = machine.boot(kernel, replace(job, counting=COUNTED[what]), folder, lambda _: None)
            try:
                runs = [session.run(index).values for index in range(job.warmup + RUNS)][job.warmup :]
                seen = session.run_monitor(Monitor("counters", ())).seen
            finally:
                session.leave()
            for name in runs[0]:
                values[name].append([run[name] for run in runs])
            for one in seen:
                functions[one.name].append(one.value)
            said = json.dumps({name: found[-1] for name, found in values.items() if name in SAID})
            print(f"boot {boot}, load {os.getloadavg()[0]:.1f}: {said}", flush=True)
    show(values, functions, boots)


def spread(numbers: list[float]) -> float:
    """Return the largest less the smallest, as a share of the mean."""
    mean = statistics.mean(numbers)
    return (max(numbers) - min(numbers)) / mean if mean else 0.0


def show(values: dict[str, list[list[float]]], functions: dict[str, list[float]], boots: int) -> None:
    """Print both tables."""
    print(f"| metric | mean of {boots} boots | run k over boots | all runs |\n|---|---|---|---|")
    for name, found in values.items():
        everything = [value for boot in found for value in boot]
        worst = max(spread(list(run)) for run in zip(*found, strict=True))
        print(f"| {name} | {statistics.mean(everything):,.6g} | {worst:.4%} | {spread(everything):.4%} |")
    total = sum(statistics.mean(found) for found in functions.values())
    ranges = {name: max(found) - min(found) for name, found in functions.items() if len(found) == boots}
    print(f"\nfunctions that differ most over boots, of {total:,.0f} instructions a run:")
    for name in sorted(ranges, key=lambda name: -ranges[name])[:SHOWN]:
        print(f"{ranges[name]:>12,.1f}  {ranges[name] / total:.4%}  {name}")
    some = sorted(name for name, found in functions.items() if len(found) < boots)
    print(f"functions that only some boots execute: {len(some)}: {', '.join(some[:SHOWN])}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    main(
        given[0],
        given[1],
        int(given.get(2, "20")),
        given.get(3, "x86_64-small"),
        given.get(4, "pipe-test"),
        given.get(5, "model"),
        dict(setting.split("=", 1) for setting in sys.argv[7:]),
    )

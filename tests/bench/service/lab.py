"""Bisections on a fake lab, with the real engine, real worker processes and a PostgreSQL server.

    python -m tests.bench.service.lab --testbeds 50 --bisections 100 --workers 5   # how busy is the lab
    python -m tests.bench.service.lab --testbeds 1 2 4 8 16 --noise 2              # one bisection on more

All times are realistic ones times --scale, but for the engine's own: its cost is overstated by 1 / scale.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from bisector.adapters.store import migration
from bisector.adapters.store.open_database import connect
from bisector.adapters.store.sql_store import SqlStore
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Ran
from bisector.model.stored_bisection import Stored
from bisector.schemas import serialization
from bisector.testing.fakes import METRIC
from tests.bench.service.lab_worker import Settings
from tests.support import fake_bisection as fake
from tests.support.servers.postgres import Server, postgres_server

TTL_SECONDS = 30.0
_LOOK_SECONDS = 0.1


class Outcome(NamedTuple):
    """wall: seconds from the first boot on; busy: share of the testbeds' time in boots and runs, while
    more bisections are open than there are testbeds (whole time: where there never are); cpu: seconds of all
    workers; hours: of machines, in the times that are modelled.
    """

    wall: float
    busy: float
    cpu: float
    hours: float
    boots: int
    runs: int
    right: int


def run_lab(
    server: Server, settings: Settings, testbeds: int, bisections: int, workers: int, timeout: float
) -> Outcome:
    """Run so many bisections on a lab; return how it went."""
    database = server.new_database()
    connected = connect(database)
    migration.upgrade(connected, lambda text: None)
    store = SqlStore(connected)
    names = tuple(f"t{number:03}" for number in range(testbeds))
    lab = settings.lab()
    goal = Goal(Metric(METRIC, "s", "lower", Threshold(settings.effect / 200)), clock=lab.model.clock)
    accepted = fake.accepted(lab, names).model_copy(update={"goal": serialization.goal_to_json(goal)})
    for number in range(bisections):
        asked = accepted.request.model_copy(update={"recipe": f"r{number}"})  # each has kernels of its own
        request = accepted.model_copy(update={"request": asked}).model_dump_json()
        store.create(Stored(f"x{number}", time.time(), request, "queued", lab.graph))
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch) / f"w{number}" for number in range(workers)]
        started = [
            _start(database.secret, folder, names[number::workers], settings)
            for number, folder in enumerate(folders)
        ]
        try:
            ended = _wait(store, bisections, timeout)
        finally:
            time.sleep(1.0)  # each writes what it saw twice a second
            for process in started:
                process.kill()
                process.wait()
        seen = [json.loads((folder / "busy").read_text()) for folder in folders]
    return _outcome(settings, store, seen, ended, testbeds)


def _start(url: str, folder: Path, testbeds: Sequence[str], settings: Settings) -> subprocess.Popen[bytes]:
    folder.mkdir()
    return subprocess.Popen(
        [
            *("setpriv", "--pdeathsig=KILL", sys.executable, "-m", "tests.bench.service.lab_worker"),
            *(url, str(folder), folder.name, str(TTL_SECONDS), *testbeds),
        ],
        env={**os.environ, "LAB": json.dumps(asdict(settings))},
        stdout=subprocess.DEVNULL,
    )


def _wait(store: SqlStore, bisections: int, timeout: float) -> list[float]:
    """Wait until all have ended; return when each had."""
    ended: list[float] = []
    begun = time.monotonic()
    while len(ended) < bisections and time.monotonic() < begun + timeout:
        open_ = len(store.list(statuses=("queued", "running")))
        ended += [time.monotonic()] * (bisections - open_ - len(ended))
        time.sleep(_LOOK_SECONDS)
    return ended


def _outcome(
    settings: Settings, store: SqlStore, seen: Sequence[dict[str, Any]], ended: list[float], testbeds: int
) -> Outcome:
    acts: list[tuple[float, float]] = [act for one in seen for act in one["busy"]]
    begun, last = min(start for start, _ in acts), ended[-1]
    total = len(store.list())
    waits = ended[max(0, total - testbeds)] if total > testbeds else last
    used = sum(max(0.0, min(end, waits) - max(start, begun)) for start, end in acts)
    records = [record for one in store.list() for _, record in store.records(one.id)]
    boots, runs = (sum(isinstance(record, kind) for record in records) for kind in (Booted, Ran))
    culprit = (settings.commits // 3,)
    right = 0
    for one in store.list():
        conclusion = store.load(one.id).conclusion
        right += conclusion is not None and [f.commits for f in conclusion.findings] == [culprit]
    return Outcome(
        wall=last - begun,
        busy=used / (testbeds * (waits - begun)),
        cpu=sum(one["cpu"] for one in seen),
        hours=(boots * settings.boot + runs * settings.run) / 3600,
        boots=boots,
        runs=runs,
        right=right,
    )


def main(arguments: list[str]) -> int:
    """Print a row for each number of testbeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--testbeds", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--bisections", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900.0)
    for name in ("scale", "noise", "build", "boot", "run"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Settings, name))
    parser.add_argument("--builders", type=int, default=1)
    options = vars(parser.parse_args(arguments))
    rest = {name: options.pop(name) for name in ("testbeds", "bisections", "workers", "timeout")}
    settings = replace(Settings(), **options)
    print("testbeds  wall s  ratio  busy  machine h  boots   runs right  CPU s  load")
    alone = 0.0
    with postgres_server() as server:
        for testbeds in rest.pop("testbeds"):
            one = run_lab(server, settings, testbeds, **rest)
            alone = alone or one.wall
            print(
                f"{testbeds:8} {one.wall:7.1f} {one.wall / alone:6.3f} {one.busy:5.0%} {one.hours:10.2f} "
                f"{one.boots:6} {one.runs:6} {one.right:5} {one.cpu:6.1f} {os.getloadavg()[0]:5.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

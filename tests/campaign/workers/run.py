"""Workers on a PostgreSQL server are hurt while three bisections at least run; then everything is checked.

python -m tests.campaign.workers.run --faults 30 --seed 1
python -m tests.campaign.workers.run --faults 30 --seed 1 --seeds 5     # seeds 1 to 5
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bisector.adapters.store import migration
from bisector.adapters.store.open_database import connect, open_server
from bisector.adapters.store.sql_store import SqlStore
from bisector.errors import InfrastructureError
from bisector.model.stored_bisection import Stored
from tests.campaign.workers import machine_log
from tests.campaign.workers.machine_log import Seen
from tests.support import fake_bisection as fake
from tests.support.servers.postgres import Server, postgres_server

WORK = Path("/tmp/perfbisect-campaign/workers")
TTL_SECONDS = 2.0
"""Of an executor; 30 s in use. Everything else here is faster by more than that."""
TESTBEDS = ("a", "b", "c")
WORKERS = 3
OPEN_MIN = 3
"""Bisections that are open at least as long as strikes are left."""
BETWEEN_SECONDS = (0.2, 1.5)
"""Between two strikes: a bisection alone takes about 5 s."""
END_SECONDS = 300.0
"""To the end of all bisections after the last strike."""

KINDS = {
    "killed": 6,
    "frozen longer than the TTL": 6,
    "frozen a moment": 3,
    "told to end": 2,
    "connections of one worker broken": 3,
    "all connections broken": 2,
    "database crashed": 2,
    "database away a moment": 2,
    "database away longer than the TTL": 2,
    "clock stepped": 2,
}
"""Kind of a strike -> how many times as often as the others it is drawn."""


class Lab:
    """The workers of one campaign and the database that they share."""

    def __init__(self, server: Server, folder: Path, chance: random.Random) -> None:
        self.server, self.folder, self.chance = server, folder, chance
        self.database = server.new_database()
        migration.upgrade(connect(self.database), lambda text: None)
        self.store = SqlStore(open_server(self.database))
        name = self.database.secret.rpartition("/")[2]
        server.execute(machine_log.AUDIT, name)
        self.name = name
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.frozen: dict[str, float] = {}  # worker -> when it is thawed
        self.started = 0
        self.queued: list[str] = []

    # --- workers, bisections --------------------------------------------------------------------------------

    def replace_workers(self) -> None:
        """Thaw workers whose time has come, start others for those that have ended or are frozen."""
        for name, until in list(self.frozen.items()):
            if time.monotonic() >= until:
                self.workers[name].send_signal(signal.SIGCONT)
                del self.frozen[name]
        for name, process in list(self.workers.items()):
            if process.poll() is not None:
                del self.workers[name]
                self.frozen.pop(name, None)
        while len(self.workers) - len(self.frozen) < WORKERS:
            self._start(f"w{self.started}")
            self.started += 1

    def _start(self, name: str) -> None:
        state = self.folder / name
        state.mkdir()
        module = "tests.campaign.workers.watched_worker"
        arguments = (self.database.secret, state, name, TTL_SECONDS, *TESTBEDS)
        environment = {**os.environ, machine_log.FOLDER: str(self.folder)}
        with (self.folder / "said").open("a") as said:
            self.workers[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", module, *map(str, arguments)],
                env=environment,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def queue(self, least: int) -> None:
        """Queue bisections until so many are open."""
        with suppress(InfrastructureError):  # the database is away: at the next time
            statuses = {one.id: one.status for one in self.store.list()}
            for name in self.queued:
                if name not in statuses:
                    continue
                if statuses[name] == "failed":
                    raise AssertionError(f"{name} failed; see {self.folder / 'said'}")
            while sum(status != "done" for status in statuses.values()) < least:
                name, lab = f"x{len(self.queued)}", fake.a_lab()
                request = fake.accepted(lab, TESTBEDS).model_dump_json()
                self.queued.append(name)
                statuses[name] = "queued"
                self.store.create(Stored(name, time.time(), request, "queued", lab.graph))

    def wait(self, seconds: float) -> None:
        """Let the lab work for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.replace_workers()
            self.queue(OPEN_MIN)
            time.sleep(0.05)

    def finish(self) -> None:
        """Wait until all bisections have ended; then end the workers."""
        end = time.monotonic() + END_SECONDS
        for name in self.frozen:
            self.frozen[name] = 0.0
        while any(one.status not in ("done", "failed") for one in self.store.list()):
            self.replace_workers()
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        self.close()

    def close(self) -> None:
        """End the workers."""
        for process in self.workers.values():
            process.kill()
            process.wait()

    # --- strikes --------------------------------------------------------------------------------------------

    def strike(self, kind: str) -> None:
        """Do one strike."""
        awake = [name for name in self.workers if name not in self.frozen]
        victim = self.chance.choice(awake)
        process = self.workers[victim]
        match kind:
            case "killed":
                process.kill()
            case "told to end":
                process.terminate()
            case "frozen longer than the TTL" | "frozen a moment":
                longer = kind.endswith("TTL")
                share = self.chance.uniform(1.2, 2.5) if longer else self.chance.uniform(0.1, 0.6)
                process.send_signal(signal.SIGSTOP)
                self.frozen[victim] = time.monotonic() + share * TTL_SECONDS
            case "connections of one worker broken":
                self.server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    f"WHERE application_name = '{victim}'"
                )
            case "all connections broken":
                self.server.break_connections(self.name)
            case "database crashed":
                self.server.crash()
            case "database away a moment" | "database away longer than the TTL":
                longer = kind.endswith("TTL")
                self.server.stop()
                time.sleep(self.chance.uniform(1.2, 2.0) * TTL_SECONDS if longer else 0.5)
                self.server.start()
            case "clock stepped":
                step = self.chance.choice((-86400.0, -3600.0, -1.0, 1.0, 3600.0, 86400.0 * 365))
                (self.folder / f"{machine_log.CLOCK}-{process.pid}").write_text(str(step))
            case _:
                raise AssertionError(kind)

    # --- checks ---------------------------------------------------------------------------------------------

    def violations(self, strikes: int) -> Iterator[str]:
        """Yield what does not hold at the end."""
        for name in self.queued:
            stored = self.store.load(name)
            if stored.status != "done" or stored.conclusion is None:
                yield f"{name} has not ended: {stored.status}"
            elif [finding.commits for finding in stored.conclusion.findings] != [(fake.CULPRIT,)]:
                yield f"{name}: {stored.conclusion.summary}"
        machines = Seen.read(self.folder)
        audit = self.server.execute("SELECT at, writer, what FROM audit", self.name)
        rows = [(float(str(at)), str(who), str(what)) for at, who, what in audit]
        yield from machine_log.used_by_two(machines)
        yield from machine_log.stale_writes(rows)
        yield from machine_log.lost_or_repeated(self.store, machines, strikes)
        yield from machine_log.mingled(self.store)

    def keep_rows(self) -> None:
        """Write down what the database holds, for whoever looks into what does not hold."""
        for table in ("events", "executors", "leases", "audit"):
            rows = self.server.execute(f"SELECT * FROM {table}", self.name)
            (self.folder / f"table-{table}").write_text("".join(f"{row}\n" for row in rows))

    def numbers(self) -> dict[str, int]:
        """Return how much has happened."""
        machines = Seen.read(self.folder)
        acts = Counter(act.what for seen in machines.values() for act in seen)
        refused = self.folder / machine_log.REFUSED
        (fenced,) = self.server.execute("SELECT count(*) FROM audit WHERE what = 'fenced'", self.name)
        return {
            "bisections": len(self.queued),
            "workers": self.started,
            "boots": acts["boot"],
            "runs": acts["ran"],
            "fenced": int(str(fenced[0])),
            "refused": len(refused.read_text().splitlines()) if refused.exists() else 0,
        }


@contextmanager
def lab(server: Server, folder: Path, chance: random.Random) -> Iterator[Lab]:
    """Make a lab; its workers end with the block."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = Lab(server, folder, chance)
    try:
        yield made
    finally:
        made.close()


def run_seed(server: Server, folder: Path, seed: int, strikes: int) -> dict[str, object]:
    """Run one campaign; return what was done and what does not hold."""
    chance = random.Random(f"workers/{seed}")
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=strikes)
    started = time.monotonic()
    with lab(server, folder, chance) as hurt:
        hurt.wait(3.0)
        for kind in kinds:
            hurt.wait(chance.uniform(*BETWEEN_SECONDS))
            hurt.strike(kind)
        hurt.finish()
        found = list(hurt.violations(strikes))
        numbers = hurt.numbers()
        if found:
            hurt.keep_rows()
    if not found:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - started, 1)
    return {
        "seed": seed,
        "seconds": seconds,
        "strikes": dict(Counter(kinds)),
        **numbers,
        "violations": found,
    }


def main(arguments: list[str]) -> int:
    """Run campaigns; return 1 if one has failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=30, help="strikes of each seed")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--work", type=Path, default=WORK, help="folder; what failed is kept there")
    options = parser.parse_args(arguments)
    failed = 0
    with postgres_server() as server:
        for seed in range(options.seed, options.seed + options.seeds):
            result = run_seed(server, options.work / str(seed), seed, options.faults)
            failed += bool(result["violations"])
            print(json.dumps(result, indent=1), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

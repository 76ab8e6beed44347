"""What workers cost that have nothing to do: a program of its own.

python -m tests.bench.service.idle [WORKERS [STORED [OPEN [COMMITS]]]]

OPEN bisections of so many COMMITS wait for testbeds that none of the workers has; STORED others have ended.
Prints CPU seconds of each second, of the workers and of the database.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bisector.adapters.store import migration
from bisector.adapters.store.open_database import connect
from bisector.adapters.store.sql_store import SqlStore
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear
from tests.support import fake_bisection as fake
from tests.support.servers.postgres import Server, postgres_server

_TTL_SECONDS = 30.0
_TESTBEDS = 50
"""Of each worker."""
_SETTLE_SECONDS, _WATCHED_SECONDS = 10.0, 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the user and system seconds of a process and of its children that have ended."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / _TICKS


def server_seconds(server: Server) -> float:
    """Return those of a server's processes that live."""
    rows = server.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    return sum(cpu_seconds(int(str(pid))) for (pid,) in rows if Path(f"/proc/{pid}").exists())


def main(arguments: list[str]) -> int:
    """Print the cost."""
    workers, stored, waiting, commits = [*map(int, arguments), *(5, 10_000, 100, 2000)[len(arguments) :]]
    with postgres_server() as server, tempfile.TemporaryDirectory() as scratch:
        database = server.new_database()
        connected = connect(database)
        migration.upgrade(connected, lambda text: None)
        store = SqlStore(connected)
        graph = linear(commits)
        request = fake.accepted(fake.a_lab(), tuple(f"t{number}" for number in range(8))).model_dump_json()
        for number in range(stored + waiting):
            status = "queued" if number >= stored else "cancelled"
            store.create(Stored(f"x{number}", time.time(), request, status, graph))
        processes = []
        for number in range(workers):
            folder = Path(scratch) / f"w{number}"
            folder.mkdir()
            testbeds = [f"idle-{number}-{testbed}" for testbed in range(_TESTBEDS)]
            program = "tests.support.servers.fake_worker"
            words = (database.secret, folder, folder.name, _TTL_SECONDS, *testbeds)
            command = ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", program]
            processes.append(subprocess.Popen([*command, *map(str, words)]))
        try:
            time.sleep(_SETTLE_SECONDS)
            before, of_server = [cpu_seconds(process.pid) for process in processes], server_seconds(server)
            time.sleep(_WATCHED_SECONDS)
            after = [cpu_seconds(process.pid) for process in processes]
            spent = sum(after) - sum(before)
            served = server_seconds(server) - of_server
        finally:
            for process in processes:
                process.kill()
                process.wait()
    print(
        f"{workers} workers, {stored:,} stored, {waiting} waiting: {spent / _WATCHED_SECONDS:.3f} of a core, "
        f"the database {served / _WATCHED_SECONDS:.3f} (load {os.getloadavg()[0]:.1f})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

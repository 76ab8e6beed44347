"""A worker on fakes and a PostgreSQL server: python fake_worker.py URL FOLDER NAME TTL [TESTBED...]"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bisector.adapters.store.open_database import open_server
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.engine import executor, membership
from bisector.engine.events import Event
from bisector.engine.others import Others
from bisector.engine.services import Services
from bisector.errors import PerfbisectError
from bisector.interfaces.cli import leave
from bisector.model.stored_bisection import Stored
from bisector.schemas.database_url import database_url
from bisector.schemas.request import read_accepted
from bisector.testing.fakes import Pace
from tests.support import fake_bisection as fake

PACE = 0.03


def main() -> int:
    url, folder, name, ttl, *ours = sys.argv[1:]
    membership._TTL_SECONDS = float(ttl)
    database = open_server(database_url(url))
    store, coordinator, lab = SqlStore(database), SqlCoordinator(database), fake.a_lab()

    def mine(wanted: Sequence[str]) -> list[str]:
        return [bed for bed in wanted if bed in ours]

    def open_(stored: Stored, stop: threading.Event) -> Services:
        pace = Pace(PACE, PACE, PACE)
        beds = tuple(mine(read_accepted(stored.request).testbeds))
        services = fake.services(
            lab,
            Path(folder),
            store=store,
            testbeds=beds,
            pace=pace,
        )
        return replace(services, coordinator=coordinator, stop=stop)

    def tell(bisection: str, event: Event) -> None:
        print(f"{bisection} {event.kind} {event.text}", flush=True)

    others = Others(lambda summary: mine(summary.testbeds), open_, tell, lambda bisection: None)
    try:
        executor.serve(
            store,
            Path(folder),
            others,
            threading.Event(),
            until_idle=False,
            coordinator=coordinator,
            name=name,
        )
    except PerfbisectError as error:
        print(f"{type(error).__name__}: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    leave(main())

"""Fixtures for tests of every kind. Each run ends with what was skipped and why (-ra in pyproject.toml)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer

    from bisector.schemas.database_url import DatabaseUrl
    from tests.scheduling import MachineTestsTogether
    from tests.support.command_line import Bench
    from tests.support.servers.postgres import Server

# No property is a matter of time: on a busy machine a deadline would fail it.
hypothesis.settings.register_profile("perfbisect", deadline=None)
hypothesis.settings.load_profile("perfbisect")


# The width of whoever started the tests would be that of every table; pytest-xdist sets it for its processes.
os.environ.pop("COLUMNS", None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> MachineTestsTogether:
    """Share tests out among the processes of `-n`."""
    from tests.scheduling import MachineTestsTogether

    return MachineTestsTogether(config, log)


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the locks of these tests and their programs apart from those of other perfbisects."""
    os.environ["PERFBISECT_LOCK_DIR"] = str(tmp_path_factory.mktemp("locks"))


@pytest.fixture(autouse=True)
def no_mark_is_kept_afterwards() -> Iterator[None]:
    """Refuse a thread that keeps a mark on a machine after its test: it would mark that of the next one."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("mark "):
            thread.join(5)
            assert not thread.is_alive(), "the fixture 'marks_end' ends it"


@pytest.fixture
def marks_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the threads that keep the marks of a test's machines."""
    from bisector.adapters.machine.mark_keeper import MarkKeeper

    keepers: list[MarkKeeper] = []
    take = MarkKeeper.take

    def recorded(keeper: MarkKeeper, run_seconds: float) -> bool:
        keepers.append(keeper)
        return take(keeper, run_seconds)

    monkeypatch.setattr(MarkKeeper, "take", recorded)
    yield
    for keeper in keepers:
        keeper.end()


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in tmp_path, with perfbisect's state and cache below it, and return it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PERFBISECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFBISECT_HEALTH_CHECKS", "never")  # a worker's would build and boot real kernels
    return tmp_path


@pytest.fixture
def bench(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Put fakes behind the command line."""
    from tests.support.command_line import Bench

    yield Bench(own_folders, monkeypatch)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server, which other tests of this process use too."""
    from tests.support.servers import postgres

    if postgres.programs() is None:
        pytest.skip("needs PostgreSQL (apt install postgresql) and root, to run it as its user")
    with postgres.postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def session_database(postgres: Server) -> DatabaseUrl:
    """Return the address of a database with perfbisect's tables, for one test after the other."""
    from bisector.adapters.store import migration
    from bisector.adapters.store.postgres_server import PostgresServer

    url = postgres.new_database()
    server = PostgresServer(url)
    migration.upgrade(server, lambda text: None)
    server.close()
    return url


@pytest.fixture
def database_url(postgres: Server, session_database: DatabaseUrl) -> DatabaseUrl:
    """Return the address of a database with perfbisect's tables and nothing in them."""
    postgres.empty(session_database.name)
    return session_database

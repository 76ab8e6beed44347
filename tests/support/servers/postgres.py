"""A PostgreSQL server of the tests' own: in a temporary folder, on loopback, gone when their process ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bisector.schemas.database_url import DatabaseUrl
from tests.support.servers.free_port import free_port

PASSWORD = "se%ret-:/word"  # what must be escaped in an address, and never be shown
ESCAPED = "se%25ret-%3A%2Fword"


def programs() -> Path | None:
    """Return the folder of PostgreSQL's programs; None where they are not installed, or we are not root."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found and os.geteuid() == 0 else None


@dataclass
class Server:
    """One server. `start` and `stop` may be called again and again; the data stay.

    In the main thread: the server ends with the thread that started it.
    """

    programs: Path
    folder: Path
    port: int
    _process: subprocess.Popen[bytes] | None = None
    _databases: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",  # only a host that loses power would notice
            "shared_buffers": "16MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        # The server ends with this process, however that ends: SIGQUIT is its immediate shutdown.
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=QUIT"]
        self._process = subprocess.Popen(
            [*command, self.programs / "postgres", "-D", self.folder / "data", *options],
            start_new_session=True,  # signals to the group of the tests are not for it
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "log").open("ab"),
        )
        self._wait()

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres").secret, connect_timeout=5).close()
            except psycopg.OperationalError:
                assert time.monotonic() < deadline and self._process.poll() is None, self.log()
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop it at once, as a host that is switched off."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(60)
            self._process = None

    def crash(self) -> None:
        """Kill a process of the server, which then closes all connections and recovers by itself."""
        with psycopg.connect(self.url("postgres").secret) as connection:
            os.kill(connection.info.backend_pid, signal.SIGKILL)
        self._wait()

    def url(self, database: str, *, user: str = "postgres", password: str = ESCAPED) -> DatabaseUrl:
        """Return the address of a database."""
        return DatabaseUrl(f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}")

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute a statement as the superuser."""
        with psycopg.connect(self.url(database).secret, autocommit=True) as connection:
            answer = connection.execute(statement.encode())
            return answer.fetchall() if answer.description is not None else []

    def new_database(self, tablespace: str = "pg_default") -> DatabaseUrl:
        """Make an empty database of a name of its own; return its address. Takes half a second."""
        name = f"test_{len(self._databases)}"
        self._databases.append(name)
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' TABLESPACE {tablespace}")
        return self.url(name)

    def empty(self, database: str) -> None:
        """Remove all rows, but those that say which tables there are; also connections of earlier tests."""
        self.break_connections(database)
        self.execute(
            "DO $$ BEGIN EXECUTE (SELECT 'TRUNCATE ' || string_agg(tablename, ',') FROM pg_tables "
            "WHERE schemaname = 'public' AND tablename NOT IN ('about', 'alembic_version')); END $$",
            database,
        )

    def break_connections(self, database: str) -> None:
        """Close all connections to a database, as a restart of the server does."""
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")

    def log(self) -> str:
        """Return the end of the server's log."""
        return (self.folder / "log").read_text(errors="replace")[-3000:]


@contextmanager
def postgres_server() -> Iterator[Server]:
    """Run a server; takes about 3 s to make."""
    found = programs()
    assert found is not None
    folder = Path(tempfile.mkdtemp(prefix="perfbisect-postgres-"))
    server = Server(found, folder, free_port())
    try:
        shutil.chown(folder, "postgres", "postgres")
        (folder / "password").write_text(PASSWORD)
        shutil.chown(folder / "password", "postgres")
        subprocess.run(
            [
                *("runuser", "-u", "postgres", "--", found / "initdb", "-D", folder / "data", "--no-sync"),
                *("--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "--encoding=UTF8", "--locale=C"),
            ],
            check=True,
            capture_output=True,
            timeout=120,
            cwd=folder,
        )
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

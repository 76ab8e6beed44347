"""`perfbisect db`: upgrade, check, move, prune, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.store import migration
from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.adapters.store.web.sql_access import SqlAccess
from bisector.app.upkeep.database_care import Garbage
from bisector.engine.state_lock import QUEUE, lock
from bisector.interfaces.cli import run
from bisector.model.alerts import HistoryEntry
from bisector.model.decisions import Measure
from bisector.model.records import Built, Marked
from bisector.model.stored_bisection import Stored
from bisector.schemas.database_url import DatabaseUrl
from bisector.simulation.histories import linear
from tests.support import fake_bisection
from tests.support.series.alert_lab import found
from tests.support.servers.postgres import ESCAPED, PASSWORD, Server

OLD = Path(__file__).parents[3] / "adapters" / "store" / "data" / "state-2.sqlite"
"""A state of version 2: bisections with gaps between their numbers, one of them with a conclusion."""

Db = Callable[..., tuple[int, str, str]]


@pytest.fixture
def db(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> Db:
    """Runs a command of `db`; returns its exit code, stdout and stderr, in which no password may be."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["db", *arguments])
        out, err = capsys.readouterr()
        for secret in (PASSWORD, ESCAPED):
            assert secret not in out + err
        return code, out, err

    return call


@pytest.fixture
def state(own_folders: Path) -> Path:
    """The state file of the settings, of version 2."""
    (own_folders / "state").mkdir()
    return Path(shutil.copy(OLD, own_folders / "state" / "perfbisect.sqlite"))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[DatabaseUrl], DatabaseUrl]:
    """Makes an address the database of the settings."""

    def call(url: DatabaseUrl) -> DatabaseUrl:
        monkeypatch.setenv("PERFBISECT_DATABASE", url.secret)
        return url

    return call


def everything(store: SqlStore) -> list[Any]:
    return [
        (summary, store.load(summary.id), store.records(summary.id), store.decisions(summary.id))
        for summary in store.list()
    ]


def test_a_state_of_an_earlier_version_is_upgraded_when_asked(db: Db, state: Path) -> None:
    code, out, _ = db("upgrade", "--dry-run")
    assert (code, out.strip()) == (
        0,
        f"the state file {state}: version 2; to be brought to version {migration.SCHEMA_VERSION}",
    )
    assert db("upgrade") == (
        1,
        out,
        "error: nothing was changed: nobody can be asked here\ncure: say --yes\n",
    )
    with sqlite3.connect(state) as connection:
        assert connection.execute("select value from about").fetchall() == [("2",)]
    old = "the tables are of version 2, not"
    code, out, _ = db("check")
    assert (code, out) == (
        3,
        f"the state file {state}: version 2\n{old} {migration.SCHEMA_VERSION}: perfbisect db upgrade\n",
    )  # not "0 bisections": three are there
    assert json.loads(db("check", "--json")[1])["bisections"] is None
    code, out, _ = db("upgrade", "--dry-run", "--json")
    newest = migration.SCHEMA_VERSION
    assert (json.loads(out)["version"], json.loads(out)["newest"]) == (2, newest)
    code, out, _ = db("upgrade", "--yes", "--json")
    found = json.loads(out)
    assert (found["before"], found["version"]) == (2, migration.SCHEMA_VERSION)
    assert "uses version" in db("upgrade")[1]
    assert db("check") == (
        0,
        f"the state file {state}: version {migration.SCHEMA_VERSION}, 3 bisections, 73 events\n"
        "nothing is wrong\n",
        "",
    )


def test_a_server_gets_its_tables_by_upgrade_only(
    db: Db, use: Callable[[DatabaseUrl], DatabaseUrl], postgres: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    url = use(postgres.new_database())
    assert run(["list"]) == 3
    assert "cure: perfbisect db upgrade" in capsys.readouterr().err
    assert db("check")[0] == 3
    assert "without tables" in db("upgrade", "--dry-run")[1]
    assert run(["list"]) == 3
    capsys.readouterr()
    code, out, _ = db("upgrade", "--yes")
    assert code == 0 and out.endswith("the tables are made\n")
    assert db("check") == (
        0,
        f"the database {url}: version {migration.SCHEMA_VERSION}, 0 bisections, 0 events\nnothing is wrong\n",
        "",
    )
    postgres.execute("UPDATE about SET value = '3' WHERE key = 'schema'", url.name)
    assert run(["list"]) == 3
    assert "has tables of an earlier version (3)" in capsys.readouterr().err
    postgres.execute("UPDATE about SET value = '99' WHERE key = 'schema'", url.name)
    for command in (["list"], ["db", "upgrade"], ["db", "check"]):
        assert run(command) == 3
        error = capsys.readouterr().err
        assert f"the database {url} was written by a newer perfbisect (state version 99" in error


def test_a_database_that_a_worker_uses_is_left_alone(
    db: Db, use: Callable[[DatabaseUrl], DatabaseUrl], database_url: DatabaseUrl, tmp_path: Path
) -> None:
    use(database_url)
    SqlCoordinator(open_server(database_url)).register("one", "lab-1")
    code, _, err = db("move", str(tmp_path / "new.sqlite"), "--yes")
    assert code == 1 and "is used by 'lab-1'" in err and "stop the workers" in err
    assert not (tmp_path / "new.sqlite").exists()


def test_nothing_moves_into_a_database_that_a_worker_uses(
    db: Db, state: Path, database_url: DatabaseUrl
) -> None:
    SqlCoordinator(open_server(database_url)).register("one", "lab-1")
    code, _, err = db("move", database_url.secret, "--yes")
    assert code == 1 and "is used by 'lab-1'" in err
    assert not SqlStore(open_server(database_url)).list()


def test_a_move_is_asked_for_and_says_how_the_new_file_is_used(db: Db, state: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    code, out, err = db("move", str(new))
    assert (code, out) == (1, "") and "nothing was changed" in err and not new.exists()
    assert "its folder as state_dir, and no 'database'" in db("move", str(new), "--yes")[1]


def test_messages_are_counted(db: Db, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Garbage(executors=0, leases=0, reservations=0, changes=0, messages=2)
    monkeypatch.setattr("bisector.app.upkeep.database_care.find_garbage", lambda *_: found)
    assert db("prune", "--dry-run")[1].strip().endswith("0 changes, 2 messages")
    assert json.loads(db("prune", "--dry-run", "--json")[1])["messages"] == 2


def test_a_worker_that_is_dead_keeps_nobody_from_moving(db: Db, state: Path, tmp_path: Path) -> None:
    database = open_state_file(state)
    coordinator = SqlCoordinator(database)
    coordinator.register("fenced", "lab-1")
    coordinator.fence_silent(0.0)
    coordinator.register("killed", "lab-2")
    database.execute("UPDATE executors SET seen = seen - 60 WHERE id = 'killed'")
    assert db("move", str(tmp_path / "new.sqlite"), "--yes")[0] == 0


def test_a_state_file_is_not_upgraded_under_a_program_that_works_with_it(db: Db, state: Path) -> None:
    with lock(state.parent, QUEUE):
        code, _, err = db("upgrade", "--yes")
    assert code == 1 and "executes what is queued" in err and "Ctrl-C there" in err
    with sqlite3.connect(state) as connection:
        assert connection.execute("select value from about").fetchall() == [("2",)]


def test_all_moves_to_a_server_and_back(
    db: Db,
    state: Path,
    use: Callable[[DatabaseUrl], DatabaseUrl],
    postgres: Server,
    tmp_path: Path,
) -> None:
    database = open_state_file(state)
    store, coordinator = SqlStore(database), SqlCoordinator(database)
    store.append("fake-c430600c-2", Built(1, False, 1.0, failure="ü '%s' :id"))
    coordinator.set_testbed("guest", "suspect", "slow", "eve")
    alert = SqlAlerts(database).add(found(1, 2, id="a1"), HistoryEntry("perfbisect", "suspect", "ü '%s' :id"))
    history = SqlAlerts(database).history("a1")
    coordinator.register("one", "w")
    assert coordinator.acquire("guest", "one") is not None
    coordinator.unregister("one")
    before = everything(store)
    url = postgres.new_database()
    code, out, err = db("move", url.secret, "--yes")
    assert code == 0, err
    assert [line.split() for line in out.splitlines()[1:-1] if line.startswith(("events", "bise"))] == [
        ["bisections", "3"],
        ["events", "74"],
    ]
    assert f'database = "{url}"' in out
    use(url)
    there = open_server(url)
    assert everything(SqlStore(there)) == before
    assert [t.name for t in SqlCoordinator(there).testbeds()] == ["guest"]
    assert (SqlAlerts(there).load("a1"), SqlAlerts(there).history("a1")) == (alert, history)
    SqlCoordinator(there).register("two", "w")
    lease = SqlCoordinator(there).acquire("guest", "two")
    assert lease is not None and lease.epoch == 2, "epochs go on"
    SqlCoordinator(there).unregister("two")
    assert db("check")[0] == 0
    last = before[0][2][-1][0] if before[0][0].id == "fake-c430600c-2" else None
    assert SqlStore(there).append("fake-c430600c-2", Built(2, True, 1.0)) > (last or 0)
    back = tmp_path / "back" / "perfbisect.sqlite"
    code, out, _ = db("move", str(back), "--yes", "--json")
    assert code == 0
    assert json.loads(out)["rows"]["events"] == 75 and json.loads(out)["to"] == str(back)
    assert everything(SqlStore(open_state_file(back))) == everything(SqlStore(there))
    code, _, err = db("move", str(back), "--yes")
    assert code == 1 and "is not empty" in err and "nothing was changed" in err
    assert everything(SqlStore(open_state_file(back))) == everything(SqlStore(there)), "it is still there"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("mysql://x/y", "must be postgresql://"),
        ("postgresql://eve:hun@ter2@h/x", "must be postgresql://"),
        ("state/perfbisect.sqlite", "is the one that is used already"),
    ],
)
def test_a_wrong_target_is_refused(db: Db, state: Path, target: str, said: str) -> None:
    code, _, err = db("move", target, "--yes")
    assert code == 1 and said in err and "cure:" in err
    assert "ter2" not in err


def test_what_arrives_otherwise_undoes_the_move(
    db: Db, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bisector.adapters.store import copy_tables

    checksum = copy_tables._checksum

    def wrong(connection: Any, table: Any) -> tuple[int, str]:
        count, text = checksum(connection, table)
        return (count, text) if "back" not in str(connection.engine.url) else (count - 1, text)

    monkeypatch.setattr(copy_tables, "_checksum", wrong)
    code, _, err = db("move", str(tmp_path / "back.sqlite"), "--yes")
    assert code == 3 and "is not what was sent" in err
    assert not (tmp_path / "back.sqlite").exists()


def test_a_move_that_is_interrupted_leaves_no_new_file(
    db: Db, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bisector.adapters.store import copy_tables

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(copy_tables, "copy_tables", interrupt)
    assert db("move", str(tmp_path / "back.sqlite"), "--yes")[0] == 130
    assert not list(tmp_path.glob("back.sqlite*"))


def damage(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "delete from events where sequence = 2 and bisection = 'one'",
            "'one' lacks 1 of its events up to number 4",
        ),
        ("update graphs set body = x'00'", "is damaged: its checksum is another one"),
        ("update bisections set conclusion = '{'", "the bisection 'one': a stored record cannot be read"),
        ("update bisections set created = 'x'", "the bisection 'one' was made at no time: x"),
        ("update bisections set request = '[['", "the bisection 'one': the request of a stored bisection"),
        (
            "update bisections set request = json_set(request, '$.new_key', 1)",
            "cannot be read: new_key: is not a known key",
        ),
        ("update bisections set request = json_remove(request, '$.goal.metric')", "'Goal' cannot be read"),
        (
            'update events set body = \'{"type": "Measure"}\' where sequence = 2',
            "event 2 of the bisection 'one': the stored value of type 'Measure' cannot be read",
        ),
        (
            "update events set body = '[' where sequence = 4",
            "event 4 of the bisection 'one': a stored record",
        ),
        ("delete from graphs", "the bisection 'one': its commit graph is not there"),
        ("delete from bisections", "there are events of a bisection 'one', which is not there"),
    ],
)
def test_what_is_damaged_is_found(db: Db, own_folders: Path, statement: str, said: str) -> None:
    path = own_folders / "state" / "perfbisect.sqlite"
    store = SqlStore(open_state_file(path))
    request = fake_bisection.accepted(fake_bisection.a_lab()).model_dump_json()
    store.create(Stored("one", 1.0, request, "new", linear(3)))
    for _ in range(3):
        store.decide("one", Measure(1, 1, "verify", "why"))
    store.append("one", Marked(1, "good"))
    assert db("check")[0] == 0
    damage(path, statement)
    code, out, _ = db("check")
    assert code == 3 and said in out
    assert json.loads(db("check", "--json")[1])["problems"]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_garbage_goes_and_the_rest_stays(
    db: Db,
    own_folders: Path,
    kind: str,
    request: pytest.FixtureRequest,
    use: Callable[[DatabaseUrl], DatabaseUrl],
) -> None:
    if kind == "postgresql":
        database = open_server(use(request.getfixturevalue("database_url")))
    else:
        database = open_state_file(own_folders / "state" / "perfbisect.sqlite")
    assert db("prune", "--dry-run") == (
        0,
        "0 executors, 0 leases, 0 reservations, 0 changes, 0 messages\n",
        "",
    )
    coordinator = SqlCoordinator(database)
    now = coordinator.now()
    coordinator.register("dead", "w")
    coordinator.register("died today", "v")
    coordinator.fence_silent(0.0)
    coordinator.register("alive", "w")
    coordinator.reserve("guest", "eve", now + 1000)
    coordinator.reserve("guest", "eve", now + 2000, now + 1500)
    month = 40 * 86400.0
    access = SqlAccess(database)
    for age in (370, 360, 0):
        access.record("ann", "cancel", f"{age} days", "")
        database.execute(
            "UPDATE changes SET at = at - :s WHERE target = :t", s=age * 86400.0, t=f"{age} days"
        )
    database.execute("UPDATE executors SET seen = seen - :s WHERE id = 'dead'", s=month)
    for resource, unused in (("old", month), ("held", month), ("young", 86400.0)):
        lease = coordinator.acquire(resource, "alive")
        assert lease is not None
        if resource != "held":
            coordinator.release(lease)
        database.execute("UPDATE leases SET used = used - :s WHERE resource = :r", s=unused, r=resource)
    database.execute("UPDATE reservations SET ends = ends - :s WHERE ends < :end", s=month, end=now + 1500)
    what = "1 executor, 1 lease, 1 reservation, 1 change, 0 messages\n"
    assert db("prune", "--dry-run") == (0, what, "")
    assert db("prune") == (1, what, "error: nothing was changed: nobody can be asked here\ncure: say --yes\n")
    code, out, _ = db("prune", "--yes", "--json")
    found = json.loads(out)
    assert [code, *(found[key] for key in ("executors", "leases", "reservations", "changes"))] == [
        0,
        1,
        1,
        1,
        1,
    ]
    assert [lease.resource for lease in coordinator.leases()] == ["held"]
    again = coordinator.acquire("young", "alive")
    assert again is not None and again.epoch == 2, "what was used yesterday is remembered"
    assert db("prune") == (0, "0 executors, 0 leases, 0 reservations, 0 changes, 0 messages\n", "")
    assert {e.id for e in coordinator.executors()} == {"alive", "died today"}
    assert [change.target for change in access.changes(9)] == ["0 days", "360 days"]
    assert len(coordinator.reservations()) == 1

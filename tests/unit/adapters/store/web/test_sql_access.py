"""Tokens in a database, SQLite and PostgreSQL: valid until revoked or expired, and never readable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.database import Database
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.web.sql_access import SqlAccess
from bisector.errors import RequestError


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "postgresql":
        return open_server(request.getfixturevalue("database_url"))
    return open_state_file(tmp_path / "perfbisect.sqlite")


@pytest.fixture
def access(database: Database) -> SqlAccess:
    return SqlAccess(database)


def test_the_secret_is_not_in_the_database(access: SqlAccess, database: Database, tmp_path: Path) -> None:
    access.add("a secret", "ann", "read", None)
    found = access.find("a secret")
    assert found is not None and (found.name, found.role, found.expires) == ("ann", "read", None)
    assert access.find("A secret") is None
    (row,) = database.execute("SELECT hash, name, role FROM tokens")
    assert row["name"] == "ann" and "a secret" not in (row["hash"], row["role"])
    assert all(b"a secret" not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_name_is_free_again_once_its_token_is_revoked(access: SqlAccess) -> None:
    access.add("one", "ann", "read", None)
    with pytest.raises(RequestError, match="there is a token 'ann' already"):
        access.add("two", "ann", "admin", None)
    assert access.revoke("ann").revoked is not None
    assert access.find("one") is None
    with pytest.raises(RequestError, match="no token 'ann' that could be revoked"):
        access.revoke("ann")
    access.add("two", "ann", "admin", 60.0)
    assert access.find("one") is None
    found = access.find("two")
    assert (
        found is not None
        and found.role == "admin"
        and found.expires == pytest.approx(found.created + 60, abs=1)
    )
    assert [token.role for token in access.tokens()] == ["read", "admin"]
    with pytest.raises(RequestError, match="did you mean 'ann'"):
        access.revoke("anne")


def test_a_token_in_use_is_valid_until_it_is_revoked_or_expires(
    access: SqlAccess, database: Database
) -> None:
    first, lasting = access.add("one", "ann", "read", None), access.add("two", "bob", "read", 60.0)
    assert access.is_valid(first) and access.is_valid(lasting)
    access.revoke("ann")
    database.execute("UPDATE tokens SET created = created - 1 WHERE name = 'ann'")
    again = access.add("three", "ann", "read", None)
    assert not access.is_valid(replace(first, created=first.created - 1)) and access.is_valid(again)
    database.execute("UPDATE tokens SET expires = 5.0 WHERE name = 'bob'")
    assert not access.is_valid(lasting)


def test_the_last_use_is_known_to_the_minute_without_a_write_at_each(
    access: SqlAccess, database: Database
) -> None:
    access.add("one", "ann", "read", None)
    access.find("one")
    (token,) = access.tokens()
    assert token.last_used is not None
    database.execute("UPDATE tokens SET last_used = last_used - 45")
    access.find("one")
    assert access.tokens()[0].last_used == pytest.approx(token.last_used - 45, abs=1)
    database.execute("UPDATE tokens SET last_used = last_used - 16")
    access.find("one")
    assert access.tokens()[0].last_used == pytest.approx(token.last_used, abs=20)


def test_changes_are_told_newest_first(access: SqlAccess) -> None:
    for number in range(3):
        access.record("ann", "cancel", f"b{number}", "")
    assert [change.target for change in access.changes(2)] == ["b2", "b1"]


def test_a_session_ends_with_its_time_its_token_or_at_a_word(access: SqlAccess, database: Database) -> None:
    for name in ("ann", "bob", "eve"):
        access.add(f"token of {name}", name, "operate", 3600.0)
        access.open_session(f"token of {name}", f"session of {name}", 60.0)
    found = access.find_session("session of ann")
    assert found is not None and (found.name, found.role) == ("ann", "operate")
    assert access.find_session("token of ann") is None
    assert "session of" not in str(database.execute("SELECT * FROM sessions"))
    access.revoke("ann")
    assert access.find_session("session of ann") is None
    database.execute("UPDATE tokens SET expires = 5.0 WHERE name = 'bob'")
    assert access.find_session("session of bob") is None
    access.close_session("session of eve")
    assert access.find_session("session of eve") is None
    access.open_session("token of eve", "short", 60.0)
    database.execute("UPDATE sessions SET expires = 5.0")
    assert access.find_session("short") is None
    access.open_session("token of eve", "another", 60.0)
    (left,) = database.execute("SELECT count(*) AS number FROM sessions")
    assert left["number"] == 1

"""Tokens, the sessions of browsers and the changes made with them, in a SQL database.

Secrets are kept as their SHA-256 only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bisector.adapters.store.database import Constrained, Database, Row
from bisector.errors import RequestError, nearest
from bisector.model.access import AccessChange, Role, Token

_USED_SECONDS = 60.0
"""`last_used` is not written more often: a client that polls would write at each request."""
_ALL = (
    "SELECT t.hash, t.name, t.role, t.created, t.expires, t.last_used, t.revoked, seconds_now() AS now "
    "FROM tokens t"
)
_VALID = "t.revoked IS NULL AND coalesce(t.expires, seconds_now() + 1) > seconds_now()"


class SqlAccess:
    """Who may use the web server, in the database of the bisections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, secret: str, name: str, role: Role, seconds: float | None) -> Token:
        """Add a token that is valid for so many seconds, None: for good.

        Raises RequestError: a token of that name is not revoked.
        """
        try:
            (row,) = self._database.execute(
                "INSERT INTO tokens (hash, name, role, created, expires) VALUES (:hash, :name, :role, "
                "seconds_now(), seconds_now() + :seconds) "
                "RETURNING name, role, created, expires, last_used, revoked",
                hash=_hash(secret),
                name=name,
                role=role,
                seconds=seconds,
            )
        except Constrained as error:
            raise RequestError(
                f"there is a token '{name}' already",
                cure=f"choose another name, or revoke that one: perfbisect token revoke {name}",
            ) from error
        return _token(row)

    def find(self, secret: str) -> Token | None:
        """Return the valid token of a secret, which counts as used now; None for any other secret."""
        rows = self._database.execute(
            f"{_ALL} WHERE t.hash = :hash AND {_VALID}",
            hash=_hash(secret),
        )
        return self._used(rows[0]) if rows else None

    def open_session(self, token: str, session: str, seconds: float) -> None:
        """Begin a browser's session of so many seconds with a valid token. token, session: their secrets.

        Sessions that have expired are forgotten.
        """
        self._database.execute("DELETE FROM sessions WHERE expires <= seconds_now()")
        self._database.execute(
            "INSERT INTO sessions (hash, token, expires) VALUES (:hash, :token, seconds_now() + :seconds)",
            hash=_hash(session),
            token=_hash(token),
            seconds=seconds,
        )

    def find_session(self, session: str) -> Token | None:
        """Return the token with which a session was begun; None once one of the two is valid no longer."""
        rows = self._database.execute(
            f"{_ALL} JOIN sessions s ON s.token = t.hash "
            f"WHERE s.hash = :hash AND s.expires > seconds_now() AND {_VALID}",
            hash=_hash(session),
        )
        return self._used(rows[0]) if rows else None

    def close_session(self, session: str) -> None:
        """End a session; does nothing for one that is not known."""
        self._database.execute("DELETE FROM sessions WHERE hash = :hash", hash=_hash(session))

    def _used(self, row: Row) -> Token:
        found = _token(row)
        if found.last_used is None or row["now"] - found.last_used >= _USED_SECONDS:
            self._database.execute(
                "UPDATE tokens SET last_used = seconds_now() WHERE hash = :hash", hash=row["hash"]
            )
        return found

    def is_valid(self, token: Token) -> bool:
        """Return whether a token that was found is neither revoked nor expired now."""
        rows = self._database.execute(
            f"{_ALL} WHERE t.name = :name AND t.created = :created AND {_VALID}",
            name=token.name,
            created=token.created,
        )
        return bool(rows)

    def tokens(self) -> Sequence[Token]:
        """Return all tokens, revoked and expired ones too, by name."""
        return [_token(row) for row in self._database.execute(f"{_ALL} ORDER BY t.name, t.created")]

    def revoke(self, name: str) -> Token:
        """Let a token be valid no longer. Raises RequestError: no valid one has that name."""
        rows = self._database.execute(
            "UPDATE tokens SET revoked = seconds_now() WHERE name = :name AND revoked IS NULL "
            "RETURNING name, role, created, expires, last_used, revoked",
            name=name,
        )
        if not rows:
            known = [token.name for token in self.tokens() if token.revoked is None]
            raise RequestError(
                f"there is no token '{name}' that could be revoked{nearest(name, known)}",
                cure="'perfbisect token list' shows them",
            )
        return _token(rows[0])

    def record(self, who: str, what: str, target: str, details: str = "") -> None:
        """Write down who changed what."""
        self._database.execute(
            "INSERT INTO changes (at, who, what, target, details) "
            "VALUES (seconds_now(), :who, :what, :target, :details)",
            who=who,
            what=what,
            target=target,
            details=details,
        )

    def changes(self, limit: int) -> Sequence[AccessChange]:
        """Return the latest changes, newest first."""
        rows = self._database.execute(
            "SELECT at, who, what, target, details FROM changes ORDER BY at DESC LIMIT :limit", limit=limit
        )
        return [AccessChange(r["at"], r["who"], r["what"], r["target"], r["details"]) for r in rows]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Row) -> Token:
    return Token(row["name"], row["role"], row["created"], row["expires"], row["last_used"], row["revoked"])

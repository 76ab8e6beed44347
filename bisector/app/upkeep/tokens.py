"""Use cases of `perfbisect token`: who may use the web server, and as what."""

from __future__ import annotations

import re
import secrets
from typing import Any

from bisector.adapters.store.web.sql_access import SqlAccess
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.model.access import Role, Token
from bisector.schemas.web_settings import NAME

PREFIX = "pbt_"
"""Begins every token, so that people and scanners of published text recognise one."""
_RANDOM_BYTES = 32
_FORM = re.compile(PREFIX + "[A-Za-z0-9_-]{43}")
"""Of every token: 32 bytes are 43 characters of base64."""
_DAY_SECONDS = 86400.0
SESSION_SECONDS = 12 * 3600.0
"""How long a browser's session lasts: a working day, so that one left open does not stay usable for good."""


def access_of(wiring: Wiring) -> SqlAccess:
    """Return who may use the web server, and what they changed, in the database of the bisections."""
    return SqlAccess(wiring.database)


def add(wiring: Wiring, name: str, role: Role, days: float | None, by: str) -> tuple[Token, str]:
    """Add a token; return it with its secret, which is kept nowhere. Raises RequestError.

    days: it is valid for, None: for good. by: who adds it.
    """
    if NAME.fullmatch(name) is None:
        raise RequestError(
            f"'{name[:100]}' is not a valid token name",
            cure="use letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
        )
    secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    token = access_of(wiring).add(secret, name, role, None if days is None else days * _DAY_SECONDS)
    access_of(wiring).record(by, "token add", name, role)
    return token, secret


def find(wiring: Wiring, secret: str) -> Token | None:
    """Return the valid token of a secret; what has not the form of one is not looked for in the database."""
    return access_of(wiring).find(secret) if _FORM.fullmatch(secret) else None


def log_in(wiring: Wiring, secret: str) -> str:
    """Begin a browser's session with the secret of a valid token; return the session's own secret."""
    session = secrets.token_urlsafe(_RANDOM_BYTES)
    access_of(wiring).open_session(secret, session, SESSION_SECONDS)
    return session


def revoke(wiring: Wiring, name: str, by: str) -> Token:
    """Let a token be valid no longer. Raises RequestError: there is none."""
    token = access_of(wiring).revoke(name)
    access_of(wiring).record(by, "token revoke", name)
    return token


def row(token: Token, now: float) -> dict[str, Any]:
    """Return a token as JSON values. now: the database's time."""
    expired = token.expires is not None and token.expires <= now
    return {
        "name": token.name,
        "role": token.role,
        "state": "revoked" if token.revoked is not None else "expired" if expired else "valid",
        "created": token.created,
        "expires": token.expires,
        "last_used": token.last_used,
        "revoked": token.revoked,
    }

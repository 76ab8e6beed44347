"""Access over the network: roles, their tokens, and the log of changes.

Times are seconds since the epoch by the database's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Role = Literal["read", "operate", "admin", "worker"]
ROLES: tuple[Role, ...] = get_args(Role)
_LADDER: tuple[Role, ...] = ("read", "operate", "admin")
"""Each may do what those before it may. A worker may only put and take artefacts, and nobody else may: they
decide what boots, as root, on the lab's machines."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token without its secret, of which the database has the SHA-256 only.

    name: of the person or program that has it; expires: None for one without an end; revoked: since when.
    """

    name: str
    role: Role
    created: float
    expires: float | None
    last_used: float | None
    revoked: float | None


@dataclass(frozen=True, slots=True)
class AccessChange:
    """Who changed what over the network, or changed who may. what: the operation; target: what it changed."""

    at: float
    who: str
    what: str
    target: str
    details: str


def may(role: Role, needed: Role) -> bool:
    """Return whether a role may do what another one is needed for."""
    if role in _LADDER and needed in _LADDER:
        return _LADDER.index(role) >= _LADDER.index(needed)
    return role == needed

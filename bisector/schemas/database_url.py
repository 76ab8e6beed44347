"""Where the database of bisections is. A password in the address is never shown."""

from __future__ import annotations

import re
from typing import Any

_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:@/?#\s]+)(?::[^:@/?#\s]*)?@)?(?P<host>[^@/?#\s]*)/(?P<name>[^@/?#\s]+)"
    r"(?:\?[^#\s]*)?"
)


class DatabaseUrl:
    """The address of a PostgreSQL database. As text it has neither a password nor options.

    secret: all of it, for libpq; where it has no password, libpq takes that of PGPASSWORD or of ~/.pgpass.
    name: the database's.
    """

    __slots__ = ("_shown", "name", "secret")

    def __init__(self, secret: str) -> None:
        """Raise ValueError, without the text in it, where this is no address."""
        found = _ADDRESS.fullmatch(secret)
        if found is None:
            raise ValueError(
                "must be postgresql://USER@HOST/NAME or postgresql://USER:PASSWORD@HOST:PORT/NAME; "
                "characters such as @ : / ? # of a password are written %40 %3A %2F %3F %23"
            )
        self.secret, self.name = secret, found["name"]
        user = f"{found['user']}@" if found["user"] else ""
        self._shown = f"postgresql://{user}{found['host']}/{found['name']}"

    def __str__(self) -> str:
        return self._shown

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatabaseUrl) and other.secret == self.secret

    def __hash__(self) -> int:
        return hash(self.secret)

    @property
    def for_sqlalchemy(self) -> str:
        """Return the address with the driver's name, the password and the encoding of all connections."""
        address = self.secret.partition("://")[2]
        return f"postgresql+psycopg://{address}{'&' if '?' in address else '?'}client_encoding=UTF8"


def database_url(value: Any) -> DatabaseUrl:  # noqa: ANN401 - whatever a settings file has
    """Read a setting. Raises ValueError, without the value in it."""
    if isinstance(value, DatabaseUrl):
        return value
    if not isinstance(value, str):
        raise ValueError("must be text")
    return DatabaseUrl(value)

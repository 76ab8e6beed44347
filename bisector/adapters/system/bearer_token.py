"""The token that this host gives to a perfbisect server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bisector.adapters.system.secret_file import read_secret
from bisector.errors import RequestError
from bisector.schemas.settings import TOKEN_VARIABLE


def read_token(
    file: Path | None,
    environment: Mapping[str, str] | None = None,
    *,
    missing: str = "a server is named, and there is no token for it",
    role: str = "worker",
) -> str:
    """Return the token of PERFBISECT_TOKEN, else of a file that only its owner reads.

    missing: what is said where there is none; role: the one that it must have, '' where several will do.
    Raises RequestError, without the token in it: there is none, or others can read the file.
    """
    token, where = read_secret(TOKEN_VARIABLE, file, "token_file", environment)
    if not token:
        raise RequestError(
            missing,
            cure=f"{TOKEN_VARIABLE}, or a file of mode 600 that 'token_file' in perfbisect.toml names; the "
            f"server's administrator makes one: perfbisect token add NAME{f' --role {role}' if role else ''}",
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise RequestError(
            f"{where}: that is no token",
            cure="ask the server's administrator",
        )
    return token

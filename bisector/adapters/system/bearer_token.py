"""The token that this host gives to a perfbisect server."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bisector.errors import RequestError
from bisector.schemas.settings import TOKEN_VARIABLE

MAX_TOKEN_BYTES = 1024


def read_token(file: Path | None, environment: Mapping[str, str] | None = None) -> str:
    """Return the token of PERFBISECT_TOKEN, else of a file that only its owner reads.

    Raises RequestError, without the token in it: there is none, or others can read the file.
    """
    variables = os.environ if environment is None else environment
    token, where = variables.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    if not token and file is not None:
        where = f"token_file {file}"
        try:
            if stat.S_IMODE(file.stat().st_mode) & 0o077:
                raise RequestError(f"{where}: others can read it", cure=f"chmod 600 {file}")
            with file.open("rb") as opened:
                token = opened.read(MAX_TOKEN_BYTES).decode("ascii", "replace").strip()
        except OSError as error:
            raise RequestError(f"{where}: {error.strerror}", cure="name the file with the token") from error
    if not token:
        raise RequestError(
            "a server is named, and there is no token for it",
            cure=f"{TOKEN_VARIABLE}, or token_file in perfbisect.toml; its administrator makes one: "
            "perfbisect token add NAME --role worker",
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise RequestError(
            f"{where}: that is no token",
            cure="ask the server's administrator",
        )
    return token

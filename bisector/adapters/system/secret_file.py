"""Secrets of this host: from a variable, else from a file that only its owner reads."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from bisector.errors import RequestError

MAX_SECRET_BYTES = 1024
"""How much of a file is read: passwords and tokens are far shorter, and the file may be any. Chosen."""


def read_secret(
    variable: str,
    file: Path | None,
    key: str,
    environment: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Return a secret, and where it is from; '' where there is none. key: of the setting that names the file.

    Raises RequestError, without the secret in it: the file cannot be read, or others can.
    """
    secret = (os.environ if environment is None else environment).get(variable, "").strip()
    if secret or file is None:
        return secret, variable
    where = f"{key} {file}"
    try:
        with file.open("rb") as opened:
            if stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077:
                raise RequestError(f"{where}: others can read it", cure=f"chmod 600 {file}")
            return opened.read(MAX_SECRET_BYTES).decode("utf-8", "replace").strip(), where
    except OSError as error:
        what = "token" if key == "token_file" else "secret"
        raise RequestError(f"{where}: {error.strerror}", cure=f"name the file with the {what}") from error


def need_password(variable: str | None, file: Path | None) -> str:
    """Return the password of a variable or file that must have one. Raises RequestError as `read_secret`."""
    password, where = read_secret(variable or "", file, "password_file")
    if not password:
        raise RequestError(
            f"{where}: there is no password" if file is not None else f"the variable {variable} is not set",
            cure=f"write the password into {file or 'it, in the environment of perfbisect'}",
        )
    return password

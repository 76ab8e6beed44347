"""The base of a configuration: a make target of the tree, this machine's own configuration, or a file.

A configuration that is not a make target comes from another release than the commit. Options that it lacks
get the defaults of the commit (`rest = "default"`). Options that the commit does not have are dropped.
"""

from __future__ import annotations

import platform
import re
import zlib
from pathlib import Path

from bisector.errors import RequestError
from bisector.schemas.documents.document import expand_user, read_bytes, shortened

RUNNING = "running"
"""As a base: the configuration of the kernel that this machine runs."""

_TARGET = re.compile(r"[a-z0-9_]+config")
"""A target of make, such as 'defconfig'."""
_LINE = re.compile(r"CONFIG_[A-Za-z0-9_]+=\S.*|# CONFIG_[A-Za-z0-9_]+ is not set")

_MAX_BYTES = 4 << 20
"""Of a .config, also unpacked: the largest that a distribution ships have 300 kB."""

_PROC = Path("/proc/config.gz")
_BOOT = Path("/boot")


def base_config(base: str, configs: Path, where: object) -> str:
    """Return the option lines of a base; '' for a target of make, which the tree itself makes.

    configs: the folder that relative paths start from. where: names the recipe in errors (RequestError).
    """
    if _TARGET.fullmatch(base):
        return ""
    file = _running(where) if base == RUNNING else configs / base
    try:
        file = file if base == RUNNING else configs / expand_user(base)
        data = read_bytes(file, _MAX_BYTES)
        packed = data[:2] == b"\x1f\x8b"
        text = (_unpack(data) if packed else data).decode("utf-8", "replace")
    except (RequestError, zlib.error) as error:
        raise RequestError(
            f"{where}: the base '{shortened(base)}' cannot be read",
            details=error.message if isinstance(error, RequestError) else f"{file}: damaged",
            cure=f"name a make target ('defconfig'), '{RUNNING}', or a .config file (below {configs})",
        ) from error
    lines = [line for line in map(str.strip, text.splitlines()) if _LINE.fullmatch(line)]
    if not lines:
        raise RequestError(
            f"{where}: the base {file} contains no option",
            cure="give a kernel's .config: lines as CONFIG_NAME=y",
        )
    return "".join(f"{line}\n" for line in lines)


def _unpack(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(data, _MAX_BYTES)  # 31: with gzip's header


def _running(where: object) -> Path:
    boot = _BOOT / f"config-{platform.release()}"
    for file in (_PROC, boot):
        if file.exists():
            return file
    raise RequestError(
        f"{where}: the configuration of this machine's kernel is not to be found",
        details=f"neither {_PROC} nor {boot} exists",
        cure="give a .config file as base",
    )

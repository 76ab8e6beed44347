"""Paths behind `--`: whoever stands inside the work tree names them from there, as git takes them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from bisector.schemas.documents.document import exists

_MAGIC = re.compile(r":\((?P<words>[^)]*)\)|:(?P<signs>[!^/]+):?")
"""What a path of git's may begin with: ':(exclude)x', ':!x', ':/x'."""


def from_top(paths: Sequence[str], repo: Path) -> tuple[str, ...]:
    """Return the paths as they are from the top of the work tree; unchanged from outside of that.

    repo: a folder of the repository that is searched.
    """
    here = Path.cwd()
    top = _top(here)
    if top is None or here == top or _top(repo.resolve()) != top:
        return tuple(paths)
    return tuple(_joined(str(here.relative_to(top)), path) for path in paths)


def _top(folder: Path) -> Path | None:
    return next((one for one in (folder, *folder.parents) if exists(one / ".git")), None)


def _joined(prefix: str, path: str) -> str:
    magic = _MAGIC.match(path)
    if magic is None:
        return os.path.normpath(Path(prefix, path))
    if "top" in (magic["words"] or "").split(",") or "/" in (magic["signs"] or ""):
        return path
    return magic[0] + os.path.normpath(Path(prefix, path[magic.end() :]))

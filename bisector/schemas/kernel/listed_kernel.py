"""One kernel of a list (`--kernels`), as it is kept with a bisection."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bisector.schemas.loading import Spec


class ListedKernel(Spec):
    """What a list names in one line.

    id: stands where a commit's id stands, see `model.commit_graph`; files: absolute paths of its packages, or
    of one folder; sums: SHA-256 of each; package: names of the packages, or the folder's; version: of the
    package, '' of a folder; release, built: what `uname -r` and `uname -v` must say; by: who made the
    package; when: seconds since the epoch, of the first file.
    """

    id: str
    files: tuple[str, ...]
    sums: tuple[str, ...]
    package: str
    version: str
    release: str
    built: str
    by: str = ""
    when: float = 0.0


def content_sum(sums: Sequence[str]) -> str:
    """Return the checksum of a kernel's files together (64 hex digits). sums: that of each."""
    return hashlib.sha256("\n".join(sums).encode()).hexdigest()

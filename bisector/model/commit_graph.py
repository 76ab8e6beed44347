"""The history under search. Commits are indices; names of commits belong to the edges of the program.

A search over a list of kernels has ids of the form NAME@CHECKSUM in place of commits, so that whoever prints
an id prints the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_DIGITS = 12
"""As kernel developers write commits: enough to tell apart those of any tree."""

_FULL_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
"""SHA-1 or SHA-256."""

_CHECKSUM_DIGITS = 16
"""64 bits of a checksum: two kernels of one name in a list of thousands differ in them."""

_BETWEEN = "@"
"""No version of a package and no commit id has it."""


@dataclass(frozen=True, slots=True)
class CommitGraph:
    """The history under search, topologically sorted: every parent has a smaller index than its child.

    Nodes are the candidates (reachable from bad, not from good) and the boundary: good itself, the parents of
    candidates that are not candidates (fork points), and merge bases. `parents[i]` holds only nodes of
    this graph; a boundary node has none (its history is outside), a root commit has none either.

    shas: full commit ids; candidate: True where the commit may be the culprit; good, bad: indices;
    merge_bases: empty when good is an ancestor of bad; untestable: index -> reason, known before any trial
    (not Linux, `--skip`); weights: prior weight of a commit, missing means 1.
    """

    shas: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    candidate: tuple[bool, ...]
    good: int
    bad: int
    merge_bases: tuple[int, ...] = ()
    untestable: Mapping[int, str] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)


def short_name(sha: str, digits: int = _DIGITS) -> str:
    """Return what to call a commit, or a listed kernel, given its id. digits: of a commit's."""
    name, between, _ = sha.partition(_BETWEEN)
    return name if between else sha[:digits]


def as_written(name: str) -> str:
    """Return a name as people write it: of a full commit id the beginning."""
    return short_name(name) if _FULL_ID.fullmatch(name) else name


def described(sha: str, subject: str) -> str:
    """Return '1234567890ab ("subject")'. A listed folder is called by its name alone: that is its subject."""
    name = short_name(sha)
    return f'{name} ("{subject}")' if subject not in ("", name) else name


def is_listed(sha: str) -> bool:
    """Return whether an id is of a listed kernel, not of a commit."""
    return _BETWEEN in sha


def listed_id(name: str, checksum: str) -> str:
    """Return the id of a listed kernel. name: without '@'; checksum: of its content."""
    return f"{name}{_BETWEEN}{checksum[:_CHECKSUM_DIGITS]}"

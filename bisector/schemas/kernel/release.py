"""Releases of Linux, and rows of tables that hold for some of them.

The age of a commit is the release that its tree says it is (the top Makefile). That is what the tags
reachable from it say as well, since a tag's commit writes its number there and everything after it inherits
that; but it needs no tags in the user's clone, and milliseconds instead of a walk over half of the history.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import Field, field_validator

from bisector.errors import RequestError
from bisector.schemas.loading import Spec

_TAG = re.compile(r"v(\d+)\.(\d+)(?:\.(\d+))?(?:\.\d+)?(?:-rc(\d+))?")
_MAKEFILE = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", re.MULTILINE)
_FINAL = 1 << 16
"""In the place of the number of a release candidate: a release is younger than all of its candidates."""


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release or release candidate; they compare by age: v2.6.30-rc2 < v2.6.30 < v2.6.31-rc1 < v3.0."""

    major: int
    minor: int
    sub: int = 0
    candidate: int = _FINAL

    @classmethod
    def parse(cls, tag: str) -> Release:
        """Read a tag such as 'v2.6.30-rc2' or 'v6.1'. Raises ValueError for any other text."""
        match = _TAG.fullmatch(tag)
        if match is None:
            raise ValueError(
                f"'{tag}' is not a release: write it as the kernel's tags, 'v2.6.30' or 'v6.1-rc3'"
            )
        major, minor, sub, candidate = match.groups()
        return cls(int(major), int(minor), int(sub or 0), int(candidate) if candidate else _FINAL)

    def __str__(self) -> str:
        sub = f".{self.sub}" if self.sub or self.major < 3 else ""
        candidate = "" if self.candidate == _FINAL else f"-rc{self.candidate}"
        return f"v{self.major}.{self.minor}{sub}{candidate}"


def release_of(makefile: str) -> Release | None:
    """Return the release that a tree's top Makefile names; None if it names none."""
    said = dict(_MAKEFILE.findall(makefile))
    numbers = [said.get(name, "") for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if not numbers[0].isdigit():
        return None
    major, minor, sub = (int(text) if text.isdigit() else 0 for text in numbers)
    candidate = re.search(r"-rc(\d+)", said.get("EXTRAVERSION", ""))
    return Release(major, minor, sub, int(candidate[1]) if candidate else _FINAL)


class ReleaseRange(Spec):
    """One row of a table: it holds for commits that have `since` behind them and `before` not yet."""

    since: str = Field(
        default="", description="the first release for which it holds; empty: from the beginning"
    )
    before: str = Field(
        default="", description="the first release for which it no longer holds; empty: for ever"
    )

    @field_validator("since", "before")
    @classmethod
    def _a_release(cls, value: str) -> str:
        if value:
            Release.parse(value)
        return value

    def covers(self, release: Release) -> bool:
        """Return whether it holds for a commit of this age."""
        after_start = not self.since or release >= Release.parse(self.since)
        return after_start and (not self.before or release < Release.parse(self.before))

    @property
    def range(self) -> str:
        """The half-open range in words."""
        match self.since, self.before:
            case "", "":
                return "every release"
            case since, "":
                return f"from {since} on"
            case "", before:
                return f"before {before}"
            case since, before:
                return f"{since} up to, not including, {before}"
        raise AssertionError("unreachable")


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def since(self) -> str: ...
    @property
    def before(self) -> str: ...


N = TypeVar("N", bound=_Named)


def refuse_overlaps(rows: Sequence[N], file: object) -> None:
    """Raise RequestError if a row ends before it begins, or two of one name hold for the same release."""
    oldest, youngest = Release(0, 0), Release(1 << 16, 0)
    seen: dict[str, list[tuple[Release, Release, N]]] = {}
    for row in rows:
        start = Release.parse(row.since) if row.since else oldest
        end = Release.parse(row.before) if row.before else youngest
        if start >= end:
            raise RequestError(
                f"{file}: the row '{row.name}' ends ({row.before}) before it begins ({row.since})"
            )
        for other_start, other_end, other in seen.setdefault(row.name, []):
            if start < other_end and other_start < end:
                raise RequestError(
                    f"{file}: two rows '{row.name}' overlap",
                    details="\n".join(
                        f"since {r.since or '(ever)'} before {r.before or '(never)'}" for r in (other, row)
                    ),
                    cure="a row ends where the next of its name begins: 'before' there is 'since' here",
                )
        seen[row.name].append((start, end, row))

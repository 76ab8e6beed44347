"""Releases of Linux, and tables whose rows each cover a range of releases.

The release of a commit is the one that the top Makefile of its tree names. The tags reachable from the commit
say the same, because the commit of a tag writes its number there and later commits inherit it. Reading the
Makefile takes milliseconds and needs no tags in the user's clone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from bisector.model.format import whole_number
from bisector.resources import resource
from bisector.schemas.documents.document import exists, shown
from bisector.schemas.loading import Spec, load_toml, matching
from bisector.schemas.refusal import WrongKeyError

_TAG = re.compile(r"v([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:\.[0-9]{1,4})?(?:-rc([0-9]{1,4}))?")
_MAKEFILE = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", re.MULTILINE)
RUNNING_RELEASE = r"[A-Za-z0-9][A-Za-z0-9._+~:@-]{0,63}"
"""What `uname -r` may say: 6.1.0-53-cloud-amd64, 5.15.0-rt17+. It becomes part of paths and command lines; a
kernel could name itself otherwise (KERNELRELEASE is free text), and no known one does. utsname has 64 bytes.
"""
_FINAL = 1 << 16
"""The `candidate` of a final release: above every number of a release candidate, so it sorts after them."""


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
                f"{shown(tag)} is not a release: write it as the kernel's tags, 'v2.6.30' or 'v6.1-rc3'"
            )
        major, minor, sub, candidate = match.groups()
        return cls(int(major), int(minor), int(sub or 0), int(candidate) if candidate else _FINAL)

    def __str__(self) -> str:
        sub = f".{self.sub}" if self.sub or self.major < 3 else ""
        candidate = "" if self.candidate == _FINAL else f"-rc{self.candidate}"
        return f"v{self.major}.{self.minor}{sub}{candidate}"


def release_of(makefile: str) -> Release | None:
    """Return the release that a tree's top Makefile names; None if it names none."""
    values = dict(_MAKEFILE.findall(makefile))
    names = ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    major, minor, sub = (whole_number(values.get(name, "")) for name in names)
    if major is None:
        return None
    found = re.search(r"-rc([0-9]+)", values.get("EXTRAVERSION", ""))
    candidate = whole_number(found[1]) if found else None
    return Release(major, minor or 0, sub or 0, _FINAL if candidate is None else candidate)


_OLDEST, _YOUNGEST = Release(0, 0), Release(1 << 16, 0)
"""Below and above every release, for ranges without a begin or an end."""


class ReleaseRange(Spec):
    """A half-open range of releases: commits that have `since` behind them and `before` not yet."""

    described_in = "kernels/README.md"

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

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.start >= self.end:
            raise WrongKeyError(f"the range ends ({self.before}) before it begins ({self.since})", "before")
        return self

    @property
    def start(self) -> Release:
        """The first release of the range."""
        return Release.parse(self.since) if self.since else _OLDEST

    @property
    def end(self) -> Release:
        """The first release behind the range."""
        return Release.parse(self.before) if self.before else _YOUNGEST

    def covers(self, release: Release) -> bool:
        """Return whether a release lies in the range."""
        return self.start <= release < self.end

    @property
    def range(self) -> str:
        """The range in words."""
        if self.since and self.before:
            return f"{self.since} up to, not including, {self.before}"
        if self.since:
            return f"from {self.since} on"
        return f"before {self.before}" if self.before else "every release"


Word = Annotated[
    str, matching(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}", "up to 100 of letters, digits, '.', '_', '+' and '-'")
]
"""A name in a table of `kernels/`."""

Arch = Literal["x86_64", "arm64", "riscv64"]
"""As tuxmake calls them."""

SourcePath = Annotated[
    str, matching(r"(?!/)(?!(.*/)?\.\.(/|$))[^\n\r\0]{1,500}", "a path below the tree, without '..'")
]


class NamedRow(ReleaseRange):
    """One row of a table. Rows of one name cover different releases."""

    name: Word = Field(description="of the row, for messages and for recipes")


T = TypeVar("T", bound=Spec)


def load_table(kernels: Path | None, file: str, table: type[T]) -> T:
    """Read a table of a `kernels` folder (default: the shipped one). A missing file has the default rows.

    Raises RequestError naming file, line and row, also where two rows of one name overlap.
    """
    path = (kernels or resource("kernels")) / file
    if not exists(path) and not path.is_symlink():
        return table()

    def check(found: T) -> None:
        for kind in type(found).model_fields:
            refuse_overlaps(getattr(found, kind), kind)

    return load_toml(path, table, check)


def refuse_overlaps(rows: Sequence[NamedRow], kind: str) -> None:
    """Raise WrongKeyError if two rows of one name cover the same release. kind: the key of the rows."""
    rows_by_name: dict[str, list[NamedRow]] = {}
    for number, row in enumerate(rows):
        for other in rows_by_name.setdefault(row.name, []):
            if row.start < other.end and other.start < row.end:
                raise WrongKeyError(
                    f"the row '{row.name}' ({row.range}) overlaps another of that name ({other.range}): "
                    "end the older one ('before') where the younger one begins ('since')",
                    *(kind, str(number)),
                )
        rows_by_name[row.name].append(row)

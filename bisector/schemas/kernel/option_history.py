"""Options of the kernel by release (`kernels/options.toml`): their range, older names and architectures.

Where a tree may still have the older name, both names are set. So the configuration changes with the commit
that renames the option in Kconfig, not with a tag near it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bisector.schemas.kernel.release import NamedRow, Release, load_table
from bisector.schemas.loading import Spec, matching

OptionName = Annotated[str, matching(r"[A-Za-z0-9_]+", "the name of an option, without CONFIG_")]


class OptionRow(NamedRow):
    """One option. Outside of its range it may be missing without failing a build."""

    name: OptionName
    arch: tuple[str, ...] = Field(default=(), description="where it exists; empty: everywhere")
    was: OptionName | Literal[""] = Field(default="", description="its name before `since`")
    why: str = ""


class Options(Spec):
    """The TOML file."""

    option: tuple[OptionRow, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionAtRelease:
    """An option as commits of one release have it. names: the youngest first.

    expected: whether it must exist; row: the table's row, None for an option that every release has.
    """

    names: tuple[str, ...]
    expected: bool
    row: OptionRow | None = None


def load_options(kernels: Path | None = None) -> Mapping[str, OptionRow]:
    """Read `options.toml` of a `kernels` folder (default: the shipped one): name -> row."""
    return {row.name: row for row in load_table(kernels, "options.toml", Options).option}


def option_at_release(
    rows: Mapping[str, OptionRow], name: str, release: Release, arch: str
) -> OptionAtRelease:
    """Return the names of an option in commits of a release, and whether they must have it."""
    row = rows.get(name)
    if row is None:
        return OptionAtRelease((name,), True)
    if row.arch and arch not in row.arch:
        return OptionAtRelease((name,), False, row)
    if row.covers(release):
        return OptionAtRelease((name,), True, row)
    if release >= row.start or not row.was or row.was == name:
        return OptionAtRelease((name,), False, row)
    older = option_at_release(rows, row.was, release, arch)
    return OptionAtRelease((name, *older.names), older.expected, row)

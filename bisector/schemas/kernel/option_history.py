"""Options of the kernel by release (`kernels/options.toml`): their range, older names and architectures.

Where a tree may still have the older name, both names are set. So the configuration changes with the commit
that renames the option in Kconfig, not with a tag near it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from bisector.schemas.kernel.release import Arch, NamedRow, Release, load_table
from bisector.schemas.loading import Distinct, Spec, matching
from bisector.schemas.refusal import WrongKeyError

_NAME = "the name of an option, without CONFIG_"

OptionName = Annotated[str, matching(r"(?!CONFIG_)[A-Za-z0-9_]{1,100}", _NAME)]
FormerName = Annotated[str, matching(r"|(?!CONFIG_)[A-Za-z0-9_]{1,100}", _NAME)]


class OptionRow(NamedRow):
    """One option. Outside of its range it may be missing without failing a build."""

    name: OptionName = Field(description=_NAME)
    arch: Distinct[Arch] = Field(default=(), description="where it exists; empty: everywhere")
    was: FormerName = Field(default="", description="its name before `since`")
    why: str = Field(default="", description="the reason, for readers")


class Options(Spec):
    """The TOML file."""

    described_in = "kernels/README.md"

    option: tuple[OptionRow, ...] = Field(default=(), description="options, a row each")

    @model_validator(mode="after")
    def _one_row_each(self) -> Self:
        older: dict[str, str] = {}
        for number, row in enumerate(self.option):
            if row.name in older:
                raise WrongKeyError(
                    f"'{row.name}' has a row already; one row says all of an option",
                    "option",
                    str(number),
                    "name",
                )
            older[row.name] = row.was
        for number, row in enumerate(self.option):
            name, seen = row.was, {row.name}
            while name in older and name not in seen:
                seen.add(name)
                name = older[name]
            if name in seen:
                raise WrongKeyError("an option cannot be older than itself", "option", str(number), "was")
        return self


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

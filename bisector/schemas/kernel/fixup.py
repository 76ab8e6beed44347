"""Small edits by which trees of another time compile today: `kernels/fixups.toml`.

An edit is made to a commit's tree before it is built, as a git object of perfbisect's own; neither the user's
repository nor a builder's checkout is touched, and the tree's id, which names the build, covers it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from bisector.errors import RequestError, SourceFailed
from bisector.schemas.kernel.release import NamedRow, Release, load_table
from bisector.schemas.loading import Spec


class Fixup(NamedRow):
    """One edit: every match of `pattern` in each of `files` becomes `replacement`.

    need: 'must' refuses a tree that has a file but neither the pattern nor what it becomes; 'may' is for
    texts that come and go between the tags.
    """

    files: tuple[str, ...] = Field(
        min_length=1, description="paths in the tree; one that is not there is left"
    )
    pattern: str = Field(description="a Python regular expression; ^ and $ match at lines")
    replacement: str = Field(description="with \\1 or \\g<name> for groups")
    need: Literal["must", "may"] = "may"
    why: str = Field(min_length=1)

    @field_validator("pattern")
    @classmethod
    def _an_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        return value

    def edit(self, text: str) -> str:
        """Return the text with the edit made; the same text if there is nothing to do.

        Raises SourceFailed if one more edit would change it again: such a row could not be trusted.
        """
        expression = re.compile(self.pattern, re.MULTILINE)
        try:
            done = expression.sub(self.replacement, text)
        except (re.error, IndexError) as error:
            raise RequestError(f"the fixup '{self.name}': its replacement does not fit: {error}") from error
        if expression.sub(self.replacement, done) != done:
            raise SourceFailed(
                f"the fixup '{self.name}' would edit its own work again",
                cure="narrow its pattern so that it does not match what it writes",
            )
        return done


class Fixups(Spec):
    """The TOML file."""

    fixup: tuple[Fixup, ...] = ()


def load_fixups(kernels: Path | None = None) -> tuple[Fixup, ...]:
    """Read `fixups.toml` of a `kernels` folder (default: the shipped one). A missing file has no rows."""
    return load_table(kernels, "fixups.toml", Fixups).fixup


def fixups_at(rows: Sequence[Fixup], release: Release) -> tuple[Fixup, ...]:
    """Return the rows for a commit of this age, in the order of the file."""
    return tuple(row for row in rows if row.covers(release))


def apply_fixups(rows: Sequence[Fixup], path: str, text: str, where: str) -> str:
    """Make every edit of the rows that concern a file. where: names the commit in errors.

    Raises SourceFailed naming the row if what it must change is not there.
    """
    for row in rows:
        if path not in row.files:
            continue
        done = row.edit(text)
        if row.need == "must" and done == text and not _made(row, text):
            raise SourceFailed(
                f"the fixup '{row.name}' no longer applies to {where}",
                details=f"{path} has no match for {row.pattern!r}\nit is there because: {row.why}",
                cure='in kernels/fixups.toml, end the row where the text is gone, or make it need = "may"',
            )
        text = done
    return text


def _made(row: Fixup, text: str) -> bool:
    """Whether a text without the pattern looks as if the edit had been made already."""
    plain = re.sub(r"\\(\d+|g<[^>]*>)", "", row.replacement).strip()
    return bool(plain) and plain in text


def edited_paths(rows: Sequence[Fixup]) -> tuple[str, ...]:
    """Return the paths that the rows edit, each once, in order."""
    return tuple(dict.fromkeys(path for row in rows for path in row.files))

"""Small edits with which old trees compile with today's tools: `kernels/fixups.toml`.

An edit changes a commit's tree before it is built. The new tree is a git object of perfbisect's own: the
user's repository and the builder's checkout stay as they are, and the id of the tree, which names the
build, covers it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from bisector.errors import SourceFailed
from bisector.model.format import count
from bisector.schemas.documents.document import shown
from bisector.schemas.kernel.release import NamedRow, Release, SourcePath, load_table
from bisector.schemas.loading import Distinct, Spec, regular_expression
from bisector.schemas.refusal import WrongKeyError


class Fixup(NamedRow):
    """One edit: every match of `pattern` in each of `files` becomes `replacement`.

    need: 'must' refuses a tree that has the file but neither the pattern nor the replacement; 'may' is for
    texts that only some commits of the range have.
    """

    files: Distinct[SourcePath] = Field(
        min_length=1, description="paths in the tree; a missing one is ignored"
    )
    pattern: str = Field(min_length=1, description="a Python regular expression; ^ and $ match at lines")
    replacement: str = Field(description="with \\1 or \\g<name> for groups")
    need: Literal["must", "may"] = Field(
        default="may", description="whether a tree without the text is refused: 'must' or 'may'"
    )
    why: str = Field(min_length=1, description="the reason, for readers")

    @field_validator("pattern")
    @classmethod
    def _regular_expression(cls, value: str) -> str:
        regular_expression(value)
        return value

    @model_validator(mode="after")
    def _replacement_fits(self) -> Self:
        try:
            re.compile(self.pattern).sub(self.replacement, "")
        except (re.error, IndexError) as error:
            groups = re.compile(self.pattern).groups
            raise WrongKeyError(
                f"{shown(self.replacement)} does not fit the pattern, which has {count(groups, 'group')}",
                "replacement",
            ) from error
        return self

    def edit(self, text: str) -> str:
        """Return the text with the edit made, or the same text where nothing matches.

        Raises SourceFailed if a second edit would change the result again: the row is not idempotent.
        """
        expression = re.compile(self.pattern, re.MULTILINE)
        done = expression.sub(self.replacement, text)
        if expression.sub(self.replacement, done) != done:
            raise SourceFailed(
                f"the fixup '{self.name}' changes its own result when it is applied again",
                cure="narrow its pattern so that it does not match its replacement",
            )
        return done


class Fixups(Spec):
    """The TOML file."""

    described_in = "kernels/README.md"

    fixup: tuple[Fixup, ...] = Field(default=(), description="edits, a row each")


def load_fixups(kernels: Path | None = None) -> tuple[Fixup, ...]:
    """Read `fixups.toml` of a `kernels` folder (default: the shipped one). A missing file has no rows."""
    return load_table(kernels, "fixups.toml", Fixups).fixup


def fixups_at(rows: Sequence[Fixup], release: Release) -> tuple[Fixup, ...]:
    """Return the rows that cover a release, in the order of the file."""
    return tuple(row for row in rows if row.covers(release))


def apply_fixups(rows: Sequence[Fixup], path: str, text: str, where: str) -> str:
    """Return the text of a file with the edits of all rows for it. where: names the commit in errors.

    Raises SourceFailed naming the row if a text that it must change is missing.
    """
    for row in rows:
        if path not in row.files:
            continue
        done = row.edit(text)
        if row.need == "must" and done == text and not _seems_edited(row, text):
            raise SourceFailed(
                f"the fixup '{row.name}' no longer applies to {where}",
                details=f"{path} has no match for {row.pattern!r}\nthe row exists because: {row.why}",
                cure='in kernels/fixups.toml, end the row where the text is gone, or make it need = "may"',
            )
        text = done
    return text


def _seems_edited(row: Fixup, text: str) -> bool:
    """Whether a text without the pattern contains the replacement, as after an edit."""
    plain = re.sub(r"\\(\d+|g<[^>]*>)", "", row.replacement).strip()
    return bool(plain) and plain in text


def edited_paths(rows: Sequence[Fixup]) -> tuple[str, ...]:
    """Return the paths that the rows edit, each once, in order."""
    return tuple(dict.fromkeys(path for row in rows for path in row.files))

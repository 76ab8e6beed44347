"""The file of `--priors`: factors by which a user holds commits for more or less probable culprits."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from bisector.errors import RequestError
from bisector.schemas.documents.document import shown_path
from bisector.schemas.loading import Spec, load_toml, matching
from bisector.schemas.refusal import WrongKeyError

PriorsFile = Annotated[
    str,
    Field(
        description="A TOML file of factors by which commits, or those that touch a path, are more or less "
        "probable.",
        json_schema_extra={"metavar": "FILE", "type": "path"},
    ),
]
"""The field of a request."""

_Factor = Annotated[float, Field(ge=1e-3, le=1e3, strict=True)]
"""Factors of a user. A thousand to one is as good as certain; more would change nothing, since half of the
probability stays spread evenly."""

_MOST = 1000
"""Entries of a table: nobody has an opinion on more, and a request is stored with each bisection."""

_Commit = Annotated[
    str, matching(r"[0-9a-f]{7,40}", "7 to 40 digits of a commit's id, letters in lower case")
]
_Path = Annotated[
    str,
    matching(
        r"(?!/|.*//|(.*/)?\.\.?(/|$))[^\n\r\0]{1,1000}",
        "a path of the kernel's tree, such as mm/slab.c or mm/",
    ),
]


class Priors(Spec):
    """What such a file says. A path is a file, or a folder with all that is in it."""

    described_in: ClassVar[str] = "docs/how-to/bisect-your-regression.md"

    commits: dict[_Commit, _Factor] = Field(
        default_factory=dict, max_length=_MOST, description="factors of commits by id, or its beginning"
    )
    paths: dict[_Path, _Factor] = Field(
        default_factory=dict,
        max_length=_MOST,
        description="factors of commits by a file or folder they change",
    )


def read_priors(
    path: Path, candidates: Iterable[str], unknown: Callable[[Sequence[str]], Iterable[str]]
) -> Priors:
    """Return what a file says, with full ids. candidates: ids of the commits that may be the culprit.

    unknown: which of some paths the history that is searched does not have.
    Raises RequestError, also for a commit that is none of the candidates, and for an unknown path.
    """
    ordered = sorted(candidates)
    full: dict[str, str] = {}  # id -> as the file has it

    def check(priors: Priors) -> None:
        for short in priors.commits:
            start = bisect_left(ordered, short)
            found = [sha for sha in ordered[start : start + 2] if sha.startswith(short)]
            if not found:
                raise WrongKeyError(
                    "no commit that is searched has this id",
                    "commits",
                    short,
                    cure="take it out, or name a commit of the range as 'git log GOOD..BAD' shows it",
                )
            if len(found) > 1:
                raise WrongKeyError(
                    "several commits have an id that begins so", "commits", short, cure="write more digits"
                )
            if (twin := full.setdefault(found[0], short)) != short:
                raise WrongKeyError(
                    f"is the same commit as '{twin}'", "commits", short, cure="keep one of the two"
                )
        folders: dict[str, str] = {}  # without a slash -> as the file has it
        for name in priors.paths:
            if (twin := folders.setdefault(name.rstrip("/"), name)) != name:
                raise WrongKeyError(
                    f"is the same folder as '{twin}'", "paths", name, cure="keep one of the two"
                )
        for absent in unknown(tuple(priors.paths)) if priors.paths else ():
            raise WrongKeyError(
                "no commit that is searched has this file or folder",
                "paths",
                absent,
                cure="take it out, or write it as 'git ls-tree -r --name-only BAD' shows it",
            )

    priors = load_toml(path, Priors, check)
    if not (priors.commits or priors.paths):
        raise RequestError(
            f"{shown_path(path)}: names no commit and no path",
            cure=f"write factors below [commits] or [paths], as {Priors.described_in} shows, or leave it out",
        )
    return priors.model_copy(update={"commits": {sha: priors.commits[short] for sha, short in full.items()}})

"""Port of what commits change in the code: evidence for the search beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from bisector.model.facts import TouchedCode


class ChangedCode(Protocol):
    """The history of a kernel, read once for a whole range."""

    def of(self, shas: Sequence[str], *, first_parent: bool = False) -> Iterator[TouchedCode]:
        """Yield what each of some commits changes, in their order, as `between` does."""

    def between(self, good: str, bad: str, *, first_parent: bool = False) -> Iterator[TouchedCode]:
        """Yield what each commit of good..bad changes.

        Of a merge it is what none of its parents has, since their commits are in the range themselves;
        first_parent: what the first parent lacks, since only the commits of that line are in the range.

        Raises InfrastructureError where the history cannot be read.
        """

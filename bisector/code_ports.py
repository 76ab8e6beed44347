"""Port of what commits change in the code: evidence for the search beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from bisector.model.facts import TouchedCode


class ChangedCode(Protocol):
    """The history of a kernel."""

    def of(self, shas: Sequence[str]) -> Iterator[TouchedCode]:
        """Yield what each of some commits changes, in their order.

        Of a merge it is what none of its parents has, since their commits are in the range themselves. Raises
        InfrastructureError where the history cannot be read.
        """

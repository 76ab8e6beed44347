"""Port of what commits change in the code: evidence for the search beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bisector.model.facts import TouchedCode


class ChangedCode(Protocol):
    """The history of a kernel, read once for a whole range."""

    def between(self, good: str, bad: str) -> Iterator[TouchedCode]:
        """Yield what each commit of good..bad changes; merges by their first parent.

        Raises InfrastructureError where the history cannot be read.
        """

"""A sentence of progress that also says how much of a build is done."""

from __future__ import annotations


class Compiling(str):
    """The progress of a kernel that is built from nothing. share: of its files that are compiled, 0 to 1."""

    share: float

    def __new__(cls, text: str, share: float) -> Compiling:
        """Make the sentence."""
        made = super().__new__(cls, text)
        made.share = share
        return made

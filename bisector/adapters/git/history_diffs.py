"""Diffs of many commits from one git command, as evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.git.repository import Repository, find_repository
from bisector.linux.hunk_heads import COMMIT, read
from bisector.model.facts import TouchedCode

_COMMITS_AT_ONCE = 500
"""Their diffs without context take some 10 MB."""


@dataclass(frozen=True, slots=True)
class HistoryDiffs:
    """A repository. See `code_ports.ChangedCode`."""

    folder: Path

    def of(self, shas: Sequence[str]) -> Iterator[TouchedCode]:
        """Yield what each of some commits changes, in their order."""
        repo = Repository(find_repository(self.folder).top)
        form = ("-p", "-U0", "--no-renames", "--no-color", "--no-walk=unsorted", "--cc")
        for start in range(0, len(shas), _COMMITS_AT_ONCE):
            some = "\n".join([*shas[start : start + _COMMITS_AT_ONCE], "--"])
            done = repo.run("log", *form, f"--format={COMMIT}%H", "--stdin", stdin=some)
            yield from read(done.output.splitlines())

"""What the commits of a range change, for evidence: the diffs of many commits from one git command."""

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

    def between(self, good: str, bad: str, *, first_parent: bool = False) -> Iterator[TouchedCode]:
        """Yield what each commit of good..bad changes, the newest first."""
        repo = Repository(find_repository(self.folder).top)
        line = ("--first-parent",) if first_parent else ()
        shas = repo.run("rev-list", *line, f"{good}..{bad}", "--").output.split()
        yield from self.of(shas, first_parent=first_parent)

    def of(self, shas: Sequence[str], *, first_parent: bool = False) -> Iterator[TouchedCode]:
        """Yield what each of some commits changes, in their order."""
        repo = Repository(find_repository(self.folder).top)
        merges = ("--first-parent", "-m") if first_parent else ("--cc",)
        form = ("-p", "-U0", "--no-renames", "--no-color", "--no-walk=unsorted", *merges)
        for start in range(0, len(shas), _COMMITS_AT_ONCE):
            some = "\n".join([*shas[start : start + _COMMITS_AT_ONCE], "--"])
            done = repo.run("log", *form, f"--format={COMMIT}%H", "--stdin", stdin=some)
            yield from read(done.output.splitlines())

"""A real history for the simulator: only its shape is used, nothing is built."""

from __future__ import annotations

from pathlib import Path

from bisector.model.commit_graph import CommitGraph


def real_graph(repo: Path, good: str, bad: str, *, trusted: bool = False) -> CommitGraph:
    """Return the graph between two commits of a repository. Raises RequestError for ends that cannot be.

    trusted: whether it is read even if it belongs to another user.
    """
    from bisector.adapters.git.repository import trust
    from bisector.adapters.git.source import GitSource  # slow to import, and seldom needed

    if trusted:
        trust(repo.expanduser())
    source = GitSource(repo.expanduser())
    return source.graph(source.resolve(good), source.resolve(bad))

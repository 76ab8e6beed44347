"""The file that `--priors` names, read against the history that is searched."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.git.changed_paths import unknown_paths
from bisector.schemas.commit_priors import Priors, read_priors

if TYPE_CHECKING:
    from bisector.model.commit_graph import CommitGraph
    from bisector.schemas.request import Request


def priors_of(request: Request, graph: CommitGraph) -> Priors | None:
    """Return what the file says, None without one. Raises RequestError, also for what the history lacks."""
    if not request.priors:
        return None
    ends = graph.shas[graph.good], graph.shas[graph.bad]
    candidates = itertools.compress(graph.shas, graph.candidate)
    repository = Path(request.repo).expanduser()
    return read_priors(Path(request.priors), candidates, functools.partial(unknown_paths, repository, *ends))

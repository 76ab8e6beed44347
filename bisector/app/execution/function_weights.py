"""Weights of commits by the functions that were counted at both ends.

Nothing but the records is looked at, and git: every worker, and a search that was resumed, finds the same.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from bisector.code_ports import ChangedCode
from bisector.errors import InfrastructureError, Interrupted
from bisector.linux.exact_profile import ExactComparison
from bisector.model.records import FunctionEvidence
from bisector.model.state import IRRELEVANT_WEIGHT, State
from bisector.ports import Progress
from bisector.schemas.request import Accepted

MAX_COMMITS = 40_000
"""Most commits whose diffs are read. One takes 1.4 ms of processor time: 30,000 of v2.6.18..v2.6.30 took
45 s (742 s elapsed at low priority, beside a load of 10 to 14), all 111,556 took 99 s at another time. So
this is a minute of processor time, once: as much as one kernel, while three bits of evidence save some. Of
that range 33,602 commits can change the kernel, and are read."""

_TOLD_SECONDS = 5.0
"""How often progress of the reading is reported."""


class FunctionWeights:
    """Which commits change functions that the two ends execute differently."""

    def __init__(self, changed: ChangedCode, stop: threading.Event) -> None:
        """Take the history. stop: ends the reading."""
        self._changed, self._stop = changed, stop

    def __call__(self, state: State, progress: Progress) -> FunctionEvidence | None:
        """Return the evidence on the commits that can change the kernel; None before both ends are counted.

        progress: told how far the reading is. Raises InfrastructureError where these commits are too many,
        Interrupted, and what `ChangedCode` raises.
        """
        from bisector.linux.function_evidence import weigh

        found = _ends(state)
        if found is None:
            return None
        graph = state.graph
        candidates = (commit for commit, candidate in enumerate(graph.candidate) if candidate)
        commits = [commit for commit in candidates if graph.weights.get(commit) != IRRELEVANT_WEIGHT]
        if len(commits) > MAX_COMMITS:
            raise InfrastructureError(
                f"the diffs of {len(commits):,} commits would take too long; {MAX_COMMITS:,} are read at most"
            )
        touched, told = [], time.monotonic()
        for one in self._changed.of([graph.shas[commit] for commit in commits]):
            if self._stop.is_set():
                raise Interrupted("interrupted")
            touched.append(one)
            if time.monotonic() > told + _TOLD_SECONDS:
                told = time.monotonic()
                progress(f"reading what commits change: {len(touched):,} of {len(commits):,}")
        index = {graph.shas[commit]: commit for commit in commits}
        kinds: dict[str, list[int]] = {}
        for evidence in weigh(touched, found):
            kinds.setdefault(evidence.kind, []).append(index[evidence.sha])
        differ, call, elsewhere = (
            tuple(sorted(kinds.get(kind, ()))) for kind in ("differs", "calls", "elsewhere")
        )
        return FunctionEvidence(differ, call, elsewhere)

    @classmethod
    def of(cls, accepted: Accepted, stop: threading.Event) -> FunctionWeights:
        """Return that of an accepted request."""
        from bisector.adapters.git.history_diffs import HistoryDiffs

        return cls(HistoryDiffs(Path(accepted.request.repo).expanduser()), stop)


def _ends(state: State) -> ExactComparison | None:
    """Return both ends side by side, from the first testbed that counted both."""
    from bisector.linux.exact_profile import compare_exactly
    from bisector.report.profiles.explained_effect import profile_of

    for testbed in dict.fromkeys(visit.testbed for visit in state.visits):
        before, after = (profile_of(state, end, testbed) for end in (state.graph.good, state.graph.bad))
        if before is not None and after is not None:
            return compare_exactly(before, after)
    return None

"""Prior weights of the commits of one bisection, by what git and the functions of its ends say about them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Find
from bisector.model.records import FunctionEvidence, Weighed
from bisector.schemas.commit_priors import Priors
from bisector.schemas.request import Accepted
from bisector.schemas.settings import Settings


class CommitWeights:
    """What is known of the commits of one range. The history is read once."""

    def __init__(
        self,
        repo: Path,
        keep_in: Path,
        arch: str,
        *,
        find: Find = "regression",
        scan: bool = False,
        priors: Priors | None = None,
    ) -> None:
        """keep_in: the folder of what is kept of histories; arch: as in recipes; priors: what the user says.

        find, scan: what is searched for; `commit_prior` weighs commit messages accordingly.
        """
        self._repo, self._keep_in, self._arch, self._find, self._scan = repo, keep_in, arch, find, scan
        self._priors = priors or Priors()

    def __call__(
        self, graph: CommitGraph, irrelevant: Collection[int], functions: FunctionEvidence | None = None
    ) -> Weighed | None:
        """Return the weights of the candidates but the irrelevant ones; None where none are left.

        Commits with a weight in the graph keep that. functions: what those of the ends tell. Raises
        InfrastructureError.
        """
        from bisector.adapters.git.changed_paths import read_changes
        from bisector.adapters.git.commit_messages import read_messages
        from bisector.linux.commit_prior import weigh

        left_out = {*irrelevant, *graph.weights}
        commits = [i for i, candidate in enumerate(graph.candidate) if candidate and i not in left_out]
        if not commits:
            return None
        good, bad = graph.shas[graph.good], graph.shas[graph.bad]
        changes = read_changes(self._repo, good, bad, self._keep_in)
        is_fix = self._find == "fix"
        messages = read_messages(
            self._repo, good, bad, mending=is_fix or self._scan, later=self._scan or not is_fix
        )
        weights, named = weigh(
            [graph.shas[i] for i in commits],
            changes,
            self._arch,
            find=self._find,
            scan=self._scan,
            inside=messages.inside,
            later=messages.later,
            commits=self._priors.commits,
            paths=self._priors.paths,
            seen={} if functions is None else _factors(graph, functions, scan=self._scan),
        )
        return Weighed(tuple(commits), tuple(round(weight, 3) for weight in weights), named, functions)

    @classmethod
    def of(cls, settings: Settings, accepted: Accepted) -> CommitWeights:
        """Return those of an accepted request."""
        from bisector.schemas.kernel.recipe import load_recipe

        request = accepted.request
        return cls(
            Path(request.repo).expanduser(),
            settings.cache_dir / "graphs",
            load_recipe(request.recipe).manifest.arch,
            find=request.find,
            scan=request.scan,
            priors=accepted.priors,
        )


def _factors(graph: CommitGraph, functions: FunctionEvidence, *, scan: bool) -> dict[str, float]:
    """scan: the search is also for changes that cancel out, so functions that are equal clear no commit."""
    from bisector.linux.function_evidence import WEIGHTS

    kinds = (
        (WEIGHTS["differs"], functions.differ),
        (WEIGHTS["calls"], functions.call),
        (WEIGHTS["elsewhere"], () if scan else functions.elsewhere),
    )
    return {graph.shas[commit]: weight for weight, commits in kinds for commit in commits}

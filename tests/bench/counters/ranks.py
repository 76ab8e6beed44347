"""How evidence by functions ranks culprits that are known, among all commits of a range and among suspects.

Bits are what a prior by this evidence tells of a culprit beside one that takes all suspects for equal.

A and B are folders of the monitor `counters` of both ends (or of the culprit and its parent). Suspects are
the commits that can change the kernel, if the cache has builds of both ends, which say what they have read.
python -m tests.bench.counters.ranks REPO GOOD BAD A B CULPRIT...
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.git.history_diffs import HistoryDiffs
from bisector.adapters.git.repository import Repository
from bisector.adapters.parsers.profiles import read
from bisector.app.accept import recipe_for
from bisector.app.pruning import Pruning
from bisector.app.wiring import Wiring
from bisector.linux.commit_prior import mix
from bisector.linux.exact_profile import compare_exactly
from bisector.linux.function_evidence import WEIGHTS, CommitEvidence, weigh
from bisector.schemas.settings import load_settings

SHOWN = 10


def main(repo: str, good: str, bad: str, a: str, b: str, *culprits: str) -> None:
    """Print the kinds of evidence, each culprit's ranks, and the commits that rank first."""
    found = compare_exactly(read(a), read(b))
    git = Repository(Path(repo))
    shas = git.run("rev-list", f"{good}..{bad}", "--").output.split()
    evidence = weigh(HistoryDiffs(Path(repo)).of(shas), found)
    print(f"instructions a run: {found.a.total:,.0f} -> {found.b.total:,.0f}")
    aside = set_aside(Path(repo), good, bad)
    suspects = [one for one in evidence if one.sha not in aside]
    for title, some in (("all commits", evidence), ("commits that can change the kernel", suspects)):
        print(f"{good}..{bad}, {title}: {len(some)}, {dict(Counter(one.kind for one in some))}")
    weights = [WEIGHTS[one.kind] for one in suspects]
    priors = dict(zip((one.sha for one in suspects), mix([w / sum(weights) for w in weights]), strict=True))
    for name in culprits:
        sha = git.resolve(name) or name
        own = next(one for one in evidence if one.sha == sha)
        places = [
            "rank {} to {} of {}".format(*rank(some, sha), len(some))
            if any(one.sha == sha for one in some)
            else f"not among {len(some)}"
            for some in (evidence, suspects)
        ]
        bits = f"{math.log2(priors[sha] * len(priors)):+.2f} bits" if sha in priors else "no prior"
        places.append(bits)
        print(f"{name}: {'; '.join(places)} ({own.kind}, share {own.share:.2%}: {_functions(own, 6)})")
    for one in sorted(suspects, key=lambda one: -one.share)[:SHOWN]:
        subject = git.run("log", "-1", "--format=%h %s", one.sha).output.strip()
        print(f"  {one.share:7.2%} {one.kind:<10} {subject[:60]}  {_functions(one, 3)}")


def set_aside(repo: Path, good: str, bad: str) -> set[str]:
    """Return the commits that cannot change the kernel; none where the ends were not built."""
    wiring = Wiring(load_settings())
    source = wiring.source(repo)
    graph = source.graph(source.resolve(good), source.resolve(bad))
    recipe = recipe_for(wiring.trees(repo), wiring.settings.recipe, source.resolve(good), source.resolve(bad))
    found = Pruning(wiring.settings, repo, recipe)(graph)
    return {graph.shas[index] for index in found.commits} if found is not None else set()


def rank(evidence: Sequence[CommitEvidence], sha: str) -> tuple[int, int]:
    """Return the first and the last rank (from 1) that a commit may have; equal evidence is not ordered.

    Of commits that may have changed anything nothing is known: they stand before those elsewhere.
    """
    own = next(one for one in evidence if one.sha == sha)
    before = sum(1 for one in evidence if _key(one) < _key(own))
    same = sum(1 for one in evidence if _key(one) == _key(own))
    return before + 1, before + same


def _key(one: CommitEvidence) -> tuple[float, float]:
    return -WEIGHTS[one.kind], -one.share


def _functions(one: CommitEvidence, most: int) -> str:
    return ", ".join(one.functions[:most])


if __name__ == "__main__":
    main(*sys.argv[1:])

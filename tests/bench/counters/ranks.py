"""How evidence by functions ranks a culprit that is known, among all commits of a range.

A and B are folders of the monitor `counters` of both ends (or of the culprit and its parent).
python -m tests.bench.counters.ranks REPO GOOD BAD A B CULPRIT...
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from bisector.adapters.git.history_diffs import HistoryDiffs
from bisector.adapters.git.repository import Repository
from bisector.adapters.parsers.profiles import read
from bisector.linux.exact_profile import compare_exactly
from bisector.linux.function_evidence import rank, weigh

SHOWN = 10


def main(repo: str, good: str, bad: str, a: str, b: str, *culprits: str) -> None:
    """Print each culprit's ranks, the kinds of evidence, and the commits that rank first."""
    found = compare_exactly(read(a), read(b))
    evidence = weigh(HistoryDiffs(Path(repo)).between(good, bad), found)
    git = Repository(Path(repo))
    print(f"{good}..{bad}: {len(evidence)} commits, {dict(Counter(one.kind for one in evidence))}")
    print(f"instructions a run: {found.a.total:,.0f} -> {found.b.total:,.0f}")
    for name in culprits:
        sha = git.resolve(name) or name
        own = next(one for one in evidence if one.sha == sha)
        first, last = rank(evidence, sha)
        print(f"{name}: rank {first} to {last} of {len(evidence)} ({own.kind}, share {own.share:.2%})")
    for one in sorted(evidence, key=lambda one: -one.share)[:SHOWN]:
        subject = git.run("log", "-1", "--format=%h %s", one.sha).output.strip()
        print(f"  {one.share:7.2%} {one.kind:<10} {subject[:60]}  {', '.join(one.functions[:3])}")


if __name__ == "__main__":
    main(*sys.argv[1:])

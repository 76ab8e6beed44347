"""What the prior of `--find fix` is worth: known fixes among the commits since the release that was slow.

python -m tests.bench.search.known_fixes REPO

A fix is the message that known_culprits/culprits.toml names as the source of a culprit. Its range goes from
the tag with the culprit to the first tag with the fix, as somebody would ask who knows that it is mended.
Each of these messages names its culprit by construction; whether in words that the prior knows is not.

For each fix: its rank among the commits and bits saved, log2(prior / uniform), as a search for a loss would
weigh them (which is what `--find fix` did before it had weights of its own), and as `--find fix` does.
"""

from __future__ import annotations

import math
import sys
import tempfile
import tomllib
from pathlib import Path
from statistics import mean

from bisector.adapters.git.repository import Repository
from bisector.adapters.git.source import GitSource
from bisector.app.execution.commit_weights import CommitWeights
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import TERMS, Find
from tests.bench.search.priors import ARCH, LIST, Culprit, middle_rank

KINDS: tuple[Find, ...] = ("regression", "fix")


def first_tag(git: Repository, sha: str) -> str | None:
    """Return the first tag that holds a commit, release candidates before their release; None for none."""
    tags = git.run("-c", "versionsort.suffix=-rc", "tag", "--contains", sha, "--sort=version:refname")
    return next(iter(tags.output.split()), None)


def rate(
    source: GitSource, graph: CommitGraph, keep_in: Path, fix: str, find: Find
) -> tuple[int, float, int, float]:
    """Return the commits, the fix's rank among them, how many are named, and bits saved.

    keep_in: the folder of what is read of the range, which does not depend on what is looked for.
    """
    found = CommitWeights(source.path, keep_in, ARCH, find=find)(graph, irrelevant=[])
    assert found is not None
    at = found.commits.index(graph.shas.index(fix))
    bits = math.log2(found.weights[at] / mean(found.weights))
    return len(found.weights), middle_rank(found.weights, at), found.named, bits


def main(repo: str) -> None:
    """Print each fix's ranks and bits, and their means."""
    source, git = GitSource(Path(repo)), Repository(Path(repo))
    bits: dict[Find, list[float]] = {kind: [] for kind in KINDS}
    shares: dict[Find, list[float]] = {kind: [] for kind in KINDS}
    for culprit in (Culprit(**one) for one in tomllib.loads(LIST.read_text())["culprit"]):
        bad = first_tag(git, culprit.source)
        if bad is None:
            print(f"{culprit.source[:12]}: no tag holds it", flush=True)
            continue
        line = f"| {culprit.source[:12]} | {culprit.bad}..{bad} "
        graph = source.graph(source.resolve(culprit.bad), source.resolve(bad), terms=TERMS["fix"])
        with tempfile.TemporaryDirectory() as keep_in:
            for kind in KINDS:
                of, rank, named, saved = rate(source, graph, Path(keep_in), culprit.source, kind)
                line += f"| {of} | {rank:.0f} | {named} | {saved:+.2f} "
                bits[kind].append(saved)
                shares[kind].append(rank / of)
        print(f"{line}|", flush=True)
    for kind in KINDS:
        print(
            f"| {kind}: {len(bits[kind])} fixes | rank {mean(shares[kind]):.2f} of the range "
            f"| {mean(bits[kind]):+.2f} bits | worst {min(bits[kind]):+.2f} |"
        )


if __name__ == "__main__":
    main(sys.argv[1])

"""Is pruning sound? Builds each commit that it sets aside, and its parent: both must be the same kernel.

    .venv/bin/python -m tests.bench.pruning REPO GOOD BAD

Prints a line a commit and ends with code 1 where two kernels differ. PERFBISECT_CACHE_DIR says where kernels
are kept; what is there already is not built again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bisector.app.accept import recipe_for
from bisector.app.pruning import Pruning
from bisector.app.wiring import Wiring
from bisector.errors import BuildFailed
from bisector.ports import BuildOrder
from bisector.schemas.settings import load_settings


def main(repo: Path, good: str, bad: str) -> int:
    """Return the exit code."""
    wiring = Wiring(load_settings())
    source = wiring.source(repo)
    good, bad = source.resolve(good), source.resolve(bad)
    graph = source.graph(good, bad)
    recipe = recipe_for(wiring.trees(repo), "auto", good, bad)
    builder = wiring.builder(repo)

    def binary(sha: str) -> str:
        try:
            return builder.build(BuildOrder(sha, recipe), lambda _: None).binary[:16]
        except BuildFailed as error:
            return f"does not build: {error.message}"

    binary(good)
    binary(bad)
    found = Pruning(wiring.settings, repo, recipe)(graph)
    if found is None:
        print("the builds of the ends do not tell what they read")
        return 1
    print(
        f"{sum(graph.candidate)} commits, {len(found.commits)} set aside; kept: {dict(found.kept)}",
        flush=True,
    )
    wrong = 0
    for index in found.commits:
        parent = graph.parents[index][0]
        before, after = binary(graph.shas[parent]), binary(graph.shas[index])
        same = before == after
        wrong += not same
        info = source.infos([graph.shas[index]])[0]
        print(f"{'same' if same else 'DIFFERS'}  {info.sha[:12]}  {after}  {info.subject}", flush=True)
    print(f"{len(found.commits) - wrong} of {len(found.commits)} have the kernel of their parent")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:4]))

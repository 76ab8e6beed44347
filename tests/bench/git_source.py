"""How long the graph of a large range takes beside `git rev-list --count` of the same range.

python -m tests.bench.git_source REPOSITORY GOOD BAD
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bisector.adapters.git.source import GitSource


def main(repository: Path, good: str, bad: str) -> None:
    """Print seconds and ratios: counting, the first graph, the graph from the cache."""
    began = time.monotonic()
    subprocess.run(["git", "-C", repository, "rev-list", "--count", f"{good}..{bad}"], check=True)
    counting = time.monotonic() - began
    with tempfile.TemporaryDirectory() as cache:
        for name in ("first", "cached"):
            began = time.monotonic()
            source = GitSource(repository, Path(cache))
            source.graph(source.resolve(good), source.resolve(bad))
            seconds = time.monotonic() - began
            print(f"{name}: {seconds:.2f} s, {seconds / counting:.1f} times the count ({counting:.2f} s)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])

"""CPU seconds of `plan` on a large range, the first time and later, beside what git takes for the same range.

    python -m tests.bench.large_range REPOSITORY GOOD BAD

`git rev-list --bisect` finds the commit that git bisect would test first; each of its steps takes as long.
"""

from __future__ import annotations

import sys
import tempfile

from tests.bench.process_cost import measure, perfbisect

REPEATS = 3


def main(repository: str, good: str, bad: str) -> None:
    """Print CPU seconds and ratios."""
    git = ["git", "-C", repository, "rev-list"]
    listing = measure([*git, "--count", f"{good}..{bad}"], repeats=REPEATS).cpu
    print(f"git rev-list --count: {listing:.2f} s")
    bisecting = measure([*git, "--bisect", bad, f"^{good}"], repeats=REPEATS).cpu
    print(f"git rev-list --bisect: {bisecting:.2f} s, {bisecting / listing:.1f} times the count", flush=True)
    plan = perfbisect("plan", "--repo", repository, "--good", good, "--bad", bad, "--workload", "pipe-test")
    costs: dict[str, list[float]] = {"first": [], "later": []}
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            own = {f"PERFBISECT_{part}_DIR": folder for part in ("STATE", "CACHE")}
            for seconds in costs.values():
                seconds.append(measure(plan, own).cpu)
    for name, seconds in costs.items():
        print(f"plan, {name}: {min(seconds):.2f} s, {min(seconds) / listing:.1f} times the count")


if __name__ == "__main__":
    main(*sys.argv[1:4])

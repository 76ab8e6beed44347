"""What commands cost with many bisections, beside a state of one: CPU seconds, peak memory, and their ratio.

python -m tests.bench.state.run [BISECTIONS] [TRIALS] [COMMITS] [FOLDER]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import process_cost
from tests.bench.process_cost import Cost

REPEATS = 3
"""Calls of a command that changes nothing; the cheapest counts, for other work only makes one dearer."""
LOOK = (
    "--version",
    "--help",
    "list",
    "list --all",
    "list --json",
    "queue",
    "status",
    "status {last}",
    "log {last}",
    "report {last}",
    "prune --dry-run",
)
CHANGE = ("rm {last} --yes", "prune --keep 90d --yes")


def measure(folder: Path, line: str, repeats: int = 1) -> Cost:
    """Return the cost of a command of its own process."""
    variables = {"PERFBISECT_STATE_DIR": str(folder), "PERFBISECT_CACHE_DIR": str(folder)}
    return process_cost.measure(process_cost.perfbisect(*line.split()), variables, repeats)


def _make_state(*arguments: object) -> None:
    """Make a state in a process of its own: the memory of this one would count as a command's peak."""
    program = [sys.executable, "-m", "tests.bench.state.make_state", *map(str, arguments)]
    subprocess.run(program, check=True)


def main() -> None:
    numbers, folder = [10_000, 100, 2000], Path(tempfile.mkdtemp(prefix="perfbisect-bench-state-"))
    given = sys.argv[1:]
    if len(given) > 3:
        folder = Path(given[3])
    for place, text in enumerate(given[:3]):
        numbers[place] = int(text)
    many, trials, commits = numbers
    for name, bisections in (("one", 1), ("many", many)):
        _make_state(folder / name, bisections, trials, commits)
    size = (folder / "many" / "perfbisect.sqlite").stat().st_size
    print(f"{many:,} bisections of {trials} trials on {commits:,} commits: {size / 1e6:,.0f} MB\n")
    print("| command | CPU, one | CPU, many | ratio | peak, one | peak, many |\n|---|---|---|---|---|---|")
    for line in (*LOOK, *CHANGE):
        repeats = REPEATS if line in LOOK else 1
        one = measure(folder / "one", line.format(last="fake-000000"), repeats)
        more = measure(folder / "many", line.format(last=f"fake-{many - 1:06x}"), repeats)
        memory = f"{one.memory / 1e6:.0f} MB | {more.memory / 1e6:.0f} MB"
        row = f"{one.cpu:.2f} s | {more.cpu:.2f} s | {more.cpu / one.cpu:.2f} | {memory}"
        print(f"| `{line.format(last='ID')}` | {row} |", flush=True)
    after = (folder / "many" / "perfbisect.sqlite").stat().st_size
    print(f"\nthe state file after 'prune': {after / 1e6:,.0f} MB")
    if len(given) <= 3:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

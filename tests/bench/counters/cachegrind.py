"""Misses of the model beside cachegrind's: one static program after the other, the same geometry.

python -m tests.bench.counters.cachegrind
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bisector.adapters.guest.counting.counting_plugin import counting_plugin
from bisector.adapters.system.architectures import X86_64
from tests.support.user_program import compile_program, counted, simulated

PROGRAMS = (
    *(("scatter", 1 << 20), ("scatter", 1 << 25), ("sort", 1 << 22), ("sort", 1 << 24)),
    *(("multiply", 1 << 20), ("straddle", 1 << 20)),
)


def main() -> None:
    """Print the table; cachegrind's misses at a program's start and end are taken off."""
    print("| program | first level | cachegrind | last level | cachegrind |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plugin = counting_plugin(folder, X86_64)
        around = simulated(compile_program(folder, "nothing", 4096))
        for pattern, size in PROGRAMS:
            program = compile_program(folder, pattern, size)
            ours, theirs = counted(program, plugin, folder), simulated(program)
            first, last = theirs.first - around.first, theirs.last - around.last
            print(
                f"| {pattern} {size >> 10} KiB | {ours.first:,} | {first:,} | {ours.last:,} | {last:,} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

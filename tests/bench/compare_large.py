"""A comparison of large sides: seconds and memory of `perfbisect compare` for a million samples a side.

    .venv/bin/python -m tests.bench.compare_large [SAMPLES]

Prints a line for each form of a result: CPU and wall seconds, the largest memory of the process, and the CPU
seconds as a multiple of those for ten samples a side, which is what starting costs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.bench.process_cost import measure, perfbisect

FORMS = {"numbers": "{:.6f}", "name: value": "real: {:.6f} s", "JSON": "{:.6f}"}


def write(folder: Path, form: str, samples: int) -> list[str]:
    """Write both sides, 1% apart with a spread of 10%, and return their names."""
    random = np.random.default_rng(1)
    names = []
    for side in range(2):
        values = [FORMS[form].format(v) for v in random.lognormal(0.01 * side, 0.1, samples)]
        text = f'{{"real": [{", ".join(values)}]}}' if form == "JSON" else "\n".join(values) + "\n"
        (folder / f"side{side}").write_text(text)
        names.append(str(folder / f"side{side}"))
    return names


def main(samples: int) -> None:
    """Measure every form."""
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            small = measure(perfbisect("compare", *write(Path(folder), form, 10)), repeats=3)
            cost = measure(perfbisect("compare", *write(Path(folder), form, samples)), repeats=3)
            print(
                f"{form:12} {cost.cpu:6.1f} s CPU ({cost.cpu / small.cpu:.1f} x) {cost.wall:6.1f} s wall "
                f"{cost.memory / 1e6:6.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

"""A comparison of large sides: seconds and memory of `perfbisect compare` for a million samples a side.

    .venv/bin/python -m tests.bench.compare_large [SAMPLES]

Prints a line for each form of a result: CPU and wall seconds, the largest memory of the process, and the CPU
seconds as a multiple of those for ten samples a side, which is what starting costs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

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


def measure(files: list[str]) -> tuple[float, float, float]:
    """Return (CPU seconds, wall seconds, MB) of one comparison."""
    program = "from bisector.interfaces.cli import main; main()"
    started = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", program, "compare", *files], stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime, time.monotonic() - started, used.ru_maxrss / 1000


def main(samples: int) -> None:
    """Measure every form."""
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            small = measure(write(Path(folder), form, 10))[0]
            cpu, wall, memory = measure(write(Path(folder), form, samples))
            print(f"{form:12} {cpu:6.1f} s CPU ({cpu / small:.1f} x) {wall:6.1f} s wall {memory:6.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)

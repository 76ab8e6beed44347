"""Run a bisection on fakes again and again and kill it, SIGKILL, at seeded random moments.

python kill_often.py FOLDER SEED KILLS; prints one JSON line at the end. Everything is imported once and each
attempt is a forked process of its own, because importing takes longer than a fake bisection.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from pathlib import Path

# Before the fork: what every attempt needs.
from bisector.engine import executor  # noqa: F401
from tests.support import fake_bisection

PACE = "0.02"
MOST_LINES, MOST_DELAY = 6, 0.1
"""A kill comes at most so many lines of progress after the last one, and so many seconds after that."""


def attempt(folder: str, seed: str) -> None:
    with open(Path(folder) / "out.txt", "a", buffering=1) as out:
        sys.stdout = sys.stderr = out
        sys.argv = ["fake_bisection", folder, seed, PACE]
        sys.exit(fake_bisection.main())


def _lines(folder: str) -> int:
    out = Path(folder) / "out.txt"
    return out.read_bytes().count(b"\n") if out.exists() else 0


def main() -> int:
    folder, seed, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
    moments = random.Random(int(seed))
    fork = multiprocessing.get_context("fork")
    killed, attempts, code = 0, 0, None
    while code is None:
        attempts += 1
        process = fork.Process(target=attempt, args=(folder, seed))
        process.start()
        if killed < kills:
            aim = _lines(folder) + moments.randint(0, MOST_LINES)
            while process.is_alive() and _lines(folder) < aim:
                process.join(0.005)
            process.join(moments.uniform(0, MOST_DELAY))
            if process.is_alive():
                process.kill()
                process.join()
                killed += 1
                continue
        process.join()
        code = process.exitcode
    print(json.dumps({"killed": killed, "attempts": attempts, "code": code}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

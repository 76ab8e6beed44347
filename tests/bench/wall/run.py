"""perfbisect beside 'git bisect run' with a script, each with a compiler cache that is empty at first.

python -m tests.bench.wall.run REPO GOOD BAD [ARM ...]

Arms: 'perfbisect' (the recipe that it chooses), 'defconfig' (`bisect.sh` with it), 'small' (`bisect.sh`
with the options of x86_64-small). Without arms all three are run whole: hours. An arm 'defconfig-parts' or
'small-parts' builds and boots both ends only, the second with what the first left, and counts each step of
git bisect as another second end; its line says that it is an estimate. Each arm prints wall and CPU seconds
(user, system), guests included.
"""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bisector.schemas.kernel.build_plan import load_plan
from bisector.schemas.kernel.release import Release

_HERE = Path(__file__).parent
_TOP = _HERE.parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


class Guests:
    """CPU time of guests that belong to libvirt's daemon, not to us: looked at twice a second."""

    def __init__(self, state: Path) -> None:
        digest = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:8]
        self._mark = f"guest=perfbisect-{digest}-".encode()
        self._seen: dict[str, tuple[float, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Guests:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def seconds(self) -> tuple[float, float]:
        """Return the user and system seconds of all guests so far."""
        return sum(user for user, _ in self._seen.values()), sum(system for _, system in self._seen.values())

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if self._mark in (process / "cmdline").read_bytes():
                        fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                        user, system, started = (int(fields[i]) for i in (11, 12, 19))
                        self._seen[f"{process.name} {started}"] = (user / _TICKS, system / _TICKS)
                except OSError:  # it has ended
                    continue


def arm(name: str, repo: Path, good: str, bad: str, work: Path) -> float:
    """Run one arm in an empty folder, print what it took, and return its wall seconds."""
    kind, _, parts = name.partition("-")
    moments = [_now()]
    with Guests(work / "state") as guests:
        if kind == "perfbisect":
            found = _perfbisect(repo, good, bad, work)
        else:
            found = _script(kind, repo, good, bad, work, moments, whole=not parts)
    moments.append(_now())
    total, how = moments[-1] - moments[0], "run whole"
    total[1:] += guests.seconds()
    if parts:
        steps = math.ceil(math.log2(int(_git(repo, "rev-list", "--count", f"{good}..{bad}"))))
        total = moments[1] - moments[0] + (1 + steps) * (moments[2] - moments[1])
        how = f"ESTIMATED from both ends and {steps} steps"
    wall, user, system = total
    print(f"{name}: {wall:.0f} s wall, {user:.0f} s user, {system:.0f} s system, {how}; {found}", flush=True)
    return float(wall)


def _now() -> npt.NDArray[np.float64]:
    """Return wall seconds, and the user and system seconds of the commands that have ended."""
    used = os.times()
    return np.array([time.monotonic(), used.children_user, used.children_system])


def _perfbisect(repo: Path, good: str, bad: str, work: Path) -> str:
    environment = {"PERFBISECT_CACHE_DIR": str(work / "cache"), "PERFBISECT_STATE_DIR": str(work / "state")}
    command = [sys.executable, "-c", "from bisector.interfaces.cli import main; main()", "start"]
    command += ["--repo", str(repo), "--good", good, "--bad", bad, "--workload", "pipe-test"]
    out = _run(command, _TOP, {**environment, "PYTHONPATH": str(_TOP)})
    return " ".join(out.split("Result:")[-1].split()[:3])


def _script(
    kind: str,
    repo: Path,
    good: str,
    bad: str,
    work: Path,
    moments: list[npt.NDArray[np.float64]],
    *,
    whole: bool,
) -> str:
    """Measure both ends, which gives the limit, then let git bisect run the script.

    moments: gets that behind each end.
    """
    tree, program, config = work / "tree", work / "pipe-test", work / "asked.config"
    _run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(repo), str(tree)], work, {})
    compiler = ["musl-gcc", "-static", "-no-pie", "-fno-pie", "-O2", "-o", str(program)]
    _run([*compiler, str(_TOP / "workloads" / "pipe-test" / "pipe-test.c")], work, {})
    config.write_text(load_plan("x86_64-small", Release(6, 1), "x").config)
    environment = {
        "OUT": str(work / "out"),
        "CONFIG": "defconfig" if kind == "defconfig" else str(config),
        "PROGRAM": str(program),
        "CCACHE_DIR": str(work / "ccache"),
    }
    script = str(_HERE / "bisect.sh")
    numbers = []
    for rev in (good, bad):
        _git(tree, "checkout", "--quiet", "--force", rev)
        numbers.append(float(_run([script], tree, environment)))
        moments.append(_now())
    if not whole:
        return f"{numbers[0]} s good, {numbers[1]} s bad"
    _git(tree, "bisect", "start", bad, good)
    limit = str(sum(numbers) / 2)
    out = _run(["git", "bisect", "run", script], tree, {**environment, "LIMIT": limit})
    return next((line for line in out.splitlines() if "is the first bad commit" in line), "no culprit")


def _git(folder: Path, *words: str) -> str:
    return _run(["git", *words], folder, {}).strip()


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    """Return a command's output; what it says on stderr is shown."""
    whole = {**os.environ, **environment}
    return subprocess.run(
        ["nice", *command], cwd=folder, env=whole, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def main() -> None:
    """Run the arms that are named, all of them whole if none is, and print how they compare."""
    repo, good, bad, *names = sys.argv[1:]
    walls = {}
    for name in names or ("perfbisect", "defconfig", "small"):
        with tempfile.TemporaryDirectory(prefix="perfbisect-wall-", dir="/var/tmp") as work:
            os.chmod(work, 0o755)  # builds run as another user
            walls[name.partition("-")[0]] = arm(
                name, Path(repo).expanduser().absolute(), good, bad, Path(work)
            )
    for other in ("defconfig", "small"):
        if {"perfbisect", other} <= walls.keys():
            print(f"perfbisect / {other}: {walls['perfbisect'] / walls[other]:.2f}")


if __name__ == "__main__":
    main()

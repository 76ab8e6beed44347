"""perfbisect beside 'git bisect run' with a script, each with a compiler cache that is empty at first.

python -m tests.bench.wall.run FOLDER REPO GOOD BAD [ARM ...]

Arms: 'perfbisect' (the recipe that it chooses), 'small' (`bisect.sh` with the options of x86_64-small),
'defconfig' (`bisect.sh` with it). Without arms all three are run, one after the other. FOLDER keeps
results.json, to which each arm and each step of a script is written as it ends, and the work of an arm that
is not finished: the same command goes on with the next step, or with the next arm. perfbisect begins again.
Prints wall and CPU seconds (user, system), guests included, and the ratios of what is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from bisector.schemas.kernel.build_plan import load_plan
from bisector.schemas.kernel.release import Release

_HERE = Path(__file__).parent
_TOP = _HERE.parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")
_ARMS = ("perfbisect", "small", "defconfig")
_SKIPPED = 125  # as git bisect wants it


class Step(TypedDict):
    """What one part of an arm took: seconds."""

    what: str
    answer: str
    wall: float
    user: float
    system: float


class Arm(TypedDict):
    """finished: what was found, empty while there is more to do."""

    finished: str
    steps: list[Step]


class CpuTime:
    """CPU time of an arm's commands, by a control group that has them all, and of its guests.

    Builds run behind processes that do not wait for them, so that times of children would leave them out.
    Guests belong to libvirt's daemon: they are looked at twice a second.
    """

    def __init__(self, state: Path) -> None:
        digest = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:8]
        self._mark = f"guest=perfbisect-{digest}-".encode()
        self._seen: dict[str, tuple[float, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        root = Path("/sys/fs/cgroup")
        self.group = next((r for r in (root / "cpuacct", root) if (r / "cgroup.procs").exists()), root)
        self.group /= f"perfbisect-wall-{os.getpid()}"

    def __enter__(self) -> CpuTime:
        self.group.mkdir()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        with suppress(OSError):  # a process of it is left
            self.group.rmdir()

    def seconds(self) -> tuple[float, float]:
        """Return the user and system seconds so far."""
        guests = list(self._seen.values())
        user, system = sum(user for user, _ in guests), sum(system for _, system in guests)
        if (self.group / "cpuacct.usage_user").exists():
            nanoseconds = [
                int((self.group / f"cpuacct.usage_{part}").read_text()) for part in ("user", "sys")
            ]
            return user + nanoseconds[0] / 1e9, system + nanoseconds[1] / 1e9
        lines = dict(line.split() for line in (self.group / "cpu.stat").read_text().splitlines())
        return user + int(lines["user_usec"]) / 1e6, system + int(lines["system_usec"]) / 1e6

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


class Results:
    """results.json of a folder: the arms by name."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "results.json"
        self.arms: dict[str, Arm] = json.loads(self._path.read_text()) if self._path.exists() else {}

    def save(self) -> None:
        """Write what is known by now."""
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self.arms, indent=1))
        new.replace(self._path)

    def total(self, name: str) -> tuple[float, float, float]:
        """Return the wall, user and system seconds of an arm."""
        steps = self.arms[name]["steps"]
        return sum(s["wall"] for s in steps), sum(s["user"] for s in steps), sum(s["system"] for s in steps)


class Clock:
    """Wall, user and system seconds, and commands that are counted."""

    def __init__(self, used: CpuTime) -> None:
        self._used = used
        self._last = self._now()

    def run(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Return how a command ended, with its output; what it says on stderr is shown."""
        enter = ["sh", "-c", 'echo $$ >"$0" && exec nice -n 5 "$@"', str(self._used.group / "cgroup.procs")]
        whole = {**os.environ, **environment}
        return subprocess.run(
            [*enter, *command], cwd=folder, env=whole, stdout=subprocess.PIPE, text=True, check=check
        )

    def step(self, what: str, answer: str) -> Step:
        """Return what went by since the last step."""
        now, last = self._now(), self._last
        self._last = now
        wall, user, system = (round(a - b, 2) for a, b in zip(now, last, strict=True))
        print(f"  {what}: {answer}, {wall} s wall, {user} s user, {system} s system", flush=True)
        return Step(what=what, answer=answer, wall=wall, user=user, system=system)

    def _now(self) -> tuple[float, float, float]:
        return time.monotonic(), *self._used.seconds()


def run_arm(name: str, repo: Path, good: str, bad: str, folder: Path, results: Results) -> None:
    """Run one arm, or the rest of it, in its folder, which goes when it is finished."""
    work = folder / name
    known = results.arms.get(name)
    if name == "perfbisect" or known is None or not work.exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        results.arms[name] = Arm(finished="", steps=[])
    arm = results.arms[name]
    with CpuTime(work / "state") as used:
        clock = Clock(used)
        if name == "perfbisect":
            arm["finished"] = _perfbisect(repo, good, bad, work, clock)
            arm["steps"].append(clock.step("all", arm["finished"]))
        else:
            _script(name, repo, good, bad, work, arm, clock, results)
    results.save()
    if name == "perfbisect":  # for tests.bench.progress
        shutil.rmtree(folder / "state", ignore_errors=True)
        (work / "state").rename(folder / "state")
    shutil.rmtree(work)


def _perfbisect(repo: Path, good: str, bad: str, work: Path, clock: Clock) -> str:
    environment = {"PERFBISECT_CACHE_DIR": str(work / "cache"), "PERFBISECT_STATE_DIR": str(work / "state")}
    command = [sys.executable, "-c", "from bisector.interfaces.cli import main; main()", "start"]
    command += ["--repo", str(repo), "--good", good, "--bad", bad, "--workload", "pipe-test"]
    out = clock.run(command, _TOP, {**environment, "PYTHONPATH": str(_TOP)}).stdout
    (work.parent / "perfbisect.txt").write_text(out)
    return " ".join(out.split("Result:")[-1].split()[:3])


def _script(
    name: str, repo: Path, good: str, bad: str, work: Path, arm: Arm, clock: Clock, results: Results
) -> None:
    """Measure both ends, which gives the limit, then do as 'git bisect run' does, a step at a time."""
    tree, program, config = work / "tree", work / "pipe-test", work / "asked.config"
    environment = {
        "OUT": str(work / "out"),
        "CONFIG": "defconfig" if name == "defconfig" else str(config),
        "PROGRAM": str(program),
        "CCACHE_DIR": str(work / "ccache"),
    }
    steps, script = arm["steps"], [str(_HERE / "bisect.sh")]

    def git(*words: str) -> str:
        return clock.run(["git", *words], tree, {}).stdout.strip()

    def done(what: str, answer: str) -> None:
        steps.append(clock.step(what, answer))
        results.save()

    if not steps:
        clock.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(repo), str(tree)], work, {})
        compiler = ["musl-gcc", "-static", "-no-pie", "-fno-pie", "-O2", "-o", str(program)]
        clock.run([*compiler, str(_TOP / "workloads" / "pipe-test" / "pipe-test.c")], work, {})
        config.write_text(load_plan("x86_64-small", Release(6, 1), "x").config)
        done("clone", "")
    for rev in (good, bad)[len(steps) - 1 :]:
        git("checkout", "--quiet", "--force", rev)
        done(rev, clock.run(script, tree, environment).stdout.strip())
    limit = str(sum(float(step["answer"]) for step in steps[1:3]) / 2)
    git("bisect", "start", bad, good)
    said = ""
    for step in steps[3:]:  # of an earlier run
        said = git("bisect", step["answer"])
    while "is the first bad commit" not in said:
        commit = git("describe", "--tags", "--always")
        ended = clock.run(script, tree, {**environment, "LIMIT": limit}, check=False)
        answer = {0: "good", 1: "bad", _SKIPPED: "skip"}[ended.returncode]
        said = git("bisect", answer)
        done(commit, answer)
    arm["finished"] = next(line for line in said.splitlines() if "is the first bad commit" in line)


def main() -> None:
    """Run the arms that are named, all if none is, but those that are finished; print how they compare."""
    where, repo, good, bad, *names = sys.argv[1:]
    folder = Path(where).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)  # builds run as another user
    results = Results(folder)
    for name in names or _ARMS:
        if not results.arms.get(name, Arm(finished="", steps=[]))["finished"]:
            print(name, flush=True)
            run_arm(name, Path(repo).expanduser().absolute(), good, bad, folder, results)
    for name, arm in results.arms.items():
        wall, user, system = results.total(name)
        print(f"{name}: {wall:.0f} s wall, {user:.0f} s user, {system:.0f} s system; ", end="")
        print(arm["finished"] or f"{len(arm['steps'])} steps, not finished")
        if name != "perfbisect" and arm["finished"] and results.arms.get("perfbisect"):
            mine = results.total("perfbisect")
            cpu = (mine[1] + mine[2]) / (user + system)
            print(f"  perfbisect / {name}: {mine[0] / wall:.2f} of the wall time, {cpu:.2f} of the CPU time")


if __name__ == "__main__":
    main()

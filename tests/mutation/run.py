"""`make mutants`: change the code in a few hundred places, one at a time, and see whether a test notices.

    python -m tests.mutation.run bisector/search --number 50 --seed 1

Everything happens in a copy of the tree below `.mutants/`, beside the session of this draw. Interrupted, the
same command goes on; finished, it tests the survivors again, with the tests as they are then, and what was
killed by the time limit, for the machine may have been busy.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
import tomllib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cosmic_ray.mutating import use_mutation
from cosmic_ray.plugins import get_operator
from cosmic_ray.testing import run_tests
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult
from filelock import FileLock
from scipy.stats import binomtest

from tests.mutation.draw import Mutant, draw, equivalent_mutants, is_equivalent, mutants, places

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ".mutants"
"""Folder of copies and sessions, in the root of the tree."""

PYTEST = "-m pytest -x -q --no-header -p no:cacheprovider -m 'not slow and not end_to_end'"

TIMEOUT = "timeout"
"""What cosmic-ray gives as the output of tests that took too long."""

SPARE_SECONDS = 60.0
TIME_FACTOR = 5.0
"""Tests of a mutant may take so many times what they take without it, and SPARE_SECONDS."""


@dataclass(frozen=True)
class Selection:
    """Which tests try a module, in stages: the module's own, its folder's, then what pyproject.toml names.

    own_only: tests that take so long that only the mutants of their own module are worth it.
    """

    root: Path
    then: dict[str, list[str]]
    own_only: list[str]

    def stages(self, file: str) -> list[str]:
        """Return the paths of the tests of each stage, without stages that repeat an earlier one."""
        module = Path(file).relative_to("bisector")
        covered = tomllib.loads((self.root / "tests/covered_elsewhere.toml").read_text())["covered"]
        own = Path("tests/unit") / module.with_name(f"test_{module.name}")
        if not (self.root / own).is_file():
            own = Path(str(covered.get(file, "")).partition(": ")[0])
        folder = Path("tests/unit") / module.parent if module.parent.name else Path()  # not all unit tests
        named = [tests for part, tests in self.then.items() if Path(file).is_relative_to(part)]
        stages = [[str(own)], [str(folder)], *named]
        paths = [" ".join(filter(self._exists, stage)) for stage in stages]
        first, *others = filter(None, dict.fromkeys(paths))
        without = "".join(f" --deselect={test}" for test in self.own_only)
        return [first, *(f"{stage}{without}" for stage in others)]

    def _exists(self, path: str) -> bool:
        return path != "." and (self.root / path).exists()


@dataclass
class Trial:
    """A copy of the tree, in which mutants are tested."""

    tree: Path
    selection: Selection
    seconds: dict[str, float] = field(default_factory=dict)

    def test(self, mutant: Mutant) -> WorkResult:
        """Test a mutant stage by stage until one fails or takes too long."""
        for stage in self.selection.stages(mutant.file):
            limit = SPARE_SECONDS + TIME_FACTOR * self._seconds_without_mutant(stage)
            spec = mutant.item.mutations[0]
            with use_mutation(
                self.tree / spec.module_path, get_operator(spec.operator_name)(), spec.occurrence
            ):
                outcome, output = run_tests(self._command(stage), limit)
            if outcome != TestOutcome.SURVIVED:
                break
        return WorkResult(WorkerOutcome.NORMAL, _reason(output), outcome, mutant.diff)

    def _seconds_without_mutant(self, stage: str) -> float:
        """Return how long these tests take; if they fail, end everything, for they would kill any mutant."""
        if stage not in self.seconds:
            started = time.monotonic()
            outcome, output = run_tests(self._command(stage), None)
            if outcome != TestOutcome.SURVIVED:
                raise SystemExit(f"{output}\nThese tests fail without a mutant: {stage}")
            self.seconds[stage] = time.monotonic() - started
        return self.seconds[stage]

    def _command(self, stage: str) -> str:
        # Python may keep what it compiles: `copy_tree` lets it compare sources by content.
        where = f"-C {self.tree} -u PYTHONDONTWRITEBYTECODE PYTHONPATH={self.tree}"
        return f"nice env {where} {sys.executable} {PYTEST} {stage}"


def copy_tree(root: Path, tree: Path) -> None:
    """Copy what git has or would add, the changes of the moment included."""
    shutil.rmtree(tree, ignore_errors=True)
    listed = _output("git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)
    _output(
        sys.executable,
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "checked-hash",
        str(tree / "bisector"),
    )


def run(root: Path, folders: list[str], number: int, seed: int) -> None:
    """Draw mutants, test those without a result, and print the outcome."""
    config = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutants"]
    parts = [*(folder.strip("/").replace("/", ".") for folder in folders), str(number), str(seed)]
    base = root / SESSIONS / _short("-".join(parts))
    base.parent.mkdir(exist_ok=True)
    tree = base.with_name(f"{base.name}.tree")
    with FileLock(f"{base}.lock", timeout=0), use_db(f"{base}.sqlite") as session:
        copy_tree(root, tree)
        population = places(_modules(tree, folders), tree, config["exclude-operators"])
        listed = equivalent_mutants(tree)
        drawn = {mutant.item.job_id: mutant for mutant in mutants(draw(population, number, seed), tree)}
        wanted = {job: mutant for job, mutant in drawn.items() if not is_equivalent(mutant, listed)}
        print(
            f"{len(drawn)} mutants drawn, {len(drawn) - len(wanted)} of them in the list of equivalent ones"
        )
        known = {item.job_id for item in session.work_items}
        session.add_work_items(mutant.item for job, mutant in wanted.items() if job not in known)
        _test(session, wanted, Trial(tree, Selection(tree, config["then"], config["own-only"])))
        shutil.rmtree(tree)
        results = {job: result for job, result in session.results if job in wanted}
    print(summary(wanted, results))


def _test(session: WorkDB, wanted: dict[str, Mutant], trial: Trial) -> None:
    results = dict(session.results)
    waiting = [job for job in wanted if job not in results]
    again = [job for job in wanted if job in results and is_doubtful(results[job])]
    jobs = waiting or again
    for at, job in enumerate(jobs, 1):
        result = trial.test(wanted[job])
        session.set_result(job, result)
        print(
            f"{at}/{len(jobs)} {result.test_outcome.value:9} {wanted[job].where} {result.output}", flush=True
        )


def is_doubtful(result: WorkResult) -> bool:
    """Return whether a mutant survived, or was killed by nothing but the time limit."""
    return bool(result.test_outcome == TestOutcome.SURVIVED or result.output == TIMEOUT)


def summary(wanted: dict[str, Mutant], results: dict[str, WorkResult]) -> str:
    """Return the survivors, and how many were killed, with Wilson's interval."""
    survivors = [
        wanted[job] for job, result in results.items() if result.test_outcome == TestOutcome.SURVIVED
    ]
    slow = sum(result.output == TIMEOUT for result in results.values())
    killed = len(results) - len(survivors)
    interval = binomtest(killed, len(results)).proportion_ci(method="wilson")
    return "\n".join(
        [
            *(f"\nsurvived: {m.where} {m.item.mutations[0].operator_name}\n{m.diff}" for m in survivors),
            "",
            f"{killed} of {len(results)} killed ({slow} by the time limit): {killed / len(results):.1%}, "
            f"95% interval {interval.low:.1%} to {interval.high:.1%}",
        ]
    )


def _modules(root: Path, folders: Iterable[str]) -> list[Path]:
    found = [path for folder in folders for path in _python_files(root / folder)]
    if not found:
        raise SystemExit(f"no module of Python in {' '.join(folders)}")
    return [path.relative_to(root) for path in dict.fromkeys(found)]


def _python_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []


def _short(name: str) -> str:
    """Return a name that a file may have: of one that is too long, its end and a checksum."""
    return name if len(name) < 100 else f"{name[-80:]}-{zlib.crc32(name.encode()):08x}"


def _reason(output: str) -> str:
    """Return which test failed, of pytest's output."""
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:150] if failed else TIMEOUT if output == TIMEOUT else ""


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Read the command line of `make mutants`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", help="folders or modules of bisector/ to mutate")
    parser.add_argument("--number", type=int, required=True, help="how many mutations to draw")
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args()
    run(ROOT, arguments.folders, arguments.number, arguments.seed)


if __name__ == "__main__":
    main()

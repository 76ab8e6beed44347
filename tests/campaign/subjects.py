"""What a campaign hurts: bisections on fakes, or on real guests."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.resources import resource
from tests.campaign import fake_lab, fake_process
from tests.campaign.faults import PASSED, PASSED_ON_GUESTS
from tests.campaign.invariants import Truth
from tests.campaign.supervising import RunProcess
from tests.support import demo_history, small_history

_FIRST, _LAST = 6, 8
"""Ends of the real history: commits of `small_history.CHANGES`, of which the seventh is the culprit."""


@dataclass(frozen=True)
class Subject:
    """name: of the results' file; truths: of each history; repeats: whether equal runs give equal values.

    faults: of one bisection, at least and at most; passed: see `faults.PASSED`; hang_seconds: a
    process that takes longer hangs.
    """

    name: str
    run_process: RunProcess
    start: Sequence[str]
    truths: Sequence[Truth]
    repeats: bool
    faults: tuple[int, int]
    passed: Mapping[str, int]
    hang_seconds: float


def on_fakes() -> Subject:
    """Return the bisections over `fake_lab`, each of one or two CPU seconds."""
    truths = []
    for lab in map(fake_lab.make_lab, range(fake_lab.VARIANTS)):
        (culprit,) = lab.culprits
        broken = {
            kind: frozenset(lab.graph.shas[c] for c, k in lab.untestable.items() if k == kind)
            for kind in ("build", "boot")
        }
        truths.append(Truth(lab.graph.shas[culprit], broken["build"], broken["boot"]))
    start = ("start", "--repo", "/fake", "--good", "good", "--bad", "bad", "--workload", "pipe-test")
    return Subject("fakes", fake_process.main, start, truths, True, (1, 6), PASSED, hang_seconds=600.0)


def on_guests(work: Path) -> Subject:
    """Return a bisection of two candidates on emulated guests: seven boots of 4 s, a minute undisturbed.

    work: where its repository is made. A fault costs a boot or a restart, so several strike each bisection.
    """
    from tests.campaign import real_process

    repository = work / "linux"
    ids = (
        small_history.read_ids(repository)
        if repository.exists()
        else small_history.make(repository, demo_history.prepare())
    )
    start = ("start", "--repo", str(repository), "--good", f"e2e-{_FIRST:02d}", "--bad", f"e2e-{_LAST:02d}")
    truth = Truth(ids[f"e2e-{small_history.CULPRIT:02d}"])
    command = (*start, "--workload", str(_short_workload(work / "short-pipe-test")))
    return Subject(
        "guests", real_process.main, command, [truth], False, (5, 9), PASSED_ON_GUESTS, hang_seconds=1800.0
    )


def _short_workload(folder: Path) -> Path:
    """Make pipe-test with a fifth of its round trips: half of a boot's time goes into runs."""
    shutil.copytree(resource("workloads") / "pipe-test", folder, dirs_exist_ok=True)
    manifest = folder / "workload.yaml"
    text = manifest.read_text(encoding="utf-8")
    assert '"20000"' in text
    manifest.write_text(text.replace('"20000"', '"4000"'), encoding="utf-8")
    return folder

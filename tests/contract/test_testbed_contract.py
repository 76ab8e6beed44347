"""What every Testbed promises, asked of the shipped fake and of real guests."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisector.errors import BootFailed, PerfbisectError, TestbedLost, WorkloadFailed
from bisector.model.commit_graph import CommitGraph
from bisector.ports import BuildOrder, Job, Kernel, Session, Testbed
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing import fakes
from bisector.testing.fake_testbed import FakeTestbed, job
from bisector.testing.fakes import Faults
from tests.support import guests
from tests.support.workload_jobs import shell_job

SCRIPTS = {
    "good": "echo real: 1.5",
    "failing": "echo real: 1.5; exit 3",
    "other metric": "echo unreal: 1.5",
    "nan": "echo real: nan",
}


@dataclass
class Given:
    """A testbed, a kernel that boots, one that does not, and a job for each kind of workload.

    With the fake the kind of workload belongs to the kernel, so `kernel` takes it too.
    """

    testbed: Testbed
    kernel: Callable[[str], Kernel]
    broken: Callable[[], tuple[Testbed, Kernel]]
    job: Callable[[str], Job]
    metric: str


def _fake(folder: Path) -> Given:
    graph = CommitGraph(
        shas=tuple(f"{n:040x}" for n in range(5)),
        parents=((), (0,), (1,), (2,), (3,)),
        candidate=(False, True, True, True, True),
        good=0,
        bad=4,
    )
    lab = SyntheticLab(graph, LabModel(boot_seconds=1.0, run_seconds=1.0), {}, seed=1)
    lab.untestable[4] = "boot"
    faults = Faults(no_workload=[1], no_metric=[2], nan=[3])
    testbed = FakeTestbed("fake", lab, faults=faults)
    commits = {"good": 0, "failing": 1, "other metric": 2, "nan": 3, "broken": 4}

    def kernel(kind: str) -> Kernel:
        builder = fakes.FakeBuilder(lab, folder)
        return builder.build(BuildOrder(graph.shas[commits[kind]], "x"), lambda _: None)

    return Given(testbed, kernel, lambda: (testbed, kernel("broken")), lambda _: job(folder), fakes.METRIC)


def _guest(folder: Path) -> Given:
    if importlib.util.find_spec("libvirt") is None:
        pytest.skip("libvirt-python is not installed: make deps")
    state = folder / "state"
    jobs = functools.cache(lambda kind: shell_job(folder / kind.replace(" ", "-"), SCRIPTS[kind] + "\n"))
    return Given(
        testbed=guests.testbed(state),
        kernel=lambda _: guests.kernel(),
        broken=lambda: (guests.testbed(state, cmdline="init=/nonexistent"), guests.kernel()),
        job=jobs,
        metric="real",
    )


@pytest.fixture(params=[_fake, pytest.param(_guest, marks=[pytest.mark.slow, pytest.mark.timeout(2400)])])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Given:
    given: Given = request.param(tmp_path)
    return given


def boot(given: Given, folder: Path, kind: str = "good") -> Session:
    folder.mkdir(parents=True, exist_ok=True)
    return given.testbed.boot(given.kernel(kind), given.job(kind), folder, lambda _: None)


def test_a_boot_says_what_runs_and_gives_one_finite_number_a_run(given: Given, tmp_path: Path) -> None:
    assert given.testbed.name
    assert given.testbed.clock in ("wall", "instructions")
    told: list[str] = []
    folder = tmp_path / "boot"
    folder.mkdir()
    kernel = given.kernel("good")
    session = given.testbed.boot(kernel, given.job("good"), folder, told.append)
    assert told
    assert session.facts.release == kernel.release
    assert session.facts.build_id == kernel.build_id
    assert session.facts.facts
    assert session.facts.seconds > 0
    raws = set()
    for index in range(3):
        result = session.run(index)
        assert set(result.values) == {given.metric}
        assert math.isfinite(result.values[given.metric])
        assert result.seconds > 0
        assert result.raw.is_file()
        assert folder in result.raw.parents
        raws.add(result.raw)
    assert len(raws) == 3
    session.leave()


def test_after_leaving_nothing_runs_and_the_next_boot_may_come(given: Given, tmp_path: Path) -> None:
    session = boot(given, tmp_path / "first")
    session.leave()
    session.leave()
    with pytest.raises(TestbedLost):
        session.run(0)
    again = boot(given, tmp_path / "second")
    again.run(0)
    again.leave()


@pytest.mark.parametrize("kind", ["failing", "other metric", "nan"])
def test_a_workload_without_a_number_has_failed(given: Given, tmp_path: Path, kind: str) -> None:
    session = boot(given, tmp_path / "boot", kind)
    try:
        with pytest.raises(WorkloadFailed):
            session.run(0)
    finally:
        session.leave()


def test_a_kernel_that_does_not_boot_frees_the_testbed(given: Given, tmp_path: Path) -> None:
    testbed, kernel = given.broken()
    (tmp_path / "broken").mkdir()
    with pytest.raises(BootFailed) as caught:
        testbed.boot(kernel, given.job("good"), tmp_path / "broken", lambda _: None)
    assert "Kernel panic" in caught.value.details
    session = boot(given, tmp_path / "good")
    session.run(0)
    session.leave()


def test_a_second_boot_is_refused_and_the_first_goes_on(given: Given, tmp_path: Path) -> None:
    session = boot(given, tmp_path / "first")
    try:
        with pytest.raises(PerfbisectError):
            boot(given, tmp_path / "second")
        session.run(0)
    finally:
        session.leave()

"""A seeded fake testbed: what it measures comes from the synthetic lab; see `fakes`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from bisector.errors import BootFailed, RequestError, TestbedLost, WorkloadFailed
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.goal import TestbedClock
from bisector.ports import BootFacts, Job, Kernel, MetricSpec, Monitor, Progress, RunResult
from bisector.schemas.documents.json_reader import read_json
from bisector.simulation.noise_model import SyntheticBoot, SyntheticLab
from bisector.testing.fakes import METRIC, Faults, Pace


class FakeTestbed:
    """ports.Testbed that measures in the synthetic lab, one boot at a time."""

    __test__ = False

    def __init__(
        self,
        name: str,
        lab: SyntheticLab,
        *,
        faults: Faults | None = None,
        pace: Pace | None = None,
        has_own_kernel: bool = False,
    ) -> None:
        self.name = name
        self.has_own_kernel = has_own_kernel
        self.given_back = 0
        self.clock: TestbedClock = lab.model.clock
        self._lab = lab
        self.faults, self.pace = faults or Faults(), pace or Pace()
        self.boots = 0
        self._index = {sha: i for i, sha in enumerate(lab.graph.shas)}
        self._live: FakeSession | None = None

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        """Boot a kernel; what it measures depends on the folder's name, so equal boots repeat.

        Raises BootFailed where the lab or the faults say so; RequestError while another boot is live.
        """
        if self._live is not None:
            raise RequestError(f"the testbed {self.name} runs a boot already")
        self.faults.raise_planned("boot")
        commit = self._index[kernel.sha]
        progress("booting")
        time.sleep(self.pace.boot)
        if self._lab.untestable.get(commit) == "boot":
            raise BootFailed("a fake panic", details="Kernel panic - not syncing: fake")
        self.boots += 1
        layout = int(read_json(kernel.image)["layout"])
        fresh = job.environment.get("seed") == "fresh"
        boot = self._lab.boot(commit, layout, self.name, folder.name, fresh=fresh)
        facts = BootFacts(
            kernel.release, kernel.build_id, {"clocksource": "fake"}, self._lab.model.boot_seconds
        )
        self._live = FakeSession(self, boot, facts, folder)
        return self._live

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        """Take note of it. Raises what the faults plan."""
        self.faults.raise_planned("give back")
        self.given_back += 1

    def free(self) -> None:
        """Forget the live boot."""
        self._live = None


class FakeSession:
    """ports.Session of a FakeTestbed."""

    def __init__(self, testbed: FakeTestbed, boot: SyntheticBoot, facts: BootFacts, folder: Path) -> None:
        self.facts = facts
        self._testbed, self._boot, self._folder = testbed, boot, folder
        self._gone = False

    def run(self, index: int) -> RunResult:
        """Measure once and keep the raw output in the boot's folder. Raises what the faults plan."""
        testbed, commit = self._testbed, self._boot.commit
        if self._gone:
            raise TestbedLost(f"the boot on {testbed.name} is gone")
        testbed.faults.raise_planned("run")
        time.sleep(testbed.pace.run)
        if self._gone:  # it was left while it ran, by another thread
            raise TestbedLost(f"the boot on {testbed.name} is gone")
        if commit in testbed.faults.no_workload:
            raise WorkloadFailed("the fake workload ended with code 1")
        if commit in testbed.faults.nan:
            raise WorkloadFailed(f"the workload printed nan for {METRIC}")
        seconds = self._boot.lab.model.run_seconds
        name = "another" if commit in testbed.faults.no_metric else METRIC
        value = self._boot.run(index, seconds * index)
        raw = self._folder / f"run-{index}.txt"
        raw.write_text(f"{name}: {value!r}\n", encoding="utf-8")
        if name != METRIC:
            raise WorkloadFailed(f"the workload printed no {METRIC}")
        return RunResult({METRIC: value}, seconds, seconds, raw)

    def run_monitor(self, monitor: Monitor) -> MonitorResult:
        """Return one value, the number of the commit. Raises TestbedLost, and what the faults plan."""
        if self._gone:
            raise TestbedLost(f"the boot on {self._testbed.name} is gone")
        self._testbed.faults.raise_planned("monitor")
        folder = self._folder / "monitors" / monitor.name
        folder.mkdir(parents=True, exist_ok=True)
        return MonitorResult(
            monitor.name, str(folder), (MonitorValue("commit", self._boot.commit),), ("anything else",), 1.0
        )

    def leave(self) -> None:
        """End the boot and free the testbed."""
        if not self._gone:
            self._gone = True
            self._testbed.free()


def job(folder: Path, *, warmup: int = 0) -> Job:
    """Return a job for fake testbeds: nothing of it is ever executed."""
    return Job("fake", folder, ("./fake",), (MetricSpec(METRIC, "s"),), warmup=warmup, checksum="fake")

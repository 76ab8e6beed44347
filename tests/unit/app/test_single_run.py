"""One commit by hand and an A/A series, on fakes: what is run and kept, and in which order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.agent import payload
from bisector.adapters.system import host_requirements
from bisector.adapters.system.host_requirements import GUESTS, Check
from bisector.app import single_run
from bisector.app.wiring import Wiring
from bisector.engine import state_lock
from bisector.errors import (
    BootFailed,
    BuildFailed,
    ExitCode,
    FirmwareChanged,
    InfrastructureError,
    RequestError,
    WorkloadFailed,
)
from bisector.model.facts import MonitorResult
from bisector.ports import BuildOrder, Job, Kernel, MetricSpec, Monitor, Progress, RunResult
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import Settings
from bisector.schemas.workload.workload import Workload, load_workload
from bisector.simulation.noise_model import LabModel
from bisector.stats.aa_analysis import Calibration
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import METRIC, FakeBuilder, FakeSource, Faults
from tests.support import fake_bisection

MANIFEST = f"""\
name: simulated
description: What the fakes measure.
files: [x]
run: [x]
metrics: [{{name: {METRIC}, unit: s, better: lower, threshold: 5%, decides: true}}]
warmup: 1
clocks: [wall, instructions]
"""


class Bench:
    """A lab of one fake testbed and one fake builder; the workload's warm-up is one run."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        model = LabModel(run_noise=0.2, untestable=0.0, build_seconds=60, boot_seconds=10, run_seconds=2)
        self.lab = fake_bisection.a_lab(model=model)
        self.sha = self.lab.graph.shas[self.lab.graph.good]
        self.faults = Faults()
        self.testbed = FakeTestbed("bed", self.lab, faults=self.faults)
        self.orders: list[BuildOrder] = []
        self.payload_sum = "sum"
        self.monitors: tuple[Monitor, ...] = ()
        self.wiring = Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state"))
        inventory = {
            "_meta": {"hostvars": {"bed": {"ansible_host": "192.0.2.1"}}},
            "testbeds": {"hosts": ["bed"]},
        }
        self.wiring.lab = lab_from_inventory(inventory, root / "lab.yml")
        (root / "simulated").mkdir()
        (root / "simulated" / "x").touch()
        (root / "simulated" / "workload.yaml").write_text(MANIFEST)
        monkeypatch.setattr(Wiring, "testbed", lambda wiring, name: self.testbed)
        monkeypatch.setattr(Wiring, "builder", lambda wiring: self)
        monkeypatch.setattr(Wiring, "source", lambda wiring: FakeSource(self.lab.graph))
        monkeypatch.setattr(Wiring, "trees", lambda wiring: None)
        monkeypatch.setattr(payload, "workload_job", self._job)
        self._builder = FakeBuilder(self.lab, root / "kernels", faults=self.faults)

    def _job(self, workload: Workload, folder: Path, arch: str) -> Job:
        spec = (MetricSpec(METRIC, "s"),)
        monitors = self.monitors
        return Job("simulated", folder, ("x",), spec, warmup=1, checksum=self.payload_sum, monitors=monitors)

    def build(self, order: BuildOrder, progress: Callable[[str], None]) -> Any:
        """Build while the state folder is locked, as no bisection may run meanwhile."""
        assert state_lock.find_holder(self.wiring.settings.state_dir) is not None
        self.orders.append(order)
        return self._builder.build(order, progress)

    @property
    def workload(self) -> Workload:
        return load_workload(str(self.root / "simulated"))

    def measure(self, runs: int, seen: list[MonitorResult] | None = None) -> list[RunResult]:
        folder = self.root / "out"
        folder.mkdir(exist_ok=True)
        order = BuildOrder(self.sha, "x86_64-guest")
        on_monitor = seen.append if seen is not None else lambda result: None
        return list(
            single_run.measure_commit(
                self.wiring, self.workload, order, runs, folder, print, on_monitor=on_monitor
            )
        )

    def calibrate(self, boots: int = 2, runs: int = 3, fresh: bool = False) -> tuple[Calibration, Path]:
        return single_run.calibration(self.wiring, self.series(boots, runs, fresh), lambda text: None)

    def series(self, boots: int, runs: int = 3, fresh: bool = False) -> single_run.RepeatedRuns:
        workload = str(self.root / "simulated")
        return single_run.RepeatedRuns("good", workload, None, "x86_64-guest", None, boots, runs, fresh)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def is_free(bench: Bench) -> bool:
    """Whether the testbed can boot again and nobody holds the state folder's lock."""
    return bench.testbed._live is None and state_lock.find_holder(bench.wiring.settings.state_dir) is None


def test_a_commit_is_built_booted_once_and_run_after_its_warm_up(bench: Bench) -> None:
    results = bench.measure(3)
    assert len(results) == 4
    assert (bench.testbed.boots, [order.sha for order in bench.orders]) == (1, [bench.sha])
    assert is_free(bench)


def test_monitors_run_after_the_others(bench: Bench) -> None:
    bench.monitors = (Monitor("dmesg", ()),)
    seen: list[MonitorResult] = []
    bench.measure(2, seen)
    assert [result.monitor for result in seen] == ["dmesg"]


@pytest.mark.parametrize(
    ("planned", "error"),
    [("build", BuildFailed("no")), ("boot", BootFailed("panic")), ("run", WorkloadFailed("code 1"))],
)
def test_what_fails_is_told_and_leaves_the_testbed_and_the_lock_free(
    bench: Bench, planned: str, error: Exception
) -> None:
    bench.faults._planned[planned][1] = error
    with pytest.raises(type(error)):
        bench.measure(2)
    assert is_free(bench)


def test_a_reader_that_stops_early_ends_the_boot(bench: Bench) -> None:
    (bench.root / "out").mkdir()
    order = BuildOrder(bench.sha, "x86_64-guest")
    runs = single_run.measure_commit(bench.wiring, bench.workload, order, 9, bench.root / "out", print)
    next(runs)
    assert not is_free(bench)
    runs.close()  # type: ignore[attr-defined]
    assert is_free(bench)


@pytest.mark.parametrize("kind", ["libvirt", "ssh"])
def test_what_guests_need_is_asked_before_the_kernel_is_compiled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    missing = Check("libvirtd", wrong="not installed", cure="apt-get install libvirt-daemon", needed=GUESTS)
    monkeypatch.setattr(host_requirements, "checks", lambda *_: [missing])
    monkeypatch.setattr(host_requirements, "has_libvirt", lambda: False)
    variables = {"ansible_host": "192.0.2.1", "perfbisect_kind": kind}
    bed = {"_meta": {"hostvars": {"bed": variables}}, "testbeds": {"hosts": ["bed"]}}
    bench.wiring.lab = lab_from_inventory(bed, bench.root / "lab.yml")
    for measure in (lambda: bench.measure(1), bench.calibrate):
        if kind == "libvirt":
            with pytest.raises(InfrastructureError, match="libvirtd: not installed"):
                measure()
        else:
            measure()
    assert bool(bench.orders) is (kind == "ssh")
    assert is_free(bench)


def test_a_workload_that_needs_fragments_gets_them_built_in(bench: Bench) -> None:
    manifest = bench.root / "simulated" / "workload.yaml"
    manifest.write_text(MANIFEST + "requires: {kernel: [block]}\n")
    bench.measure(1)
    assert [order.recipe for order in bench.orders] == ["x86_64-guest+block"]


def test_a_commit_is_not_measured_while_another_process_has_the_state_folder(bench: Bench) -> None:
    with state_lock.lock(bench.wiring.settings.state_dir, "a bisection"), pytest.raises(state_lock.Busy):
        bench.measure(1)
    assert bench.orders == []


# --- A/A series ---------------------------------------------------------------------------------------------


def boots_in(path: Path) -> Sequence[dict[str, Any]]:
    found: Sequence[dict[str, Any]] = json.loads(path.read_text())["boots"]
    return found


def test_every_boot_of_a_series_is_kept_without_its_warm_up(bench: Bench) -> None:
    found, path = bench.calibrate(boots=3, runs=4)
    assert bench.testbed.boots == 3
    assert [len(boot["values"]) for boot in boots_in(path)] == [4, 4, 4]
    assert json.loads(path.read_text())["facts"] == {
        "commit": bench.sha,
        "recipe": "x86_64-guest",
        "payload": "sum",
        "clock": "wall",
        "unit": "s",
    }
    assert found.boots == 3
    assert is_free(bench)


def test_boots_of_emulated_guests_are_samples_of_each_other(bench: Bench) -> None:
    """With the same random numbers they repeat each other, and those kept from such a series do not count."""
    _, path = bench.calibrate(boots=2)
    manifest = bench.root / "simulated" / "workload.yaml"
    manifest.write_text(MANIFEST.replace("[wall]", "[instructions]"))
    model = replace(bench.lab.model, clock="instructions", copied=True)
    bench.testbed = FakeTestbed("bed", fake_bisection.a_lab(model=model))
    bench.calibrate(boots=4)
    assert len({tuple(boot["values"]) for boot in boots_in(path)}) == 4
    assert json.loads(path.read_text())["facts"]["seed"] == "fresh"


def test_a_series_goes_on_where_it_was_interrupted(bench: Bench) -> None:
    bench.faults._planned["boot"][3] = BootFailed("panic")
    with pytest.raises(BootFailed):
        bench.calibrate(boots=4)
    _, path = bench.calibrate(boots=4)
    assert (bench.testbed.boots, len(boots_in(path))) == (4, 4)
    assert bench.calibrate(boots=4)[1] == path
    assert bench.testbed.boots == 4, "all boots are there: none is made"


def test_fresh_and_another_payload_begin_again(bench: Bench) -> None:
    bench.calibrate(boots=2)
    bench.calibrate(boots=2, fresh=True)
    assert bench.testbed.boots == 4
    bench.payload_sum = "another"
    _, path = bench.calibrate(boots=2)
    assert bench.testbed.boots == 6, "boots of another program do not compare"
    assert len(boots_in(path)) == 2


def test_fresh_does_not_read_what_was_kept(bench: Bench) -> None:
    """The cure of a damaged calibration was to calibrate again, which read it again."""
    _, path = bench.calibrate(boots=2)
    path.write_text("{")
    with pytest.raises(InfrastructureError, match="not a calibration") as caught:
        bench.calibrate(boots=2)
    assert "--fresh" in caught.value.cure
    bench.calibrate(boots=2, fresh=True)
    assert len(boots_in(path)) == 2


class UpdatedTestbed(FakeTestbed):
    """A testbed whose boots tell what is in `machine`."""

    machine: Mapping[str, str] = {}

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        session = super().boot(kernel, job, folder, progress)
        session.facts = replace(session.facts, facts={**session.facts.facts, **self.machine})
        return session


def test_boots_from_before_and_after_a_firmware_update_are_not_one_series(bench: Bench) -> None:
    bench.testbed = updated = UpdatedTestbed("bed", bench.lab, faults=bench.faults)
    updated.machine = {"machine.bios": "F2"}
    _, path = bench.calibrate(boots=2)
    updated.machine = {"cpu.microcode": "0x1"}
    bench.calibrate(boots=3)  # this kernel shows less of it
    for update, what in (
        ({"machine.bios": "F3"}, "firmware (BIOS): F2 -> F3"),
        ({"cpu.microcode": "0x2"}, "microcode: 0x1 -> 0x2"),
    ):
        updated.machine = update
        with pytest.raises(
            FirmwareChanged, match="the firmware of the testbed 'bed' changed since"
        ) as caught:
            bench.calibrate(boots=4)
        assert (caught.value.details, caught.value.exit_code) == (what, ExitCode.WRONG_REQUEST)
        assert "--fresh" in caught.value.cure
    assert (len(boots_in(path)), is_free(bench)) == (3, True)
    assert bench.calibrate(boots=3)[0].boots == 3, "what was measured before is as it was"
    bench.calibrate(boots=2, fresh=True)
    assert (len(boots_in(path)), json.loads(path.read_text())["machine"]) == (2, {"cpu.microcode": "0x2"})


def test_boots_of_two_machines_of_one_name_are_not_one_series(bench: Bench) -> None:
    bench.testbed = replaced = UpdatedTestbed("bed", bench.lab)
    replaced.machine = {"cpu.model": "Old CPU", "machine.bios": "F2"}
    _, path = bench.calibrate(boots=2)
    for machine in ({"cpu.model": "New CPU"}, {"cpu.model": "New CPU", "machine.bios": "F2"}):
        replaced.machine = machine
        with pytest.raises(FirmwareChanged, match="the machine of the testbed 'bed' changed") as caught:
            bench.calibrate(boots=3)
        assert caught.value.details == "processor: Old CPU -> New CPU"
    assert len(boots_in(path)) == 2


def test_a_series_of_an_earlier_version_tells_no_firmware_and_goes_on(bench: Bench) -> None:
    _, path = bench.calibrate(boots=2)
    kept = json.loads(path.read_text())
    del kept["machine"]
    path.write_text(json.dumps(kept))
    bench.testbed = updated = UpdatedTestbed("bed", bench.lab)
    updated.machine = {"machine.bios": "F2"}
    assert bench.calibrate(boots=3)[0].boots == 3


@pytest.mark.parametrize(("boots", "runs"), [(1, 3), (3, 1)])
def test_a_series_of_one_is_refused(bench: Bench, boots: int, runs: int) -> None:
    with pytest.raises(RequestError, match="at least two boots with two runs each"):
        bench.calibrate(boots=boots, runs=runs)


def test_kexec_is_compared_with_reboots_in_equal_numbers_and_goes_on_after_an_interruption(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RequestError, match="does not boot by kexec"):
        single_run.kexec_comparison(bench.wiring, bench.series(8), print)
    hosts = {"bed": {"perfbisect_kind": "ssh", "perfbisect_boot_method": "kexec", "ansible_host": "bed"}}
    listing = {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": ["bed"]}}
    bench.wiring.lab = lab_from_inventory(listing, bench.root / "lab.yml")
    with pytest.raises(RequestError, match="--boots 6 is not a multiple of 4"):
        single_run.kexec_comparison(bench.wiring, bench.series(6), print)
    faults = Faults(boot={7: BootFailed("it hangs")})
    ways = {way: FakeTestbed(way, bench.lab, faults=faults) for way in ("reboot", "kexec")}
    monkeypatch.setattr(single_run, "kexec_testbeds", lambda wiring, name: ways)
    with pytest.raises(BootFailed):
        single_run.kexec_comparison(bench.wiring, bench.series(12), print)
    result, path = single_run.kexec_comparison(bench.wiring, bench.series(12), print)
    boots = [one["testbed"] for one in json.loads(path.read_text())["boots"]]
    assert boots == ["reboot", "kexec", "kexec", "reboot"] * 3
    assert (result.compared.a.boots, result.compared.b.boots) == (6, 6)
    assert not result.compared.significant, "one kernel, one fake machine"
    assert path != bench.calibrate()[1], "searches do not start from what two ways gave"


def test_no_series_begins_on_this_machine_itself(bench: Bench) -> None:
    """Its kernel was compiled first, and refused when it was to be booted."""
    data = {"_meta": {"hostvars": {"bed": {"perfbisect_kind": "local"}}}, "testbeds": {"hosts": ["bed"]}}
    bench.wiring.lab = lab_from_inventory(data, bench.root / "lab.yml")
    with pytest.raises(RequestError, match="'bed' is this machine, and boots no kernels"):
        bench.measure(1)
    assert not bench.orders

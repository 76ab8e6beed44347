"""A health check on fakes: which kernel is measured, what makes a testbed suspect, and when it returns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.agent import payload
from bisector.adapters.packages.kernel_list import read_kernels
from bisector.app import calibrate
from bisector.app.calibrate import Measured
from bisector.app.execution import health_check, health_kernel
from bisector.app.execution.health_check import Health, check_health, check_now, health_store
from bisector.app.wiring import Wiring
from bisector.errors import BootFailed, InfrastructureError, Interrupted, RequestError
from bisector.model.decisions import Interval
from bisector.model.goal import Metric, Threshold
from bisector.model.leases import TestbedState, TestbedStatus
from bisector.model.machines.health import CHECKED_BY
from bisector.model.records import Booted
from bisector.model.stored_bisection import Stored
from bisector.ports import BuildOrder, Fix, Job, Kernel, MetricSpec, Progress
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import KnownFix
from bisector.schemas.settings import Settings
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.stats.reference_check import Judgement
from bisector.testing.fake_testbed import FakeTestbed
from bisector.testing.fakes import METRIC, FakeBuilder, FakeSource, Faults
from tests.support import fake_bisection as fake
from tests.support.kernels import kernel_packages as packages

MODEL = LabModel(run_noise=0.3, boot_noise=0.2)
LAST_BISECTION = health_kernel.last_bisection
"""Which `Bench` replaces."""


class Bench:
    """A lab of one fake testbed, 'bed', that measures in `lab`; a bisection has used it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.lab = fake.a_lab(model=MODEL)
        self.faults = Faults()
        self.told: list[str] = []
        self.wiring = Wiring(
            Settings(cache_dir=root / "cache", state_dir=root / "state", lock_dir=root / "locks", **settings)
        )
        variables = {"bed": {"ansible_host": "192.0.2.1"}}
        inventory = {"_meta": {"hostvars": variables}, "testbeds": {"hosts": ["bed"]}}
        self.wiring.lab = lab_from_inventory(inventory, root / "lab.yml")
        monkeypatch.setattr(Wiring, "testbed", lambda *_: FakeTestbed("bed", self.lab, faults=self.faults))
        monkeypatch.setattr(Wiring, "builder", lambda *_, **__: FakeBuilder(self.lab, root / "kernels"))
        monkeypatch.setattr(Wiring, "source", lambda *_: FakeSource(self.lab.graph))
        monkeypatch.setattr(Wiring, "trees", lambda *_: None)
        monkeypatch.setattr(
            payload,
            "workload_job",
            lambda workload, folder, arch: Job("pipe-test", folder, ("x",), (MetricSpec(METRIC, "s"),)),
        )
        monkeypatch.setattr(health_kernel, "recipe_for", lambda *_, **__: "x86_64-guest")
        times = iter(range(1, 10_000))  # each boot has a folder of its own, and so its own noise
        monkeypatch.setattr(self.wiring.clock, "now", lambda: float(next(times)))
        accepted = fake.accepted(self.lab, ("bed",))
        request = accepted.request.model_copy(update={"recipe": "x86_64-guest"})
        self.accepted = accepted.model_copy(update={"request": request})
        monkeypatch.setattr(health_kernel, "last_bisection", lambda wiring, testbed: self.accepted)
        # What the fakes measure is no metric of pipe-test.
        monkeypatch.setattr(
            "bisector.schemas.workload.workload.Workload.metric",
            lambda *_: Metric(METRIC, "s", "lower", Threshold(0.05)),
        )

    def check(self, stop: Any = None) -> Health:
        return check_health(self.wiring, "bed", self.told.append, stop)

    def slow_down(self, percent: float) -> None:
        level = LabModel(run_noise=0.3, boot_noise=0.2, level=100.0 + percent)
        self.lab = SyntheticLab(self.lab.graph, level, {fake.CULPRIT: 10.0}, 1)

    @property
    def status(self) -> TestbedStatus | None:
        return next(iter(self.wiring.coordinator.testbeds()), None)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def fail(bench: Bench, error: Exception, boots: int = 2) -> None:
    """Let so many boots fail, from the next one on."""
    bench.faults = Faults(boot=dict.fromkeys(range(1, boots + 1), error))


def test_the_first_check_makes_a_reference_and_the_next_is_compared_with_it(bench: Bench) -> None:
    first = bench.check()
    assert (first.outcome, first.state, len(health_store(bench.wiring).points("bed"))) == ("sound", "good", 3)
    assert first.words.endswith("is kept as the reference, 3 of 8 boots")
    second = bench.check()
    assert second.judgement is not None and second.judgement.judged == "as before"
    assert "against its first 3 boots" in second.words
    assert second.kernel["commit"] == bench.accepted.good
    assert bench.status is None, "a sound testbed needs no word"
    assert not list((bench.wiring.settings.state_dir / "health" / "bed").glob("[0-9]*"))


def test_a_testbed_that_became_noisy_is_told_with_both_spreads(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A usual spread of less than 0.005% was '.00%'."""
    bench.check()
    noisy = Judgement("noisy", 3, Interval(0.0, 0.0, 0.0), 0.0001, 0.031, 0.000021)
    monkeypatch.setattr("bisector.app.execution.health_check.judge", lambda *_: noisy)
    found = bench.check()
    assert "spread by 3.1%, not 0.0021% against its first 3 boots" in found.words
    assert (found.outcome, found.state) == ("noisy", "suspect")


def test_a_testbed_that_moved_is_suspect_with_numbers_until_a_person_releases_it(bench: Bench) -> None:
    bench.check()
    bench.slow_down(20)
    found = bench.check()
    assert (found.outcome, found.state) == ("moved", "suspect")
    status = bench.status
    assert status is not None
    assert (status.state, status.by) == ("suspect", CHECKED_BY)
    assert "+2" in status.reason and "against its first 3 boots" in status.reason and "p " in status.reason
    points = health_store(bench.wiring).points("bed")
    assert [p.outcome for p in points] == ["sound"] * 3 + ["moved"] * 2
    bench.slow_down(0)
    again = bench.check()
    assert (again.outcome, again.state) == ("sound", "suspect"), "it made two levels: a person decides"
    assert "against its first 3 boots" in again.words, "boots that moved are no reference"


def test_levels_that_creep_are_compared_with_the_first_boots(bench: Bench) -> None:
    for _ in range(6):
        first = bench.check()
    for _ in range(8):
        crept = tuple(1.2 * value for value in first.values)
        health_store(bench.wiring).add_point("bed", first.kernel, "sound", "", crept)
    bench.slow_down(20)
    found = bench.check()
    assert found.outcome == "moved" and "against its first 8 boots" in found.words


def test_the_reason_of_a_suspect_testbed_is_what_its_last_check_has_found(bench: Bench) -> None:
    def reason() -> str:
        assert bench.status is not None and bench.status.state == "suspect"
        return bench.status.reason

    bench.check()
    bench.slow_down(20)
    bench.check()
    first = reason()
    bench.slow_down(40)
    bench.check()
    assert "+4" in reason() and reason() != first
    bench.wiring.coordinator.set_testbed("bed", "good", "", "bob")
    for error in ("no power", "no address"):
        fail(bench, InfrastructureError(error))
        bench.check()
        assert reason() == error


def test_one_boot_that_stands_out_is_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.check()
    real = health_check._measure
    calls = iter([True, False])

    def once(*arguments: Any) -> tuple[float, ...]:
        values = real(*arguments)
        return tuple(2 * v for v in values) if next(calls) else values

    monkeypatch.setattr(health_check, "_measure", once)
    found = bench.check()
    assert (found.outcome, found.state) == ("sound", "good")
    assert len(health_store(bench.wiring).points("bed")) == 5, "the boot that stood out is kept as well"
    assert "once more" in " ".join(bench.told)


@pytest.mark.parametrize("error", [InfrastructureError("no power"), BootFailed("a panic")])
def test_a_testbed_that_does_not_boot_is_suspect_and_returns_when_it_measures_as_before(
    bench: Bench, error: Exception
) -> None:
    bench.check()
    fail(bench, error)
    found = bench.check()
    assert (found.outcome, found.state) == ("failed", "suspect")
    assert str(error) in found.words
    fail(bench, error)
    assert bench.check().state == "suspect"
    before = len(health_store(bench.wiring).points("bed"))
    back = bench.check()
    assert (back.outcome, back.state) == ("sound", "good")
    assert len(health_store(bench.wiring).points("bed")) == before + 2, (
        "two boots in a row: one can be chance"
    )
    status = bench.status
    assert status is not None and status.reason.startswith("boots again; ")


def test_one_fault_passes(bench: Bench) -> None:
    fail(bench, InfrastructureError("no power"), boots=1)
    assert bench.check().state == "good"


def test_a_kernel_that_never_booted_there_says_nothing_about_the_testbed(bench: Bench) -> None:
    fail(bench, BootFailed("a panic"))
    with pytest.raises(RequestError, match="cannot be checked with") as e:
        bench.check()
    assert "health_commit" in e.value.cure
    assert bench.status is None


def test_a_check_that_is_stopped_blames_nobody(bench: Bench) -> None:
    fail(bench, InfrastructureError("the guest was ended"), boots=9)
    with pytest.raises(Interrupted):
        bench.check(lambda: True)
    assert (bench.status, list(health_store(bench.wiring).points("bed"))) == (None, [])


def test_the_kernel_stays_that_of_the_first_check_unless_settings_name_one(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.check()
    other = bench.accepted.model_copy(update={"good": bench.lab.graph.shas[3]})
    kept = check_health(bench.wiring, "bed", print, accepted=other)
    assert kept.kernel["commit"] == bench.accepted.good, "whatever is bisected"
    bench.wiring.settings = bench.wiring.settings.model_copy(update={"health_commit": "bad"})
    named = bench.check()
    assert named.kernel["commit"] == bench.lab.graph.shas[bench.lab.graph.bad]
    assert named.words.endswith("3 of 8 boots"), "another kernel, another reference"


def test_without_any_kernel_the_cure_says_where_to_name_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_kernel, "last_bisection", lambda wiring, testbed: None)
    with pytest.raises(RequestError, match="no bisection has used it") as e:
        bench.check()
    assert "health_commit" in e.value.cure


def test_by_hand_what_is_in_maintenance_is_checked_and_what_is_retired_is_not(bench: Bench) -> None:
    bench.wiring.coordinator.set_testbed("bed", "maintenance", "new memory", "bob")
    assert check_now(bench.wiring, "bed", print).state == "maintenance"
    assert check_now(bench.wiring, "bed", print, fresh=True).words.endswith("3 of 8 boots")
    bench.wiring.coordinator.set_testbed("bed", "retired", "sold", "bob")
    with pytest.raises(RequestError, match="retired: sold"):
        check_now(bench.wiring, "bed", print)
    with pytest.raises(RequestError, match="no testbed 'bad'"):
        check_now(bench.wiring, "bad", print)


def test_two_faults_with_a_sound_boot_between_them_are_chance(bench: Bench) -> None:
    error = InfrastructureError("no power")
    bench.faults = Faults(boot={1: error, 3: error})
    assert (bench.check().state, bench.status) == ("good", None)


@pytest.mark.parametrize("values", [(), (0.0, 1.0)])
def test_a_boot_of_which_no_run_counts_has_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, values: tuple[float, ...]
) -> None:
    bench.check()

    def measure(*arguments: Any, **more: Any) -> list[Measured]:
        return [
            replace(one, boot=replace(one.boot, values=values))
            for one in calibrate.measure(*arguments, **more)
        ]

    monkeypatch.setattr(health_check, "measure", measure)
    found = bench.check()
    assert (found.outcome, found.state) == ("failed", "suspect")
    assert found.words == "no run of pipe-test counts: each was flagged as suspicious"


def test_the_kernel_is_that_of_the_last_bisection_that_booted_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_kernel, "last_bisection", LAST_BISECTION)
    graph = bench.lab.graph
    for created, good in enumerate(graph.shas[1:4]):
        asked = {"good": good, "testbeds": ("bed", "other")}
        request = bench.accepted.model_copy(update=asked).model_dump_json()
        bench.wiring.store.create(Stored(f"b-{created}", float(created), request, "queued", graph))
    bench.wiring.store.append("b-0", Booted("b1", 0, "bed", True, 10.0, 1.0))
    bench.wiring.store.append("b-1", Booted("b1", 0, "bed", True, 10.0, 1.0))
    bench.wiring.store.append("b-2", Booted("b1", 0, "other", True, 10.0, 1.0))
    bench.wiring.store.create(Stored("b-9", 9.0, '{"of": "a newer version"}', "queued", graph))
    bench.wiring.store.append("b-9", Booted("b1", 0, "bed", True, 10.0, 1.0))
    assert bench.check().kernel["commit"] == graph.shas[2]


def test_a_kernel_of_a_list_is_unpacked_and_stays_that_of_later_checks(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in no repository: before each of their searches it said 'could not be checked'."""
    monkeypatch.setattr(Wiring, "builder", lambda *_, **__: pytest.fail("nothing is compiled"))
    debs = [packages.deb(tmp_path, version) for version in ("6.1.1-1", "6.1.2-1")]
    kernels = read_kernels(packages.listed(tmp_path, *debs))
    asked = {"good": kernels[0].id, "bad": kernels[1].id, "kernels": kernels}
    bench.accepted = bench.accepted.model_copy(update=asked)
    made: list[str] = []

    def measured(wiring: Wiring, prepared: Any, progress: Any) -> tuple[float, ...]:
        made.append(prepared.kernel.release)
        return (1.0, 1.1, 1.2)

    monkeypatch.setattr(health_check, "_measure", measured)
    assert bench.check().kernel["commit"] == kernels[0].id
    monkeypatch.setattr(health_kernel, "last_bisection", lambda wiring, testbed: None)
    assert bench.check().outcome == "sound"
    assert set(made) == {kernels[0].release} and len(made) == 4
    assert "pipe-test on 6.1.1-1 " in health_store(bench.wiring).points("bed")[-1].words
    assert len({json.dumps(dict(p.kernel)) for p in health_store(bench.wiring).points("bed")}) == 1


def test_a_machine_in_maintenance_stays_there_with_the_words_of_who_works_on_it(bench: Bench) -> None:
    bench.check()
    bench.wiring.coordinator.set_testbed("bed", "maintenance", "new memory", "bob")
    fail(bench, InfrastructureError("no power"))
    found = check_now(bench.wiring, "bed", bench.told.append)
    assert (found.outcome, found.state) == ("failed", "maintenance")
    status = bench.status
    assert status is not None and (status.state, status.reason, status.by) == (
        "maintenance",
        "new memory",
        "bob",
    )


def test_a_machine_that_a_person_takes_during_a_check_stays_theirs(bench: Bench) -> None:
    def take(state: TestbedState) -> Health:
        coordinator = bench.wiring.coordinator
        return check_health(
            bench.wiring, "bed", lambda text: coordinator.set_testbed("bed", state, "mine", "bob")
        )

    bench.check()
    fail(bench, InfrastructureError("the power is cut"))
    assert take("maintenance").state == "maintenance"
    bench.wiring.coordinator.set_testbed("bed", "good", "", "bob")
    fail(bench, InfrastructureError("no power"))
    assert bench.check().state == "suspect"
    found = take("retired")
    assert (found.outcome, found.state) == ("sound", "retired"), "it boots again, and is sold all the same"
    assert bench.status is not None and (bench.status.state, bench.status.by) == ("retired", "bob")


def test_what_moved_and_then_did_not_boot_is_still_for_a_person(bench: Bench) -> None:
    bench.check()
    bench.slow_down(20)
    assert bench.check().outcome == "moved"
    bench.slow_down(0)
    fail(bench, InfrastructureError("no power"))
    assert bench.check().outcome == "failed"
    again = bench.check()
    assert (again.outcome, again.state) == ("sound", "suspect")
    assert bench.status is not None and "against its first 3 boots" in bench.status.reason


def test_a_machine_is_given_back_whatever_was_found_and_whoever_stops_it_is_heard(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = FakeTestbed("bed", bench.lab)
    heard: list[object] = []

    def testbed(wiring: Wiring, name: str, stop: object) -> FakeTestbed:
        heard.append(stop)
        return machine

    def builder(wiring: Wiring, repo: str, stop: object) -> FakeBuilder:
        heard.append(stop)
        return FakeBuilder(bench.lab, tmp_path / "kernels")

    monkeypatch.setattr(Wiring, "testbed", testbed)
    monkeypatch.setattr(Wiring, "builder", builder)

    def stop() -> bool:
        return False

    bench.check(stop)
    assert (machine.given_back, heard) == (1, [stop, stop])
    machine.faults = Faults(boot={1: BootFailed("a panic"), 2: BootFailed("a panic")})
    assert bench.check(stop).outcome == "failed"
    assert machine.given_back == 2


def test_a_testbed_that_boots_no_kernels_is_not_checked(bench: Bench, tmp_path: Path) -> None:
    inventory = {
        "_meta": {"hostvars": {"bed": {"perfbisect_kind": "local"}}},
        "testbeds": {"hosts": ["bed"]},
    }
    bench.wiring.lab = lab_from_inventory(inventory, tmp_path / "lab.yml")
    with pytest.raises(RequestError, match="boots no kernels"):
        bench.check()


def test_another_program_or_clock_has_a_reference_of_its_own(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.check()
    bench.lab = fake.a_lab(model=replace(MODEL, clock="instructions"))
    assert bench.check().words.endswith("3 of 8 boots")
    assert "against its first 3 boots" in bench.check().words
    made = payload.workload_job
    monkeypatch.setattr(payload, "workload_job", lambda *given: replace(made(*given), checksum="another"))
    assert bench.check().words.endswith("3 of 8 boots")


def test_patches_and_fixes_of_a_bisection_are_built_at_each_check(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders: list[BuildOrder] = []
    build = FakeBuilder.build

    def see(self: FakeBuilder, order: BuildOrder, progress: Progress) -> Kernel:
        orders.append(order)
        return build(self, order, progress)

    monkeypatch.setattr(FakeBuilder, "build", see)
    fixes = (KnownFix(sha="f" * 40, guilty=("a" * 40, "b" * 40)),)
    request = bench.accepted.request.model_copy(update={"apply": ("/a.patch", "/b.patch")})
    bench.accepted = bench.accepted.model_copy(update={"request": request, "fixes": fixes})
    bench.check()
    first = bench.check()
    bench.wiring.settings = bench.wiring.settings.model_copy(update={"health_commit": "bad"})
    bench.check()
    bench.wiring.settings = bench.wiring.settings.model_copy(update={"health_commit": None})
    assert bench.check().kernel["commit"] == bench.lab.graph.shas[bench.lab.graph.bad], "of the last check"
    assert "against its first 3 boots" in first.words
    assert orders[0] == orders[1]
    assert orders[1].patches == (Path("/a.patch"), Path("/b.patch"))
    assert orders[1].fixes == (Fix("f" * 40, ("a" * 40, "b" * 40)),)


def test_the_first_kernel_is_of_the_bisection_that_is_to_use_the_testbed(bench: Bench) -> None:
    other = bench.accepted.model_copy(update={"good": bench.lab.graph.shas[3]})
    found = check_health(bench.wiring, "bed", print, accepted=other)
    assert found.kernel["commit"] == other.good


def test_facts_of_a_point_are_plain_json(bench: Bench) -> None:
    found = bench.check()
    assert json.loads(json.dumps(dict(found.kernel)))["workload"] == "pipe-test"

"""What counts as a try of a commit whose runs never count, and whose trouble a builder is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.engine import trial_runner
from bisector.engine.trial_kernels import TrialKernels
from bisector.errors import InfrastructureError
from bisector.model.decisions import Measure
from bisector.ports import RunResult
from bisector.testing.fake_testbed import FakeSession
from tests.unit.engine.machines.test_known_kernel import BROKEN, GOOD, PANIC, Bench


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.0)


@pytest.fixture
def sick(monkeypatch: pytest.MonkeyPatch) -> set[object]:
    """Where no run counts, as where the clock jumps: testbeds, (number of boot, testbed), commits."""
    found: set[object] = set()
    run = FakeSession.run

    def flag(self: FakeSession, index: int) -> RunResult:
        result, name = run(self, index), self._testbed.name
        places = {name, (self._testbed.boots, name), self._boot.commit}
        return replace(result, flags=("clock",)) if places & found else result

    monkeypatch.setattr(FakeSession, "run", flag)
    return found


def long_trial(bench: Bench, testbed: str) -> InfrastructureError | None:
    return bench.opened.carry_out(Measure(BROKEN, 6, "search", "scripted"), testbed)


def untestable(bench: Bench) -> dict[int, str]:
    return dict(bench.opened.journal.state.untestable)


def test_boots_that_a_known_kernel_has_excused_are_no_tries(tmp_path: Path, sick: set[object]) -> None:
    bench = Bench(tmp_path, {}, machine=True)
    sick.add("fake")
    lost = long_trial(bench, "fake")
    assert lost is not None
    assert "ran well on 'fake' before, and does not now: none of 5 runs can be counted" in lost.message
    assert len(bench.opened.journal.uncounted_boots(BROKEN, "fake")) == 1
    sick.remove("fake")
    sick.add((bench.testbed.boots + 1, "fake"))  # one more boot in which nothing counts, then all is well
    assert long_trial(bench, "fake") is None
    assert len(bench.opened.journal.uncounted_boots(BROKEN, "fake")) == 2
    assert untestable(bench) == {}


def test_boots_on_another_testbed_are_no_tries_on_this_one(tmp_path: Path, sick: set[object]) -> None:
    bench = Bench(tmp_path, {}, machine=False, elsewhere=True)
    for testbed in ("fake", "other"):
        machine = bench.opened.trials._services.testbeds[testbed]
        sick.add((machine.boots + 1, testbed))  # type: ignore[attr-defined]
        assert long_trial(bench, testbed) is None
        assert len(bench.opened.journal.uncounted_boots(BROKEN, testbed)) == 1
    assert untestable(bench) == {}


def test_short_trials_come_to_a_verdict_after_a_known_kernel(tmp_path: Path, sick: set[object]) -> None:
    bench = Bench(tmp_path, {}, machine=True)
    sick.add(BROKEN)
    for _ in range(10):
        visits = bench.opened.journal.state.visits
        live = next((v.boot for v in visits if v.commit == BROKEN and v.live), None)
        assert not untestable(bench)
        assert bench.opened.carry_out(Measure(BROKEN, 1, "search", "scripted", live), "fake") is None
        if untestable(bench):
            break
    assert untestable(bench) == {BROKEN: "workload fails: none of 5 runs can be counted: clock"}
    checks = [event.text for event in bench.events if "the known kernel is well" in event.text]
    assert len(checks) == 2, "after each boot"
    flagged = [len(v.flagged) for v in bench.opened.journal.state.visits if v.commit == BROKEN]
    assert flagged == [5, 5]


def test_a_builder_that_fails_to_build_the_known_kernel_is_no_fault_of_the_testbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, {2: PANIC}, machine=True)
    build = TrialKernels.build

    def fail(self: TrialKernels, measure: Measure, *rest: object) -> object:
        if measure.commit == GOOD:
            raise InfrastructureError("the builder 'b1' does not answer")
        return build(self, measure, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(TrialKernels, "build", fail)
    with pytest.raises(InfrastructureError, match="'b1' does not answer"):
        bench.measure(BROKEN)
    assert bench.failures == []


def test_kernels_that_fail_are_tries_that_the_testbed_did_not_break(tmp_path: Path) -> None:
    gone = InfrastructureError("the network is gone")
    broken = dict.fromkeys((1, 2, 4, 5, 13), gone)
    bench = Bench(tmp_path, {**broken, **dict.fromkeys(range(7, 13), PANIC)}, machine=False, known=False)
    assert [bench.measure(commit) for commit in (1, 2, 3, 4, 6, 7)] == [None] * 6
    assert len(bench.failures) == 3
    assert sum("the network is gone" in event.text for event in bench.events) == 5

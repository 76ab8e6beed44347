"""The journal: each record is taken in once, whoever wrote it; a stuck planner is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.memory_store import MemoryStore
from bisector.engine.journal import FLAGGED_RUNS, Journal, lose_boots_on
from bisector.errors import FirmwareChanged, InfrastructureError, RequestError
from bisector.model.decisions import Conclusion, Ending, Measure
from bisector.model.facts import MonitorResult
from bisector.model.goal import Goal, Metric, Threshold
from bisector.model.records import Booted, Built, Discarded, Left, Marked, Ran, RunFailed
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear

GRAPH = linear(5)
GOAL = Goal(Metric("m", "s", "lower", Threshold(0.05)))


class CountingStore(MemoryStore):
    """Counts how often records are read back."""

    reads = 0

    def records(self, bisection: str, *, after: int = 0):  # type: ignore[no-untyped-def]
        self.reads += 1
        return super().records(bisection, after=after)


@pytest.fixture
def store() -> CountingStore:
    store = CountingStore()
    store.create(Stored("b", 1.0, "{}", "new", GRAPH))
    return store


def journal(store: MemoryStore, folder: Path) -> Journal:
    return Journal(store, "b", GRAPH, GOAL, folder)


def decide(kept: Journal, testbed: str, trial: Measure) -> bool:
    return kept.begin_trial(testbed, trial, kept.trials()[0])


def booted(boot: str, commit: int = 2, **more: str) -> Booted:
    return Booted(boot, commit, "t", True, 7.0, 1.0, **more)  # type: ignore[arg-type]


def measure(commit: int) -> Measure:
    return Measure(commit, 1, "search", "why")


def test_what_it_writes_is_applied_and_not_read_back(store: CountingStore, tmp_path: Path) -> None:
    kept = journal(store, tmp_path)
    reads = store.reads
    kept.record(booted("b1"))
    decide(kept, "t", measure(2))
    kept.record(Ran("b1", 0, {"m": 1.0}, 2.0, 3.0))
    assert kept.state.visits[0].samples == ((0, 1.0),)
    assert store.reads == reads
    assert len(kept.state.records) == 2


def test_what_others_wrote_in_between_is_taken_in_once_and_in_order(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    kept.record(booted("b1"))
    store.append("b", Marked(3, "skip", "known"))
    kept.record(Ran("b1", 0, {"m": 1.0}, 2.0, 3.0))
    assert [type(r) for r in kept.state.records] == [Booted, Marked, Ran]
    kept.refresh()
    assert len(kept.state.records) == 3


def test_boots_and_trials_that_a_killed_process_left_open_are_over(
    store: CountingStore, tmp_path: Path
) -> None:
    for record in (booted("b1"), booted("b2"), Left("b2")):
        store.append("b", record)
    kept, elsewhere = journal(store, tmp_path), journal(store, tmp_path)
    decide(elsewhere, "t", measure(2))
    decide(elsewhere, "other", measure(2))
    kept.lose_boots(lambda testbed: testbed == "other")
    assert [r for r in kept.state.records if isinstance(r, Left)] == [Left("b2")]
    assert list(kept.trials()[1]) == ["t"]
    kept.lose_boots(lambda testbed: testbed == "t")
    assert [r for r in kept.state.records if isinstance(r, Left)] == [Left("b2"), Left("b1", lost=True)]
    assert kept.trials()[1] == {}


def test_whoever_has_a_testbed_ends_what_others_left_there_and_nothing_else(store: CountingStore) -> None:
    for boot, testbed in (("b1", "a"), ("b2", "a"), ("b3", "b")):
        store.append("b", Booted(boot, 0, testbed, True, 1.0, 1.0))
    store.append("b", Left("b1"))
    store.append("b", Booted("b4", 0, "a", False, 1.0, 1.0, failure="panic"))
    for _ in range(2):
        lose_boots_on(store, "b", "a")
    left = [record for _, record in store.records("b") if isinstance(record, Left)]
    assert left == [Left("b1"), Left("b2", lost=True)]


def test_a_boot_in_which_the_workload_failed_has_ended(store: CountingStore) -> None:
    for record in (booted("b1"), booted("b2"), RunFailed("b1", "no metric")):
        store.append("b", record)
    lose_boots_on(store, "b", "t")
    assert [r for _, r in store.records("b") if isinstance(r, Left)] == [Left("b2", lost=True)]


def test_what_was_decided_elsewhere_meanwhile_refuses_a_trial_and_whatever_happened_a_conclusion(
    store: CountingStore, tmp_path: Path
) -> None:
    kept, elsewhere = journal(store, tmp_path), journal(store, tmp_path)
    seen, _ = kept.trials()
    assert decide(elsewhere, "a", measure(2))
    assert not kept.begin_trial("b", measure(2), seen)
    assert decide(kept, "b", measure(3))
    for testbed in "ab":
        kept.end_trial(testbed)
    seen, _ = kept.trials()
    elsewhere.record(booted("b1"))
    end = Conclusion(Ending.INCONCLUSIVE, "over")
    assert not kept.conclude(end, seen)
    assert kept.conclude(end, kept.trials()[0])
    assert [type(d) for _, d in store.decisions("b")] == [Measure, Measure, Conclusion]


def test_a_planner_that_repeats_itself_is_stuck_unless_something_was_recorded(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    for _ in range(3):
        decide(kept, "t", measure(2))
    kept.record(Built(2, True, 1.0, "k"))
    for _ in range(3):
        decide(kept, "t", measure(2))
    decide(kept, "other", measure(2))
    decide(kept, "t", measure(3))
    for _ in range(3):
        decide(kept, "t", measure(2))
    with pytest.raises(InfrastructureError, match="does not move: why"):
        decide(kept, "t", measure(2))


def test_ids_of_boots_are_used_once_even_when_a_folder_is_left_over(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    assert kept.new_boot() == "boot-001"
    assert kept.new_boot() == "boot-002", "the first was never recorded, but has its folder"
    kept.record(booted("boot-003"))
    (tmp_path / "boots" / "boot-001").rmdir()
    (tmp_path / "boots" / "boot-002").rmdir()
    assert kept.new_boot() == "boot-004", "the third was recorded"


def test_runs_are_counted_by_boot_warm_up_included(store: CountingStore, tmp_path: Path) -> None:
    kept = journal(store, tmp_path)
    for record in (booted("b1"), booted("b2"), Ran("b1", 0, {"m": 1.0}, 2.0, 3.0, warmup=True)):
        kept.record(record)
    assert (kept.next_run("b1"), kept.next_run("b2")) == (1, 0)


def test_monitors_have_had_their_runs_for_a_commit_on_a_testbed(store: CountingStore, tmp_path: Path) -> None:
    kept = journal(store, tmp_path)
    kept.record(booted("b1", 2))
    kept.record(Left("b1", monitors=(MonitorResult("proc"),)))
    assert kept.monitored(2, "t") == {"proc"}
    assert not kept.monitored(2, "other")
    assert not kept.monitored(3, "t")


def test_a_kernel_counts_as_measured_by_another_commit_only_with_samples(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    kept.record(Built(2, True, 1.0, "same"))
    kept.record(booted("b1", 2))
    assert not kept.is_measured_elsewhere("same", 3)
    kept.record(Ran("b1", 0, {"m": 1.0}, 2.0, 3.0))
    assert kept.is_measured_elsewhere("same", 3)
    assert not kept.is_measured_elsewhere("same", 2), "its own samples are no other commit's"
    assert not kept.is_measured_elsewhere("other", 3)


def test_workload_and_image_must_stay_what_they_were_on_a_testbed(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    kept.check_unchanged("t", workload="w1", image="")
    kept.record(booted("b1", workload="w1", image="i1"))
    kept.check_unchanged("t", workload="w1", image="i1")
    kept.check_unchanged("t", workload="", image="")  # nobody knows yet
    kept.check_unchanged("other", workload="w2", image="i2")
    with pytest.raises(RequestError, match="the workload's files changed"):
        kept.check_unchanged("t", workload="w2", image="i1")
    with pytest.raises(RequestError, match="the guest image changed") as caught:
        kept.check_unchanged("t", workload="w1", image="i2")
    assert caught.value.details == "then i1\nnow  i2"


def test_firmware_must_stay_what_it_was_on_a_testbed(store: CountingStore, tmp_path: Path) -> None:
    kept = journal(store, tmp_path)
    kept.record(replace(booted("b1"), facts={"cpu.microcode": "0x1", "machine.bios": "F2"}))
    kept.check_firmware("t", {"cpu.microcode": "0x2"})  # a boot without samples compares with nothing
    kept.record(Ran("b1", 0, {"m": 1.0}, 2.0, 3.0))
    kept.check_firmware("t", {"cpu.microcode": "0x1"})  # a kernel without DMI tells no BIOS
    kept.check_firmware("other", {"cpu.microcode": "0x2"})
    with pytest.raises(FirmwareChanged, match="the firmware of the testbed 't' changed") as caught:
        kept.check_firmware("t", {"cpu.microcode": "0x1", "machine.bios": "F3"})
    assert caught.value.details == "firmware (BIOS): F2 -> F3"
    assert f"'perfbisect discard {kept.id} --boot BOOT', for each of b1" in caught.value.cure
    kept.record(Discarded("boot", "b1"))
    kept.check_firmware("t", {"machine.bios": "F3"})


def test_another_machine_in_the_place_of_a_testbed_is_refused(store: CountingStore, tmp_path: Path) -> None:
    """Its board was replaced, or the inventory leads to another address: that is no change by a commit."""
    kept = journal(store, tmp_path)
    kept.record(replace(booted("b1"), facts={"cpu.model": "Xeon  E5", "machine.bios": "F2"}))
    kept.record(Ran("b1", 0, {"m": 1.0}, 2.0, 3.0))
    kept.check_firmware("t", {"cpu.model": "Xeon E5"})  # Linux 4.2 has taken blanks out
    kept.check_firmware("t", {"machine.bios": "F2"})
    kept.check_firmware("other", {"cpu.model": "Xeon E7"})
    with pytest.raises(FirmwareChanged, match="the machine of the testbed 't' changed since") as caught:
        kept.check_firmware("t", {"cpu.model": "Xeon E7", "machine.bios": "F9"})
    assert caught.value.details == "processor: Xeon  E5 -> Xeon E7"


def test_the_command_line_must_stay_what_it_was_on_a_testbed(store: CountingStore, tmp_path: Path) -> None:
    kept = journal(store, tmp_path)
    assert kept.first_facts("t") == {}
    facts = {"machine.cmdline": "ro quiet", "own.release": "6.1-1"}
    kept.record(replace(booted("b1"), facts=facts))
    kept.record(Ran("b1", 0, {"m": 1.0}, 2.0, 3.0))
    kept.check_firmware("t", facts | {"own.release": "6.1-2"})  # samples do not mix by that
    assert kept.first_facts("t") == facts
    assert kept.first_facts("other") == {}
    with pytest.raises(FirmwareChanged, match="the command line of kernels on the testbed 't' changed") as e:
        kept.check_firmware("t", {"machine.cmdline": "ro nosmt"})
    assert e.value.details == "command line of kernels: ro quiet -> ro nosmt"


def test_a_boot_with_a_run_that_counts_is_no_failure_however_many_others_do_not(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    for boot, counts in (("b1", True), ("b2", False)):
        kept.record(booted(boot))
        for index in range(FLAGGED_RUNS):
            kept.record(Ran(boot, index, {"m": 1.0}, 2.0, 3.0, flags=("clock",)))
        if counts:
            kept.record(Ran(boot, FLAGGED_RUNS, {"m": 1.0}, 2.0, 3.0))
    assert kept.uncounted_boots(2, "t") == ["b2"]
    assert kept.uncounted_boots(3, "t") == [], "of another commit, which has tries of its own"


def test_a_late_answer_is_told_to_be_one_also_where_kernels_boot_elsewhere(
    store: CountingStore, tmp_path: Path
) -> None:
    kept = journal(store, tmp_path)
    kept.record(booted("b1"))  # on 't'
    for late in (True, False):
        doubt = kept.find_doubt(3, "u", workload=False, late=late, shown_well=False)
        assert ("raise its perfbisect_boot_timeout" in doubt) == late
        assert ("a kernel booted on 't', and never here" in doubt) == (not late)


def test_the_first_facts_are_those_of_the_first_boot_that_told_any(
    store: CountingStore, tmp_path: Path
) -> None:
    """Else whatever a later boot says would seem new to it."""
    kept = journal(store, tmp_path)
    for boot, facts in (("b1", {}), ("b2", {"governor": "performance"}), ("b3", {"governor": "powersave"})):
        kept.record(replace(booted(boot), facts=facts))
    assert kept.first_facts("t") == {"governor": "performance"}

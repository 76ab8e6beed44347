"""From a level that moved to its confirmation: what is suspected, of whom, and what follows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.series import accept_night, follow_night, night_chore
from bisector.app.series.show_series import show_series
from bisector.app.wiring import Wiring
from bisector.errors import NotFound
from bisector.model.alerts import Finding, Triage
from bisector.model.decisions import Conclusion, Ending, Interval
from bisector.model.goal import Threshold
from bisector.model.records import Booted, Discarded, Ran
from bisector.model.series import Night, NightVerdict, VerdictStatus
from bisector.model.stored_bisection import REMOVING
from bisector.schemas.kernel.cpu_model import load_cpu_models
from bisector.schemas.request import Accepted, Request, read_accepted
from tests.support.series.series_lab import DAY, SeriesLab

LEARNT = 16
"""Nights after which a series has verdicts."""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    lab = SeriesLab(tmp_path, monkeypatch)
    lab.add()
    return lab


def learn(lab: SeriesLab) -> None:
    for number in range(1, LEARNT + 1):
        lab.keep_night(f"c{number}")
    lab.push(f"c{LEARNT}")


def until_suspect(lab: SeriesLab, status: str = "suspect") -> Night:
    """Let nights pass until one is suspect; each has a commit of its own."""
    for number in range(len(lab.nights()) + 1, len(lab.nights()) + 8):
        night = lab.night(f"c{number}")
        assert night.verdict is not None
        if night.verdict.status == status:
            return night
    raise AssertionError(f"no night is {status}")


def test_a_regression_is_found_confirmed_and_told(lab: SeriesLab) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    assert lab.alerts.suspects == []
    night = until_suspect(lab)
    assert night.number <= LEARNT + 4
    ((alert, why),) = lab.alerts.suspects
    assert (alert.direction, alert.series, alert.testbed, alert.metric) == (
        "regression",
        "pipe",
        "bed",
        "real",
    )
    assert (alert.workload, alert.repo) == ("pipe-test", str(lab.repo)), "which its bisection measures"
    assert lab.origin.name(alert.last_good) in {f"c{n}" for n in range(LEARNT - 2, LEARNT + 1)}
    assert alert.effect.low < 0.05 < alert.effect.high
    assert why.startswith(f"night {night.number}: the level moved by")
    assert night.verdict is not None
    assert f"between the nights {night.verdict.last_good} and {night.verdict.first_bad}" in why
    ((identity, outcome, effect, tip),) = lab.alerts.ended
    assert (identity, outcome, tip) == ("alert-1", "confirmed", night.commit)
    assert effect is not None
    assert effect.low < 0.05 < effect.high
    assert (night.confirmed, night.confirmation[:10]) == ("confirmed", "pipe-confi")
    stored = lab.wiring.store.load(night.confirmation)
    accepted = read_accepted(stored.request)
    assert stored.graph.shas == (alert.last_good, night.commit)
    assert accepted.night is not None
    assert (accepted.night.alert, accepted.request.find) == ("alert-1", "regression")
    # The nights after it are the new normal: nothing is suspected again.
    (begins,) = [n for n in lab.nights() if n.new_level]
    assert night.verdict is not None
    assert begins.number == night.verdict.first_bad
    for number in range(night.number + 1, night.number + 3):
        lab.night(f"c{number}")
    assert len(lab.alerts.suspects) == 1


def test_a_boot_without_a_run_is_no_point(lab: SeriesLab) -> None:
    lab.push("c1")
    lab.now += DAY
    lab.chore.do()
    (begun,) = lab.nights()
    lab.wiring.store.append(begun.bisection, Booted("boot-x", 1, "bed", True, 6.0, lab.now, purpose="search"))
    lab.work()
    (night,) = lab.nights()
    assert night.state == "measured" and night.verdict is not None
    points = lab.store.points("pipe")
    assert len(points) == 5 and all(one.values for one in points)
    assert "boot-x" not in {one.boot for one in points}


@pytest.mark.parametrize("status", ["running", "paused", "interrupted"])
def test_a_night_whose_bisection_rests_is_measured_when_that_goes_on(lab: SeriesLab, status: str) -> None:
    lab.push("c1")
    lab.now += DAY
    lab.chore.do()
    (begun,) = lab.nights()
    lab.wiring.store.set_status(begun.bisection, status)
    lab.chore.do()
    assert lab.nights()[0].state == "running"
    lab.wiring.store.set_status(begun.bisection, "queued")
    lab.work()
    assert lab.nights()[0].state == "measured"


def executed_night(lab: SeriesLab) -> tuple[Night, Conclusion]:
    """Return the next night, whose bisection has ended and is not collected yet, and how that ended."""
    lab.now += DAY
    lab.chore.do()
    lab.execute()
    (night,) = lab.nights()
    conclusion = lab.wiring.store.load(night.bisection).conclusion
    assert conclusion is not None
    return night, conclusion


def test_a_night_keeps_when_each_boot_measured_and_what_its_bisection_warned_of(lab: SeriesLab) -> None:
    night, conclusion = executed_night(lab)
    warned = replace(conclusion, warnings=("the clock jumped.", "the disk is full."))
    lab.wiring.store.set_status(night.bisection, "done", warned)
    first, second = (follow_night.collect(lab.wiring, night) for _ in range(2))
    assert first is not None and first.note == "the clock jumped. the disk is full."
    assert second is None, "another worker was first, and judges it"
    begun: dict[str, float] = {}
    for _, record in lab.wiring.store.records(night.bisection):
        if isinstance(record, Ran):
            begun.setdefault(record.boot, record.at)
    points = lab.store.points("pipe")
    assert {point.boot: point.at for point in points} == begun
    assert {len(point.values) for point in points} == {3}


def test_what_a_night_measured_before_it_failed_is_kept(lab: SeriesLab) -> None:
    night, conclusion = executed_night(lab)
    ended = replace(conclusion, ending=Ending.INCONCLUSIVE, summary="the budget is used")
    lab.wiring.store.set_status(night.bisection, "done", ended)
    assert follow_night.collect(lab.wiring, night) is None
    (night,) = lab.nights()
    assert (night.state, night.why) == ("failed", "the budget is used")
    assert len(lab.store.points("pipe")) == 5


def test_the_commit_that_is_confirmed_is_the_newest_not_the_first_that_was_slower(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verdicts(nights: list[Night], *_: object) -> dict[int, NightVerdict]:
        suspect = NightVerdict("suspect", 0.01, 1, 2, Interval(0.04, 0.05, 0.06))
        return {one.number: suspect if one.number == 4 else NightVerdict("learning") for one in nights}

    monkeypatch.setattr(follow_night, "verdicts", verdicts)
    for number in range(1, 5):
        night = lab.night(f"c{number}")
    ((alert, _),) = lab.alerts.suspects
    found = [lab.origin.name(commit) for commit in (alert.last_good, alert.first_bad, alert.tip)]
    assert found == ["c1", "c2", "c4"]
    assert lab.wiring.store.load(night.confirmation).graph.shas == (alert.last_good, alert.tip)
    assert [night.number for night in lab.nights() if night.new_level] == [2]
    ((_, outcome, _, _),) = lab.alerts.ended
    assert outcome == lab.nights()[-1].confirmed == "rejected", "nothing was slower"


def test_a_night_whose_bisection_is_being_removed_says_so(lab: SeriesLab) -> None:
    lab.now += DAY
    lab.chore.do()
    (night,) = lab.nights()
    lab.wiring.store.set_status(night.bisection, REMOVING)
    lab.chore.do()
    (night,) = lab.nights()
    assert (night.state, night.why) == ("failed", f"its bisection '{night.bisection}' is being removed")


def test_an_older_commit_is_judged_by_the_nights_before_it(lab: SeriesLab) -> None:
    for number in range(2, 2 * LEARNT + 2, 2):
        lab.keep_night(f"c{number}")
    lab.push(f"c{2 * LEARNT}")
    newest = lab.night(f"c{2 * LEARNT + 2}")
    early = lab.nights()[1]
    place, number = early.place - DAY / 2, newest.number + 1
    lab.store.add_night(Night("pipe", number, lab.now, place, kind="backfill", commit=lab.origin.ids["c3"]))
    lab.work()
    found = {night.number: night.verdict for night in lab.nights()}
    filled, last = found[number], found[newest.number]
    assert filled is not None and filled.status == "learning", "one night was before it"
    assert last is not None and last.status == "steady"


@pytest.mark.parametrize("status", ["suspect", "testbed suspect"])
def test_a_night_that_is_filled_in_may_make_the_newest_one_suspect(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, status: VerdictStatus
) -> None:
    """Its testbed is taken out of use by a night of its own only."""
    for number in (2, 4, 6):
        lab.keep_night(f"c{number}")

    def verdicts(nights: list[Night], *_: object) -> dict[int, NightVerdict]:
        moved = NightVerdict(status, 0.01, 1, 2, Interval(0.04, 0.05, 0.06))
        return {one.number: moved if one.number == 3 else NightVerdict("learning") for one in nights}

    monkeypatch.setattr(follow_night, "verdicts", verdicts)
    place = lab.nights()[0].place - DAY / 2
    lab.store.add_night(Night("pipe", 4, lab.now, place, kind="backfill", commit=lab.origin.ids["c1"]))
    lab.work()
    assert [lab.origin.name(alert.tip) for alert, _ in lab.alerts.suspects] == ["c6"] * (status == "suspect")
    found = {night.number: night for night in lab.nights()}
    assert found[4].verdict == NightVerdict("learning")
    assert [n for n, night in found.items() if night.confirmation] == [3] * (status == "suspect")
    assert lab.wiring.coordinator.testbeds() == []


def test_the_firmware_of_a_night_is_what_its_boots_tell(lab: SeriesLab) -> None:
    for number, microcode in ((1, "0x1"), (2, "0x1"), (2, "0x2")):
        lab.push(f"c{number}")
        lab.now += DAY
        lab.chore.do()
        begun = lab.nights()[-1].bisection
        lab.wiring.store.append(begun, Booted("b0", 1, "bed", False, 6.0, lab.now, failure="panic"))
        facts = {"cpu.microcode": microcode}
        lab.wiring.store.append(begun, Booted("b1", 1, "bed", True, 6.0, lab.now, facts=facts))
        lab.work()
    assert [night.new_level for night in lab.nights()] == [False, False, True]
    note = lab.nights()[-1].note
    assert note.startswith("no new commit; ") and "microcode: 0x1 -> 0x2" in note


def test_what_moved_is_told_in_the_unit_of_the_threshold(lab: SeriesLab) -> None:
    lab.culprit, lab.effect, lab.threshold = LEARNT + 1, 0.05, Threshold(1.0, relative=False)
    learn(lab)
    until_suspect(lab)
    ((alert, why),) = lab.alerts.suspects
    assert alert.unit == "s" and alert.effect.low < 5 < alert.effect.high
    assert f"the level moved by {alert.effect.estimate:+.4g} s (" in why and "%" not in why
    assert [told[1:3] for told in lab.alerts.ended] == [("confirmed", None)], "a part would be no seconds"
    found = show_series(lab.wiring, "pipe")
    assert (found["unit"], found["effect_unit"]) == ("s", "s")


def test_an_improvement_is_confirmed_as_one(lab: SeriesLab) -> None:
    lab.culprit, lab.effect = LEARNT + 1, -0.05
    learn(lab)
    night = until_suspect(lab)
    ((alert, _),) = lab.alerts.suspects
    assert alert.direction == "improvement"
    assert read_accepted(lab.wiring.store.load(night.confirmation).request).request.find == "fix"
    ((_, outcome, effect, _),) = lab.alerts.ended
    assert outcome == "confirmed"
    assert effect is not None
    assert effect.high < 0


def test_a_throughput_that_falls_is_a_regression(lab: SeriesLab) -> None:
    lab.culprit, lab.effect, lab.better = LEARNT + 1, -0.05, "higher"
    learn(lab)
    night = until_suspect(lab)
    ((alert, _),) = lab.alerts.suspects
    assert (alert.direction, night.confirmed) == ("regression", "confirmed")
    assert read_accepted(lab.wiring.store.load(night.confirmation).request).request.find == "regression"


def test_a_testbed_whose_reference_moved_too_is_taken_out_of_use_and_no_kernel_is_blamed(
    lab: SeriesLab,
) -> None:
    learn(lab)
    lab.testbed_effect = 0.05
    until_suspect(lab, "testbed suspect")
    (status,) = lab.wiring.coordinator.testbeds()
    assert (status.name, status.state, status.by) == ("bed", "suspect", "series pipe")
    assert "the reference by" in status.reason
    assert lab.alerts.suspects == []


@pytest.mark.parametrize("by", ["this series", "another one"])
def test_a_testbed_that_changed_for_good_is_released_once(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    learn(lab)
    lab.testbed_effect = 0.05
    coordinator = lab.wiring.coordinator
    if by == "another one":
        coordinator.set_testbed("bed", "suspect", "it moved", "series other")
    night = until_suspect(lab, "testbed suspect")
    assert night.verdict is not None
    assert [n.number for n in lab.nights() if n.new_level] == [night.verdict.first_bad]
    coordinator.set_testbed("bed", "good", "new memory", "ann")
    for number in range(night.number + 1, night.number + 6):
        lab.night(f"c{number}")
    assert [status.state for status in coordinator.testbeds()] == ["good"]
    assert lab.alerts.suspects == []


def test_a_testbed_that_people_work_on_is_found_to_have_moved_once_they_give_it_back(lab: SeriesLab) -> None:
    learn(lab)
    lab.testbed_effect = 0.05
    coordinator = lab.wiring.coordinator
    coordinator.set_testbed("bed", "maintenance", "new memory", "ann")
    until_suspect(lab, "testbed suspect")
    assert [status.state for status in coordinator.testbeds()] == ["maintenance"]
    coordinator.set_testbed("bed", "good", "", "ann")
    until_suspect(lab, "testbed suspect")
    assert [status.state for status in coordinator.testbeds()] == ["suspect"]


def test_a_level_that_moves_without_a_new_commit_is_the_testbeds(lab: SeriesLab) -> None:
    learn(lab)
    lab.unbuildable = [0]  # no reference, which would have told
    lab.testbed_effect = 0.05
    for _ in range(4):
        night = lab.night()
    assert night.verdict is not None
    assert lab.alerts.suspects == []
    assert [status.state for status in lab.wiring.coordinator.testbeds()] == ["suspect"]


@pytest.mark.parametrize(("finding", "triage"), [("bisecting", None), ("suspect", "infrastructure")])
def test_what_alerts_know_already_is_not_confirmed_again(
    lab: SeriesLab, finding: Finding, triage: Triage | None
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    lab.alerts.finding, lab.alerts.triage = finding, triage
    learn(lab)
    night = until_suspect(lab)
    assert night.confirmation == ""
    assert [n.state for n in lab.nights()] == ["measured"] * len(lab.nights())


def end_confirmations(lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, how: Callable[[str], object]) -> None:
    """Have the confirmations that are queued end so from now on. how: is given the id of each."""
    execute = lab.execute

    def execute_the_others() -> int:
        for one in lab.wiring.store.list(statuses=("queued",)):
            if "-confirm-" in one.id:
                how(one.id)
        return execute()

    monkeypatch.setattr(lab, "execute", execute_the_others)


@pytest.mark.parametrize("how", ["cancelled", "failed", "removed", "budget spent"])
def test_a_confirmation_that_compared_nothing_leaves_the_regression_for_a_later_night(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    store = lab.wiring.store

    def end(identity: str) -> None:
        if how == "removed":
            store.remove(identity)
        elif how == "budget spent":
            store.set_status(identity, "done", Conclusion(Ending.INCONCLUSIVE, "The budget is spent."))
        else:
            store.set_status(identity, how)

    with monkeypatch.context() as first:
        end_confirmations(lab, first, end)
        night = until_suspect(lab)
    assert night.confirmed == "undecided"
    assert [told[1:3] for told in lab.alerts.ended] == [("undecided", None)] * (how != "removed")
    assert [series for series, _ in lab.alerts.lost] == ["pipe"] * (how == "removed")
    assert [n.number for n in lab.nights() if n.new_level] == []
    told = len(lab.alerts.suspects)
    follow_night.judge(lab.wiring, lab.store.load("pipe"), night, lab.alerts)  # as after a back-filled night
    assert len(lab.alerts.suspects) == told and lab.nights()[-1] == night
    assert until_suspect(lab).confirmed == "confirmed"
    assert len([n for n in lab.nights() if n.new_level]) == 1


def test_a_suspect_is_not_confirmed_twice_while_its_confirmation_rests(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    with monkeypatch.context() as resting:
        end_confirmations(lab, resting, lambda one: lab.wiring.store.set_status(one, "paused"))
        first = until_suspect(lab)
        later = lab.night(f"c{first.number + 1}")
    assert first.confirmation and first.confirmed is None
    assert later.verdict is not None and later.verdict.status == "suspect"
    assert later.confirmation == "" and len(lab.alerts.suspects) == 1


def test_a_confirmation_that_no_number_of_boots_decides_begins_a_new_level(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    found = Conclusion(Ending.INCONCLUSIVE, "24 boots a side", total=Interval(0.0, 0.01, 0.02))
    end_confirmations(lab, monkeypatch, lambda one: lab.wiring.store.set_status(one, "done", found))
    night = until_suspect(lab)
    assert night.confirmed == "undecided"
    assert night.verdict is not None
    assert [n.number for n in lab.nights() if n.new_level] == [night.verdict.first_bad]


def test_a_night_whose_bisection_is_removed_does_not_hold_its_confirmation_up(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    end_confirmations(lab, monkeypatch, lambda _: lab.wiring.store.remove(lab.nights()[-1].bisection))
    night = until_suspect(lab)
    assert night.confirmed == "confirmed"
    assert lab.alerts.ended[0][2] is not None


def test_a_night_whose_bisection_is_removed_before_it_is_judged_holds_nothing_up(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(night_chore, "judge", lambda *_: None)
        unjudged = lab.night("c1")
    lab.wiring.store.remove(unjudged.bisection)
    lab.chore.do()
    (night,) = lab.nights()
    assert night.verdict is not None
    assert night.verdict.status == "unmeasured"
    assert not night.is_open


@pytest.mark.parametrize("earlier", [0, 2])
def test_a_night_whose_boots_were_all_discarded_has_measured_nothing(lab: SeriesLab, earlier: int) -> None:
    for number in range(1, earlier + 1):
        lab.keep_night(f"c{number}")
    lab.push(f"c{earlier + 1}")
    lab.now += DAY
    lab.chore.do()
    night = lab.nights()[-1]
    lab.execute()
    for _, record in lab.wiring.store.records(night.bisection):
        if isinstance(record, Booted):
            lab.wiring.store.append(night.bisection, Discarded("boot", record.boot))
    lab.chore.do()
    night = lab.nights()[-1]
    assert night.state == "measured"
    assert night.verdict is not None
    assert night.verdict.status == "unmeasured"
    assert not night.is_open
    after = lab.night(f"c{earlier + 2}")
    assert after.verdict is not None
    assert after.verdict.status == "learning"


def test_noise_that_doubles_one_day_is_seldom_suspect_and_then_not_confirmed(lab: SeriesLab) -> None:
    learn(lab)
    lab.noise *= 2
    for number in range(LEARNT + 1, LEARNT + 9):
        lab.night(f"c{number}")
    assert [outcome for _, outcome, _, _ in lab.alerts.ended if outcome == "confirmed"] == []
    assert lab.wiring.coordinator.testbeds() == []


@pytest.mark.parametrize(
    ("fact", "old", "new", "said"),
    [
        ("cpu.microcode", "0x1", "0x2", "the firmware of the testbed changed (microcode: 0x1 -> 0x2)"),
        ("cpu.model", "E5", "E7", "the machine of the testbed changed (processor: E5 -> E7)"),
    ],
)
def test_nights_before_a_firmware_update_are_not_compared_with_those_after(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, fact: str, old: str, new: str, said: str
) -> None:
    """A level that moves with the firmware, or with another machine of the same name, is no suspect."""
    lab.culprit, lab.effect = LEARNT + 1, 0.05
    learn(lab)
    updated = LEARNT + 1

    def boot_facts(wiring: object, night: Night) -> Iterator[dict[str, str]]:
        yield {fact: old if night.number < updated else new}

    monkeypatch.setattr(follow_night, "_boot_facts", boot_facts)
    found = [lab.night(f"c{number}") for number in range(updated, updated + 4)]
    assert found[0].new_level and not any(night.new_level for night in found[1:])
    assert said in found[0].note and found[1].note == ""
    assert lab.alerts.suspects == []


@pytest.mark.parametrize("decides", [True, False])
def test_nights_with_another_modelled_processor_are_not_compared(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, decides: bool
) -> None:
    """Only where the deciding metric is the model's."""
    rows, made = list(load_cpu_models()), vars(accept_night)["accept_ends"]

    def modelled(wiring: Wiring, request: Request, good: str, bad: str) -> Accepted:
        accepted: Accepted = made(wiring, request, good, bad)
        goal = {**accepted.goal, "clock": "instructions", "modelled": decides}
        return accepted.model_copy(update={"cpu": rows[0], "goal": goal})

    lab.night()  # of an earlier version, which knew no models
    monkeypatch.setattr(accept_night, "accept_ends", modelled)
    first = [lab.night(f"c{number}") for number in (1, 2)]
    rows[0] = rows[0].model_copy(update={"model": "another"})
    lab.wiring.store.remove(first[1].bisection)
    second = [lab.night(f"c{number}") for number in (3, 4)]
    rows.reverse()
    third = lab.night("c5")
    found = [*first, *second, third]
    assert [night.new_level for night in found] == [False, False, decides, False, decides]
    assert [note.partition(":")[0] for note in (second[0].note, third.note)] == (
        [
            "the modelled processor changed (its row)",
            f"the modelled processor changed ({rows[-1].name} -> {rows[0].name})",
        ]
        if decides
        else ["", ""]
    )


@pytest.mark.parametrize("pruned", [1, 3])
def test_firmware_is_compared_though_the_nights_before_were_pruned(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch, pruned: int
) -> None:
    microcode = {"cpu.microcode": "0x1"}

    def boot_facts(wiring: Wiring, night: Night) -> Iterator[dict[str, str]]:
        with contextlib.suppress(NotFound):
            wiring.store.status(night.bisection)
            yield dict(microcode) if night.number > 4 else {"cpu.microcode": "0x1"}

    monkeypatch.setattr(follow_night, "_boot_facts", boot_facts)
    for number in range(1, 5):
        lab.night(f"c{number}")
    for night in lab.nights()[-pruned:]:
        lab.wiring.store.remove(night.bisection)
    microcode["cpu.microcode"] = "0x2"
    updated = lab.night("c5")
    assert updated.new_level and "microcode: 0x1 -> 0x2" in updated.note


def test_a_worker_that_is_killed_while_it_judges_notes_new_firmware_once(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.night("c1")

    def boot_facts(wiring: object, night: Night) -> Iterator[dict[str, str]]:
        yield {"cpu.microcode": f"0x{night.number}"}

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(follow_night, "_boot_facts", boot_facts)
    with monkeypatch.context() as killed:
        killed.setattr(follow_night, "verdicts", die)  # the note is written, the verdict is not
        with pytest.raises(KeyboardInterrupt):
            lab.night("c2")
    lab.chore = lab.another_chore()
    lab.work()
    night = lab.nights()[-1]
    assert night.verdict is not None
    assert night.note.count("microcode: 0x1 -> 0x2") == 1


def test_a_level_that_moved_while_the_branch_stood_still_is_the_testbeds(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tip is another commit by now, but no commit lies between the nights of the change."""
    learn(lab)
    for _ in range(2):
        lab.night(f"c{LEARNT}")
    moved = NightVerdict("suspect", 0.01, LEARNT + 1, LEARNT + 2, Interval(0.03, 0.05, 0.07))
    monkeypatch.setattr(follow_night, "verdicts", lambda nights, *_: {n.number: moved for n in nights})
    night = lab.night(f"c{LEARNT + 1}")
    first, second = (n for n in lab.nights() if n.number in (LEARNT + 1, LEARNT + 2))
    assert first.commit == second.commit != night.commit
    assert night.verdict is not None and night.verdict.status == "testbed suspect"
    assert lab.alerts.suspects == [], "an alert about no commit"
    assert [n.number for n in lab.nights() if n.new_level] == [LEARNT + 2]
    assert [one.state for one in lab.wiring.coordinator.testbeds()] == ["suspect"]


def test_a_branch_that_went_back_to_its_last_good_commit_is_not_compared_with_itself(
    lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(lab)
    lab.night(f"c{LEARNT}")
    lab.night(f"c{LEARNT + 1}")
    moved = NightVerdict("suspect", 0.01, LEARNT + 1, LEARNT + 2, Interval(0.03, 0.05, 0.07))
    monkeypatch.setattr(follow_night, "verdicts", lambda nights, *_: {n.number: moved for n in nights})
    night = lab.night(f"c{LEARNT}")
    assert night.verdict is not None and night.verdict.status == "testbed suspect"
    assert (night.confirmation, lab.alerts.suspects) == ("", [])


def test_a_branch_without_commits_for_a_month_is_no_suspect(lab: SeriesLab) -> None:
    """The same kernel each night: what moves is the testbed."""
    for _ in range(30):
        lab.keep_night("c1")
    night = lab.night("c1")
    assert (night.state, night.note) == ("measured", "no new commit")
    assert night.verdict is not None
    assert night.verdict.status == "steady"
    lab.effect, lab.culprit = 0.05, 0  # everything is slower by now, the reference as well
    found = [lab.night() for _ in range(3)]
    assert {one.note for one in found} == {"no new commit"}
    assert lab.alerts.suspects == []
    assert [one.state for one in lab.wiring.coordinator.testbeds()] == ["suspect"]

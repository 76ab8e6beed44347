"""`perfbisect testbed`: which machine is out, why and since when, and whose a machine is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app.execution import health_check
from bisector.app.execution.health_check import Health
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import QUEUE, lock
from bisector.interfaces.cli import run
from bisector.model.records import Booted
from bisector.report import phrases
from bisector.schemas.settings import load_settings
from tests.support import fake_bisection as fake
from tests.support.command_line import said
from tests.support.machines.fake_inventory import inventory_of

HOUR = 3600.0


@pytest.fixture
def coordinator(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCoordinator:
    """What is known of two testbeds, 'box' and 'other'."""
    lab = own_folders / "lab.yml"
    other = "other: {perfbisect_kind: libvirt, perfbisect_clock: wall, perfbisect_worker: rack1}"
    lab.write_text(inventory_of("box", f", {other}"))
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    monkeypatch.setenv("PERFBISECT_OWNER", "ann")
    monkeypatch.setenv("COLUMNS", "160")
    return SqlCoordinator(open_state_file(own_folders / "state" / "perfbisect.sqlite"))


def noted(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command says of what it has done."""
    assert run(["testbed", *arguments]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    return err


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return the lines of the list by testbed, with single blanks."""
    head, *lines = said(capsys, "testbed", "list").splitlines()
    assert head.split() == ["NAME", "STATE", "RESERVED", "USED", "BY", "WHY"]
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def test_the_list_says_which_machine_is_out_and_whose_word_that_is(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rows(capsys) == {"box": "good", "other": "good"}
    noted(capsys, "drain", "box", "--reason", "new memory")
    coordinator.set_testbed("other", "suspect", "", "a health check")
    since = {status.name: phrases.date(status.since) for status in coordinator.testbeds()}
    assert rows(capsys) == {
        "box": f"maintenance new memory (ann, {since['box']})",
        "other": f"suspect (a health check, {since['other']})",
    }
    found = json.loads(said(capsys, "testbed", "list", "--json"))
    assert [row["name"] for row in found] == ["box", "other"]
    assert (found[0]["state"], found[0]["reason"], found[0]["by"]) == ("maintenance", "new memory", "ann")
    assert phrases.date(found[0]["since"]) == since["box"]
    assert [row["worker"] for row in found] == ["", "rack1"]


def test_the_list_says_which_bisection_measures_on_a_machine(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    wiring = Wiring(load_settings())
    begun = fake.begin(wiring.store, fake.a_lab(), ("other",)).id
    wiring.store.set_status(begun, "running")
    wiring.store.append(begun, Booted("b1", 0, "other", True, 10.0, 1.0))
    with lock(wiring.settings.state_dir, QUEUE):
        found = json.loads(said(capsys, "testbed", "list", "--json"))
    assert [row["used_by"] for row in found] == [None, begun]


def test_the_list_says_who_has_a_machine_that_no_bisection_measures_on(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str], own_folders: Path
) -> None:
    """While a machine was checked, or given back, the list called it free."""
    lab, machine = own_folders / "lab.yml", "{perfbisect_boot_method: kexec, ansible_host: 192.0.2."
    lab.write_text(f"testbeds: {{hosts: {{box: {machine}1}}, other: {machine}2}}}}}}\n")
    wiring = Wiring(load_settings())
    wiring.doing = "lab check of box"
    with wiring.claim_testbed("box", print):
        who = f"lab check of box (process {os.getpid()})"
        assert rows(capsys) == {"box": f"good {who}", "other": "good"}
        found = json.loads(said(capsys, "testbed", "list", "--json"))
        assert [(row["used_by"], row["held_by"]) for row in found] == [(None, who), (None, None)]
        lab.write_text(f"testbeds: {{hosts: {{box: {machine}3}}}}}}\n")
        assert rows(capsys) == {"box": "good"}, "another machine of that name"


def test_a_narrow_list_says_why_before_it_says_who_measures(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator.set_testbed("box", "suspect", "its level moved", "a health check")
    state = {**LocalOperations(Wiring(load_settings()), "ann").testbeds()}
    state["testbeds"][1]["used_by"] = "pipe-test-3f2a"
    monkeypatch.setattr(LocalOperations, "testbeds", lambda own: state)
    assert rows(capsys)["other"] == "good pipe-test-3f2a"
    monkeypatch.setenv("COLUMNS", "50")
    text = said(capsys, "testbed", "list")
    assert "pipe-test" not in text and "USED BY" not in text
    assert "its level moved" in " ".join(text.split()) and max(map(len, text.splitlines())) <= 50


def test_the_list_says_who_has_a_machine_and_from_when(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    now = coordinator.now()
    coordinator.reserve("box", "bob", now + 2 * HOUR)
    coordinator.reserve("other", "eve", now + 3 * HOUR, now + HOUR)
    assert rows(capsys) == {
        "box": f"good bob until {phrases.date(now + 2 * HOUR)}",
        "other": f"good eve from {phrases.date(now + HOUR)} until {phrases.date(now + 3 * HOUR)}",
    }
    box, other = json.loads(said(capsys, "testbed", "list", "--json"))
    assert (box["reserved_by"], other["reserved_by"]) == ("bob", "eve")
    assert other["reserved_until"] - other["reserved_from"] == pytest.approx(2 * HOUR)


def test_a_reservation_is_told_with_its_time(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    text = noted(capsys, "reserve", "box", "--hours", "2")
    (held,) = coordinator.reservations()
    assert (held.testbed, held.who) == ("box", "ann")
    assert held.end - coordinator.now() == pytest.approx(2 * HOUR, abs=60)
    assert text == f"box is reserved by ann until {phrases.date(held.end)}\n"
    text = noted(capsys, "reserve", "other", "--in", "12", "--hours", "1.5")
    later = max(coordinator.reservations(), key=lambda one: one.start)
    assert later.start - coordinator.now() == pytest.approx(12 * HOUR, abs=60)
    assert later.end - later.start == pytest.approx(1.5 * HOUR)
    assert text == (
        f"other is reserved by ann from {phrases.date(later.start)} until {phrases.date(later.end)}\n"
    )
    noted(capsys, "release", "other")
    made = json.loads(said(capsys, "testbed", "reserve", "other", "--json"))
    assert made["reserved_until"] - made["reserved_from"] == pytest.approx(8 * HOUR, abs=1), "by default"


def test_a_release_ends_ones_own_reservation_and_tells_of_that_of_others(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    noted(capsys, "reserve", "box")
    noted(capsys, "drain", "box")
    assert noted(capsys, "release", "box") == "box: good; no reservation of yours is left\n"
    assert not coordinator.reservations()
    assert noted(capsys, "release", "box") == "box: good\n"
    now = coordinator.now()
    coordinator.reserve("box", "bob", now + HOUR)
    coordinator.reserve("other", "eve", now + 2 * HOUR, now + HOUR)
    text = noted(capsys, "release", "box")
    assert text == f"box: good; still reserved by bob until {phrases.date(now + HOUR)}\n"
    assert noted(capsys, "release", "other") == "other: good\n", "it begins later"
    assert noted(capsys, "drain", "box") == "box: maintenance\n"
    assert noted(capsys, "retire", "box") == "box: retired\n"
    assert {one.who for one in coordinator.reservations()} == {"bob", "eve"}


def test_what_a_program_reads_of_a_change(
    coordinator: SqlCoordinator, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(said(capsys, "testbed", "retire", "box", "--reason", "fans", "--json"))
    assert made == {"name": "box", "state": "retired", "reason": "fans", "by": "ann"}
    made = json.loads(said(capsys, "testbed", "release", "box", "--json"))
    assert made == {"name": "box", "state": "good", "reason": "", "by": "ann"}


@pytest.mark.parametrize(
    ("outcome", "state", "code"), [("sound", "good", 0), ("moved", "good", 3), ("failed", "suspect", 3)]
)
@pytest.mark.usefixtures("coordinator")
def test_a_check_ends_with_3_unless_the_machine_is_sound(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, outcome: str, state: str, code: int
) -> None:
    asked: list[bool] = []

    def check_now(wiring: object, name: str, say: object, *, fresh: bool) -> Health:
        asked.append(fresh)
        return Health(name, outcome, "what was found", {}, (), None, state)  # type: ignore[arg-type]

    monkeypatch.setattr(health_check, "check_now", check_now)
    out = said(capsys, "testbed", "health", "box", code=code)
    told = "box: " + outcome + "; what was found\n"
    if state != "good":
        told += f"box is {state}; 'perfbisect testbed release box' lets it be used\n"
    assert out == told
    found = json.loads(said(capsys, "testbed", "health", "box", "--fresh", "--json", code=code))
    assert (found["testbed"], found["outcome"], found["state"]) == ("box", outcome, state)
    assert asked == [False, True]


@pytest.mark.usefixtures("coordinator")
def test_a_machine_that_the_lab_does_not_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["drain"], ["retire"], ["release"], ["reserve"]):
        assert run(["testbed", *line, "bix"]) == 1
        assert "'bix'" in capsys.readouterr().err

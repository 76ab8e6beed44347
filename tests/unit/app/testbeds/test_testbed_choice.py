"""Which testbeds of a lab measure together where none is named, and why the others do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.app.testbeds.testbed_choice import (
    Choice,
    choose_testbeds,
    joining_testbeds,
    notes_on_choice,
)
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import Attempt, Request
from bisector.schemas.settings import Settings
from bisector.schemas.workload.workload import load_workload
from tests.support import fake_bisection as fake

GUEST = {"perfbisect_kind": "libvirt", "perfbisect_clock": "wall"}


def box(number: int, **more: str) -> dict[str, Any]:
    return {"ansible_host": f"192.0.2.{number}", "perfbisect_clock": "wall", **more}


def wiring_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, groups: dict[str, dict[str, Any]], retired: str = ""
) -> Wiring:
    """Return a lab of groups: group -> host -> variables; those of 'testbeds' are in no group below it."""
    wiring = Wiring(Settings(state_dir=folder, cache_dir=folder))
    variables = {host: values for hosts in groups.values() for host, values in hosts.items()}
    data: dict[str, Any] = {name: {"hosts": list(hosts)} for name, hosts in groups.items()}
    data.setdefault("testbeds", {})["children"] = [name for name in groups if name != "testbeds"]
    wiring.lab = lab_from_inventory({"_meta": {"hostvars": variables}, **data}, folder / "lab.yml")
    clocks = {host: values.get("perfbisect_clock", "wall") for host, values in variables.items()}
    monkeypatch.setattr(Wiring, "testbed", lambda _, name: SimpleNamespace(clock=clocks[name]))
    if retired:
        wiring.coordinator.set_testbed(retired, "retired", "sold", "bob")
    return wiring


def choose(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: dict[str, dict[str, Any]],
    testbeds: tuple[str, ...] = (),
    workload: str = "pipe-test",
    retired: str = "",
) -> Choice:
    wiring = wiring_of(folder, monkeypatch, groups, retired)
    request = Request(repo="/r", good="a", bad="b", workload=workload, testbeds=testbeds)
    return choose_testbeds(wiring, request, load_workload(workload))


def test_all_that_fit_measure_and_each_other_one_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = choose(
        tmp_path,
        monkeypatch,
        {
            "xeon": {"a": box(1), "b": box(2), "again": box(2), "guest": GUEST, "gone": box(4)},
            "arm": {"c": box(3)},
        },
        retired="gone",
    )
    assert found.testbeds == ("a", "b")
    assert found.clock == "wall"
    assert found.idle == {
        "again": "the testbeds 'b' and 'again' are one machine",
        "guest": "its kind is 'libvirt', not 'ssh'",
        "gone": "retired: sold (bob)",
        "c": "it is in the group 'arm', not in 'xeon'",
    }


def test_guests_of_another_clock_are_left_idle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = {**GUEST, "perfbisect_clock": "instructions"}
    found = choose(tmp_path, monkeypatch, {"testbeds": {"g1": exact, "g2": exact, "g3": GUEST}})
    assert (found.testbeds, found.clock) == (("g1", "g2"), "instructions")
    assert found.idle == {"g3": "its clock is 'wall', not 'instructions'"}


def test_the_first_that_can_run_the_workload_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = box(2, perfbisect_block_device="/dev/disk/by-id/x")
    found = choose(tmp_path, monkeypatch, {"testbeds": {"a": box(1), "b": disk}}, workload="db-aio/fio")
    assert found.testbeds == ("b",)
    assert list(found.idle) == ["a"] and "needs" in found.idle["a"]
    with pytest.raises(RequestError, match="cannot run on the testbed 'a'"):
        choose(tmp_path, monkeypatch, {"testbeds": {"a": box(1)}}, workload="db-aio/fio")


def test_those_that_are_named_measure_whatever_their_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = {"xeon": {"a": box(1), "b": box(2)}, "arm": {"c": box(3)}}
    found = choose(tmp_path, monkeypatch, groups, testbeds=("c", "a"))
    assert (found.testbeds, found.idle) == (("c", "a"), {})
    groups["xeon"]["again"] = box(1)
    with pytest.raises(RequestError, match="'again' and 'a' are one machine"):
        choose(tmp_path, monkeypatch, groups, testbeds=("again", "a"))
    groups["arm"]["c"] = {**GUEST, "perfbisect_clock": "instructions"}
    with pytest.raises(RequestError, match="different clocks"):
        choose(tmp_path, monkeypatch, groups, testbeds=("c", "a"))


def test_what_is_retired_does_not_decide_which_others_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiring = wiring_of(tmp_path, monkeypatch, {"testbeds": {"gone": GUEST, "a": box(1), "b": box(2)}})
    wiring.coordinator.set_testbed("gone", "retired", "", "bob")
    request = Request(repo="/r", good="a", bad="b", workload="pipe-test")
    found = choose_testbeds(wiring, request, load_workload("pipe-test"))
    assert (found.testbeds, list(found.idle)) == (("a", "b"), ["gone"])
    wiring.coordinator.set_testbed("b", "retired", "", "bob")
    found = choose_testbeds(wiring, request, load_workload("pipe-test"))
    assert found.idle["b"] == "retired: no reason given (bob)"


def test_what_is_new_joins_unless_it_is_retired_or_three_kernels_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = {"testbeds": {"a": box(1), "gone": box(2), "new": box(3), "again": box(3), "guest": GUEST}}
    wiring = wiring_of(tmp_path, monkeypatch, lab, retired="gone")
    accepted = fake.accepted(fake.a_lab(), ("a",)).model_copy(update={"testbeds_chosen": True})
    workload = load_workload("pipe-test")
    assert joining_testbeds(wiring, accepted, workload) == ["new"]
    attempt = Attempt(of="b", culprit="c", unpatched="c", tried="d")
    for other in ({"attempt": attempt}, {"testbeds_chosen": False}, {"testbeds": ("of an older lab",)}):
        assert joining_testbeds(wiring, accepted.model_copy(update=other), workload) == []
    exact = {**GUEST, "perfbisect_clock": "instructions"}
    guests = wiring_of(tmp_path, monkeypatch, {"testbeds": {"a": exact, "wall": GUEST, "new": exact}})
    assert joining_testbeds(guests, accepted, workload) == ["new"]


def test_this_machine_itself_is_never_chosen_as_it_boots_no_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was, if it came first: kernels were compiled, and the first boot refused them."""
    here = {"perfbisect_kind": "local", "ansible_connection": "local"}
    found = choose(tmp_path, monkeypatch, {"testbeds": {"here": here, "a": box(1)}})
    assert (found.testbeds, found.idle) == (("a",), {"here": "its kind is 'local', not 'ssh'"})
    for testbeds in ((), ("here",)):
        with pytest.raises(RequestError, match="'here' is this machine, and boots no kernels"):
            choose(tmp_path, monkeypatch, {"testbeds": {"here": here}}, testbeds)


def test_what_is_in_maintenance_is_waited_for_and_choosing_makes_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiring = wiring_of(tmp_path / "state", monkeypatch, {"testbeds": {"a": box(1), "b": box(2)}})
    request = Request(repo="/r", good="a", bad="b", workload="pipe-test")
    workload = load_workload("pipe-test")
    assert choose_testbeds(wiring, request, workload).testbeds == ("a", "b")
    assert not wiring.settings.state_dir.exists()
    wiring.coordinator.set_testbed("a", "maintenance", "new memory", "bob")
    assert choose_testbeds(wiring, request, workload).testbeds == ("a", "b")


def test_who_measures_and_who_is_idle_is_told_where_nobody_named_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(repo="/r", good="a", bad="b", workload="pipe-test")
    named = request.model_copy(update={"testbeds": ("b",)})
    workload = load_workload("pipe-test")
    wiring = wiring_of(tmp_path, monkeypatch, {"testbeds": {"a": box(1), "b": box(2), "guest": GUEST}})
    assert notes_on_choice(wiring, request, workload) == [
        "measured on a, b",
        "the testbed 'guest' is left idle: its kind is 'libvirt', not 'ssh'",
    ]
    assert notes_on_choice(wiring, named, workload) == []
    alone = wiring_of(tmp_path, monkeypatch, {"testbeds": {"a": box(1)}})
    assert notes_on_choice(alone, request, workload) == []


def test_a_clock_that_cannot_decide_the_workload_and_packages_that_no_guest_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = {"testbeds": {"g": {**GUEST, "perfbisect_clock": "instructions", "perfbisect_cpus": 8}}}
    wiring = wiring_of(tmp_path, monkeypatch, exact)
    request = Request(repo="/r", good="a", bad="b", workload="pipe-test")
    workload = load_workload("pipe-test")
    by_wall = workload.manifest.model_copy(update={"clocks": ("wall",)})
    with pytest.raises(RequestError, match="cannot be decided by the clock 'instructions'"):
        choose_testbeds(wiring, request, replace(workload, manifest=by_wall))

    def refuse(packages: tuple[str, ...]) -> None:
        raise RequestError("no such package")

    monkeypatch.setattr("bisector.adapters.guest.debian_packages.check_packages", refuse)
    with pytest.raises(RequestError, match="no such package"):
        choose_testbeds(wiring, request, workload)
    machines = wiring_of(tmp_path, monkeypatch, {"testbeds": {"a": box(1)}})
    assert choose_testbeds(machines, request, workload).testbeds == ("a",), "a machine's own are not known"

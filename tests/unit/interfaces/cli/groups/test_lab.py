"""`perfbisect lab`: the machines of an inventory, and whether they answer."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from bisector.adapters.machine.checks import lab_check
from bisector.app.machines import deep_check
from bisector.app.machines.kept_checks import keep_check
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.interfaces.cli import run
from bisector.model.machines.lab_findings import LabFinding, MachineFindings
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import load_settings

INVENTORY = {
    "_meta": {
        "hostvars": {
            "guest": {"perfbisect_kind": "libvirt", "perfbisect_clock": "instructions"},
            "box": {"ansible_host": "192.0.2.10"},
            "here": {"ansible_connection": "local"},
        }
    },
    "testbeds": {"hosts": ["guest", "box"]},
    "builders": {"hosts": ["here", "box"]},
}


@pytest.fixture(autouse=True)
def lab(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = lab_from_inventory(INVENTORY, Path("lab.yml"))
    monkeypatch.setattr(Wiring, "lab", found)


def test_the_list_has_testbeds_and_builders(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "list"]) == 0
    assert capsys.readouterr().out == (
        "NAME   ROLE     KIND     CLOCK         ADDRESS\n"
        "guest  testbed  libvirt  instructions  this machine\n"
        "box    testbed  ssh      auto          192.0.2.10\n"
        "here   builder  local                  this machine\n"
        "box    builder  ssh                    192.0.2.10\n"
        "from lab.yml\n"
    )
    assert run(["lab", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["inventory"] == "lab.yml"
    assert [machine["name"] for machine in listed["machines"]] == ["guest", "box", "here", "box"]


def test_a_guest_of_another_host_is_listed_with_that_host(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = "qemu+ssh://root@192.0.2.30/system"
    far = {"perfbisect_kind": "libvirt", "perfbisect_libvirt_uri": uri}
    listing = {"_meta": {"hostvars": {"far": far}}, "testbeds": {"hosts": ["far"]}}
    monkeypatch.setattr(Wiring, "lab", lab_from_inventory(listing, Path("lab.yml")))
    assert run(["lab", "list"]) == 0
    assert "far   testbed  libvirt  auto   192.0.2.30\n" in capsys.readouterr().out


def test_what_is_wrong_is_told_with_its_cure_and_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    well = LabFinding("ssh", "ok", "it answers")
    rows = [("testbed guest", lambda: iter([well, LabFinding("clock", "doubtful", "7 s behind", "use NTP")]))]
    monkeypatch.setattr(lab_check, "lab_checks", lambda lab, around: rows)
    assert run(["lab", "check"]) == 0  # what is doubtful works
    assert capsys.readouterr().out == (
        "MACHINE        CHECK  RESULT    FOUND\n"
        "testbed guest  ssh    ok        it answers\n"
        "               clock  doubtful  7 s behind; cure: use NTP\n"
    )
    dead = LabFinding("ssh", "wrong", "192.0.2.10 does not answer", "switch it on", "no route")
    rows.append(("testbed box", lambda: iter([dead])))
    assert run(["lab", "check", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["ok"], one["wrong"]) for one in found] == [
        ("testbed guest", True, ""),
        ("testbed box", False, "192.0.2.10 does not answer"),
    ]
    assert found[1]["checks"][0]["cure"] == "switch it on"
    assert run(["lab", "check", "box"]) == 3
    told = capsys.readouterr().out
    assert "guest" not in told and told.endswith("testbed box, ssh:\n  no route\n")


@pytest.fixture
def deep_checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The testbeds whose deep check was made, by one that finds nothing wrong."""
    done: list[str] = []

    def deep(wiring: Wiring, name: str, progress: object) -> MachineFindings:
        done.append(name)
        return MachineFindings(f"testbed {name}", (LabFinding("noise", "ok", "small"),))

    monkeypatch.setattr(deep_check, "deep_check", deep)
    return done


def test_deep_asks_first_and_does_nothing_where_nobody_can_be_asked(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    deep_checked: list[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run(["lab", "check", "--deep", "box"]) == 1
    assert "add --yes" in capsys.readouterr().err
    assert run(["lab", "check", "--yes"]) == 1 and deep_checked == []
    report = tmp_path / "box.txt"
    assert run(["lab", "check", "--deep", "box", "--yes", "--report", str(report)]) == 0
    assert deep_checked == ["box"] and "[x] noise: small" in report.read_text()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_deep_asks_about_what_it_switches_alone_and_takes_a_no(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    deep_checked: list[str],
) -> None:
    for answer, code, checked in (("n", 1, []), ("y", 0, ["guest", "box"])):
        monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
        assert run(["lab", "check", "--deep"]) == code
        assert deep_checked == checked
    told = capsys.readouterr().err
    assert "box: switched off and on" in told and "guest" not in told.split("box: ")[0]
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run(["lab", "check", "--deep", "guest"]) == 0, "a guest is not switched"


def test_a_report_that_cannot_be_written_is_refused_first_and_none_is_written_of_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> MachineFindings:
        raise KeyboardInterrupt

    monkeypatch.setattr(deep_check, "deep_check", interrupt)
    words = ["lab", "check", "--deep", "box", "--yes", "--report"]
    assert run([*words, str(tmp_path / "none" / "box.txt")]) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err
    assert run([*words, str(tmp_path / "box.txt")]) == 130
    assert not (tmp_path / "box.txt").exists()


def test_the_list_shows_what_the_last_deep_check_found(capsys: pytest.CaptureFixture[str]) -> None:
    wiring = Wiring(load_settings())
    findings = (LabFinding("noise", "ok", "0.4%"), LabFinding("power", "wrong", "no BMC"))
    keep_check(wiring, "box", MachineFindings("testbed box", findings), 86400.0)
    keep_check(wiring, "guest", MachineFindings("testbed guest", findings[:1]), 86400.0)
    assert run(["lab", "list"]) == 0
    guest, box = capsys.readouterr().out.splitlines()[1:3]
    assert guest.endswith("ok on 1970-01-02") and box.endswith("wrong on 1970-01-02: power: no BMC")
    assert run(["lab", "list", "--json"]) == 0
    checked = [one["checked"] for one in json.loads(capsys.readouterr().out)["machines"]]
    assert checked[1] == {"at": 86400.0, "result": "wrong", "wrong": "power: no BMC", "noise": "0.4%"}
    assert (checked[0]["result"], checked[0]["wrong"], checked[2:]) == ("ok", "", [None, None])


def test_details_of_what_is_well_are_not_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    well = LabFinding("ssh", "ok", "it answers", details="a banner")
    monkeypatch.setattr(lab_check, "lab_checks", lambda *_: [("testbed guest", lambda: iter([well]))])
    assert run(["lab", "check"]) == 0
    assert "a banner" not in capsys.readouterr().out


def test_what_was_found_is_reported_where_a_later_machine_cannot_be_used_or_somebody_interrupts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends: list[BaseException] = [InfrastructureError("taken", cure="wait"), KeyboardInterrupt()]

    def deep(wiring: Wiring, name: str, progress: object) -> MachineFindings:
        if name == "box":
            raise ends[0]
        return MachineFindings(f"testbed {name}", (LabFinding("noise", "ok", "small"),))

    monkeypatch.setattr(deep_check, "deep_check", deep)
    report = tmp_path / "lab.txt"
    words = ["lab", "check", "--deep", "--yes", "--report", str(report)]
    assert run([*words, "box", "guest"]) == 3
    assert "use    wrong   taken; cure: wait" in capsys.readouterr().out
    assert "[!] use: taken" in (text := report.read_text()) and "[x] noise: small" in text
    ends.pop(0)
    assert run([*words, "guest", "box"]) == 130
    assert "[x] noise: small" in (text := report.read_text()) and "testbed box" not in text


def test_a_deep_check_of_a_reserved_machine_is_refused_before_another_is_switched(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deep_check, "deep_check", lambda *_: pytest.fail("it was checked"))
    with monkeypatch.context() as other:
        other.setenv("PERFBISECT_OWNER", "somebody")
        assert run(["testbed", "reserve", "box"]) == 0
    assert run(["lab", "check", "--deep", "--yes"]) == 1
    assert "reserved by somebody" in capsys.readouterr().err

"""`perfbisect lab power`: asks and switches by the inventory's commands; says what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.machine.power import verified_power
from bisector.adapters.store.open_database import open_state_file
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.model.leases import TestbedState
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import load_settings


@pytest.fixture(autouse=True)
def lab(own_folders: Path, own_locks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    state = tmp_path / "power"
    state.write_text("off\n")
    commands = {word: ["sh", "-c", f"echo {word} > {state}"] for word in ("on", "off")}
    hosts = {
        "box": {"perfbisect_power": {**commands, "status": ["cat", str(state)]}},
        "bare": {},
        "silent": {"perfbisect_power": {"cycle": ["true"]}},
        "bmc": {
            "perfbisect_power": {
                "kind": "ipmi",
                "address": "192.0.2.1",
                "user": "eve",
                "password_file": str(tmp_path / "gone"),
            }
        },
        "both": {"perfbisect_power": [{"cycle": ["false"]}, {**commands, "status": ["cat", str(state)]}]},
    }
    data = {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": list(hosts)}}
    monkeypatch.setattr(Wiring, "lab", lab_from_inventory(data, Path("lab.yml")))
    return state


def test_a_testbed_is_asked_and_switched(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "power", "box", "status"]) == 0
    assert capsys.readouterr().out == "box is off\n"
    assert run(["lab", "power", "box", "on"]) == 0
    assert capsys.readouterr().out == "box is on\n"
    assert lab.read_text() == "on\n"


def test_a_machine_that_tells_no_state_is_said_to_be_switched(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "power", "silent", "cycle"]) == 0
    told = "silent was switched off and on; nothing in its perfbisect_power tells whether it is on\n"
    assert capsys.readouterr().out == told
    assert run(["lab", "power", "silent", "status"]) == 0
    assert capsys.readouterr().out == "silent is unknown\n"


def test_the_state_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "power", "box", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "box", "power": "off", "stage": ""}


def test_of_several_stages_the_one_that_switched_is_named(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.0)
    assert run(["lab", "power", "both", "on"]) == 0
    shown = capsys.readouterr()
    assert "trying the next stage" in shown.err
    assert shown.out == "both is on; stage 2 of 2 (command sh) of its perfbisect_power switched it\n"
    assert run(["lab", "power", "both", "status"]) == 0
    assert capsys.readouterr().out == "both is on\n"
    assert run(["lab", "power", "both", "off", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stage"] == "2 of 2 (command sh)"


def test_a_testbed_that_somebody_has_reserved_is_not_switched(
    lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other:
        other.setenv("PERFBISECT_OWNER", "somebody")
        assert run(["testbed", "reserve", "box"]) == 0
    assert run(["lab", "power", "box", "on"]) == 1
    assert "reserved by somebody" in capsys.readouterr().err
    assert lab.read_text() == "off\n"
    assert run(["lab", "power", "box", "status"]) == 0


@pytest.mark.parametrize("state", ["maintenance", "suspect", "retired"])
def test_a_testbed_that_is_out_of_use_is_switched(
    lab: Path, capsys: pytest.CaptureFixture[str], state: TestbedState
) -> None:
    """It is switched by hand because something is wrong with it."""
    open_state_file(load_settings().state_dir / "perfbisect.sqlite")
    Wiring(load_settings()).coordinator.set_testbed("box", state, "new memory", "bob")
    assert run(["lab", "power", "box", "on"]) == 0
    assert lab.read_text() == "on\n"


@pytest.mark.parametrize("action", ["status", "off"])
def test_a_password_that_is_not_there_is_a_wrong_request(
    capsys: pytest.CaptureFixture[str], action: str
) -> None:
    assert run(["lab", "power", "bmc", action]) == 1
    assert "gone" in capsys.readouterr().err


def test_a_testbed_without_power_is_a_wrong_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "power", "bare", "cycle"]) == 1
    assert "the testbed 'bare' cannot be switched from here" in capsys.readouterr().err
    assert run(["lab", "power", "bax", "cycle"]) == 1
    assert "did you mean" in capsys.readouterr().err

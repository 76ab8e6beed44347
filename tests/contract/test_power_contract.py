"""What every switch of a machine promises: the shipped fake, commands, and BMCs over IPMI and Redfish."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from bisector.adapters.machine.machine_parts import Power
from bisector.adapters.machine.power import ipmi_power, verified_power
from bisector.adapters.machine.power.open_power import check_passwords, open_boot_override, open_power
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.adapters.machine.power.staged_power import StagedPower
from bisector.adapters.machine.power.verified_power import VerifiedPower
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.schemas.lab import TestbedSpec, lab_from_inventory
from bisector.testing.fake_power import FakePower
from tests.support.servers.bmc_simulators import Simulator, ipmi_simulator, redfish_emulator
from tests.support.waiting import until

PASSWORD = "canary-5f2e1"

COMMAND = """\
cd {folder} || exit 1
[ ! -e dead ] || {{ echo 'no answer of the strip'; exit 1; }}
case $1 in
on) [ "$(cat power)" = on ] || echo start >> starts; echo on > power ;;
off) echo off > power ;;
status) echo "outlet 4 is $(cat power)"; [ "$(cat power)" = on ] || exit 2 ;;
esac
"""


def box(power: object, **variables: object) -> TestbedSpec:
    hosts = {"box": {"ansible_host": "127.0.0.1", "perfbisect_power": power, **variables}}
    data = {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": ["box"]}}
    return lab_from_inventory(data, Path("/lab.yml")).testbed("box")


def opened(power: object) -> Power:
    found = open_power(box(power))
    assert found is not None
    return found


@dataclass
class Given:
    """A switch of a machine that is off. starts: how often it was started, where that can be counted."""

    power: Power
    starts: Callable[[], int] | None
    kill: Callable[[], object]
    name: str
    """Of its stage in messages."""


def _fake(folder: Path) -> Iterator[Given]:
    fake = FakePower()
    power = StagedPower("box", [VerifiedPower(fake)], print)
    yield Given(power, lambda: fake.starts, lambda: setattr(fake, "dead", 100), "fake")


def _command(folder: Path) -> Iterator[Given]:
    (folder / "power").write_text("off\n")
    (folder / "starts").write_text("")
    (folder / "strip.sh").write_text(COMMAND.format(folder=folder))
    actions = {action: ["sh", f"{folder}/strip.sh", action] for action in ("on", "off", "status")}
    yield Given(
        opened(actions),
        lambda: len((folder / "starts").read_text().split()),
        (folder / "dead").touch,
        "command sh",
    )


def _ipmi(folder: Path) -> Iterator[Given]:
    if shutil.which("ipmi_sim") is None or shutil.which("ipmitool") is None:
        pytest.skip("ipmi_sim and ipmitool are not installed: make deps")
    with ipmi_simulator(folder, PASSWORD) as bmc:
        yield Given(_answering(bmc), bmc.starts, bmc.kill, "ipmi 127.0.0.1")


def _redfish(folder: Path) -> Iterator[Given]:
    pytest.importorskip("sushy_tools")
    with redfish_emulator(folder, PASSWORD) as bmc:
        yield Given(_answering(bmc), None, bmc.kill, "redfish 127.0.0.1")


def _answering(bmc: Simulator) -> Power:
    power = opened(bmc.variables)

    def answers() -> bool:
        try:
            return power.status() == "off"
        except InfrastructureError:
            return False

    until(answers, 60)
    return power


@pytest.fixture(params=[_fake, _command, _ipmi, _redfish])
def given(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Given]:
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(verified_power, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(verified_power, "_OFF_SECONDS", 0.1)
    real: Callable[..., Any] = ipmi_power.ipmitool

    def impatient(variables: Any) -> Any:
        command, environment = real(variables)
        return (*command, "-N", "1", "-R", "1"), environment

    monkeypatch.setattr(ipmi_power, "ipmitool", impatient)
    yield from request.param(tmp_path)


def test_it_is_switched_on_and_off_and_on_again(given: Given) -> None:
    power = given.power
    assert power.status() == "off"
    for _ in range(2):  # the second time nothing changes
        power.on()
        assert power.status() == "on"
    assert given.starts is None or given.starts() == 1
    power.cycle()
    assert power.status() == "on"
    assert given.starts is None or given.starts() == 2
    for _ in range(2):
        power.off()
        assert power.status() == "off"
    power.cycle()
    assert power.status() == "on"
    assert given.starts is None or given.starts() == 3


def test_a_bmc_over_redfish_has_its_machine_boot_from_the_network_once(tmp_path: Path) -> None:
    pytest.importorskip("sushy_tools")
    with redfish_emulator(tmp_path, PASSWORD) as bmc:
        _answering(bmc)
        netboot = {"folder": str(tmp_path), "url": "tftp://192.0.2.1", "mac": "52:54:00:12:34:56"}
        assert open_boot_override(box(bmc.variables, perfbisect_boot_method="kexec")) is None
        spec = box(bmc.variables, perfbisect_boot_method="pxe", perfbisect_netboot=netboot)
        override = open_boot_override(spec)
        assert override is not None
        override.end_boot_override()
        assert _boot_target(bmc) == "Hdd", "nothing was set, and nothing is taken back"
        override.boot_once_from_network()
        assert _boot_target(bmc) == "Pxe"
        override.end_boot_override()
        assert _boot_target(bmc) == "Hdd", "this emulator stores 'Once' as 'Continuous'"
        bmc.kill()
        with pytest.raises(InfrastructureError, match="the BMC does not answer"):
            override.boot_once_from_network()


def _boot_target(bmc: Simulator) -> str:
    """Return what the BMC says itself, asked without perfbisect."""
    variables = bmc.variables
    account, systems = (variables["user"], PASSWORD), f"{variables['url']}/redfish/v1/Systems"
    asked = partial(requests.get, auth=account, verify=variables["certificate"], timeout=10)
    path = asked(systems).json()["Members"][0]["@odata.id"]
    return str(asked(f"{variables['url']}{path}").json()["Boot"]["BootSourceOverrideTarget"])


def test_a_dead_one_is_infrastructure_that_names_testbed_and_stage(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_power, "_TRIES", 1)
    given.kill()
    for action in ("on", "off", "cycle", "status"):
        with pytest.raises(InfrastructureError) as caught:
            getattr(given.power, action)()
        error = caught.value
        assert error.message.startswith("the testbed 'box' cannot be ")
        assert given.name in error.message
        assert "perfbisect lab power box status" in error.cure
        assert PASSWORD not in f"{error.message}{error.details}{error.cure}{error.__context__}"


def test_a_failed_question_for_the_state_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verified_power, "_TRIES", 1)
    script = "echo 'cannot connect to the agent on 192.0.2.5'; exit 1"
    power = opened({"status": ["sh", "-c", script]})
    with pytest.raises(InfrastructureError, match="'sh' failed with code 1") as caught:
        power.status()
    assert "the agent on 192.0.2.5" in caught.value.details
    for said in ("the PDU is off-line", "still on-line"):
        with pytest.raises(InfrastructureError, match="'sh' says neither 'on' nor 'off'"):
            opened({"status": ["sh", "-c", f"echo {said}"]}).status()
    assert opened({"status": ["sh", "-c", "echo power-off"]}).status() == "off"
    assert opened({"status": ["sh", "-c", "echo Status: OFF; exit 2"]}).status() == "off"
    assert opened({"status": ["sh", "-c", "echo Status: ON"]}).status() == "on"
    for before, now in (("on", "off"), ("off", "on")):
        assert opened({"status": ["sh", "-c", f"echo was {before}, is {now}"]}).status() == now
    assert opened({"cycle": ["true"]}).status() == "unknown", "there is nothing to ask"
    lines = "echo 'outlet 3: on'; echo 'outlet 4: off'; echo"
    assert opened({"status": ["sh", "-c", lines]}).status() == "off", "its last line that tells one"


@pytest.mark.parametrize(
    "script",
    [
        "echo 'Unauthorized users must log off now'; echo 'Permission denied'; exit 255",  # ssh to a PDU
        "echo 'Status: OFF'; exit 1",  # of a fence agent: the device could not be contacted
        "echo 'Status: ON'; exit 2",
        """echo "pdu: error: invalid choice: 'state' (choose from 'on', 'off')"; exit 2""",  # argparse
        "exit 2",
    ],
)
def test_a_command_that_fails_tells_no_state_whatever_it_says(
    monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """A machine that hung was told to have been switched off by somebody."""
    monkeypatch.setattr(verified_power, "_TRIES", 1)
    with pytest.raises(InfrastructureError, match="'sh' failed with code ") as caught:
        opened({"status": ["sh", "-c", script]}).status()
    assert ("where it knows the state, have it end with 0" in caught.value.cure) == (script != "exit 2")


def test_a_password_in_a_command_is_not_shown_where_the_command_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verified_power, "_TRIES", 1)
    script = "echo wrong password: $2; exit 1"
    with pytest.raises(InfrastructureError) as caught:
        opened({"status": ["sh", "-c", script, "pdu", "--password", PASSWORD]}).status()
    assert "wrong password: ***" in caught.value.details
    assert PASSWORD not in f"{caught.value.message}{caught.value.details}"


def test_ipmitool_is_told_all_that_the_inventory_says_of_a_bmc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its password, which it gets by the environment, is shown by nobody, whatever it prints."""
    monkeypatch.setattr(verified_power, "_TRIES", 1)
    _ipmi_by(tmp_path, monkeypatch)
    program = tmp_path / "ipmitool"
    program.write_text('#!/bin/sh\necho got "$@" with $IPMITOOL_PASSWORD\nexit 1\n')
    power = opened(
        {
            "kind": "ipmi",
            "address": "[2001:db8::7]",
            "port": 6230,
            "user": "eve",
            "password_env": "BMC_OF_BOX",
            "privilege": "operator",
            "cipher_suite": 3,
        }
    )
    with pytest.raises(InfrastructureError) as caught:
        power.status()
    told = "-I lanplus -C 3 -H 2001:db8::7 -p 6230 -U eve -L OPERATOR -E -v chassis power status"
    assert f"got {told} with ***" in caught.value.details
    assert PASSWORD not in f"{caught.value.message}{caught.value.details}"


def test_waiting_for_a_switch_takes_time_and_ends_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append)
    monkeypatch.setattr("bisector.adapters.machine.power.open_power.time", clock)
    states = {"on": ["true"], "off": ["true"], "status": ["echo", "on"]}
    power = open_power(box(states), stop=lambda: len(slept) == 3)
    assert power is not None
    with pytest.raises(Interrupted, match="switching 'box' was stopped on request"):
        power.off()
    assert slept == [verified_power._POLL_SECONDS] * 3


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Set Chassis Power Control to Up/On failed: Invalid command", "refuses 'on': Invalid command"),
        ("RAKP 2 HMAC is invalid", "does not accept the user 'lab' and its password"),
        ("RAKP 2 message indicates an error : unauthorized name", "does not accept the user 'lab'"),
        ("Set Session Privilege Level to ADMINISTRATOR failed: insufficient privilege", "does not accept"),
    ],
)
def test_what_a_bmc_over_ipmi_refuses_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    """It locks accounts."""
    power, program = _ipmi_by(tmp_path, monkeypatch), tmp_path / "ipmitool"
    program.write_text(
        f"#!/bin/sh\ncd {tmp_path}\nfor action; do :; done\necho $action >>asked\n"
        f"[ $action != status ] || {{ echo 'Chassis Power is off'; exit 0; }}\necho '{said}'\nexit 1\n"
    )
    with pytest.raises(PowerRefused, match=told):
        power.on()
    assert (tmp_path / "asked").read_text().split().count("on") == 1
    program.write_text("#!/bin/sh\necho 'Chassis Power is'\n")
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.01)
    with pytest.raises(InfrastructureError, match="the BMC does not tell its power's state"):
        power.status()


@pytest.mark.parametrize("changes", [True, False], ids=["changes", "stays"])
def test_a_bmc_over_ipmi_that_refuses_for_the_present_state_is_believed_once_the_state_is_as_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    """As over Redfish: a PDU was switched under a machine that was off, and told so a second later."""
    then = "off" if changes else "on"
    power, program = _ipmi_by(tmp_path, monkeypatch), tmp_path / "ipmitool"
    program.write_text(
        f"#!/bin/sh\ncd {tmp_path}\nfor action; do :; done\necho $action >>asked\n"
        f"if [ $action = status ]; then [ -e asked_before ] && now={then} || now=on\n"
        "touch asked_before; echo Chassis Power is $now; exit 0; fi\n"
        "echo 'Set Chassis Power Control to Down/Off failed: Command not supported in present state'\nexit 1"
    )
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(verified_power, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(verified_power, "_SWITCH_SECONDS", 0.05)
    if changes:
        power.off()
        assert (tmp_path / "asked").read_text().split() == ["off"] * 3 + ["status"] * 2
        return
    with pytest.raises(InfrastructureError, match=r"its state is 'on' .* after 'off'") as caught:
        power.off()
    assert not isinstance(caught.value, PowerRefused)
    assert "not supported in present state" in caught.value.details


def _ipmi_by(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Power:
    """Return power over IPMI by a program `ipmitool` in a folder, which the caller writes."""
    (folder / "ipmitool").touch()
    (folder / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("BMC_OF_BOX", PASSWORD)
    return opened({"kind": "ipmi", "address": "192.0.2.1", "user": "lab", "password_env": "BMC_OF_BOX"})


@pytest.mark.parametrize(
    "code", ["Node busy", "Timeout", "BMC initialization in progress", "Destination unavailable"]
)
def test_a_bmc_that_is_busy_for_a_moment_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    program = tmp_path / "ipmitool"
    program.write_text(
        f"#!/bin/sh\ncd {tmp_path}\nfor action; do :; done\necho $action >>asked\n"
        "[ $action != status ] || { echo 'Chassis Power is on'; exit 0; }\n"
        "[ ! -e busy ] || exit 0\ntouch busy\n"
        f"echo 'Set Chassis Power Control to Cycle failed: {code}'\nexit 1\n"
    )
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.01)
    _ipmi_by(tmp_path, monkeypatch).cycle()
    assert (tmp_path / "asked").read_text().split() == ["status", "cycle", "cycle", "status"]


def _count(pauses: list[int]) -> bool:
    pauses.append(1)
    return False


def test_a_wrong_password_is_told_once_and_never_shown(tmp_path: Path) -> None:
    for kind, simulator in {"ipmi": ipmi_simulator, "redfish": redfish_emulator}.items():
        folder = tmp_path / kind
        with simulator(folder, PASSWORD) as bmc:
            _answering(bmc)
            (folder / "password").write_text("wrong-canary")
            pauses: list[int] = []
            power = open_power(box(bmc.variables), stop=partial(_count, pauses))
            assert power is not None
            with pytest.raises(InfrastructureError, match="does not accept the user 'lab' and its") as caught:
                power.cycle()
        assert not pauses, "a BMC locks an account after some tries"
        assert "canary" not in f"{caught.value.message}{caught.value.details}"


def test_a_password_is_of_this_user_alone_and_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "password"
    bmc = {"kind": "ipmi", "address": "127.0.0.1", "user": "lab"}
    filed = box({**bmc, "password_file": str(secret)})
    with pytest.raises(RequestError, match=r"password_file .*: No such file"):
        check_passwords(filed)
    secret.write_text("")
    secret.chmod(0o600)
    with pytest.raises(RequestError, match="there is no password"):
        check_passwords(filed)
    secret.write_text(PASSWORD)
    check_passwords(filed)
    secret.chmod(0o640)
    with pytest.raises(RequestError, match="others can read it"):
        check_passwords(filed)
    named = box({**bmc, "password_env": "BMC_OF_BOX"})
    with pytest.raises(RequestError, match="the variable BMC_OF_BOX is not set"):
        check_passwords(named)
    behind_a_pdu = box([{"cycle": ["true"]}, {**bmc, "password_env": "BMC_OF_BOX"}])
    with pytest.raises(RequestError, match="the variable BMC_OF_BOX is not set"):
        check_passwords(behind_a_pdu)
    monkeypatch.setenv("BMC_OF_BOX", PASSWORD)
    check_passwords(named)


def test_a_testbed_without_power_has_none() -> None:
    assert open_power(box({})) is None
    assert open_power(box([])) is None

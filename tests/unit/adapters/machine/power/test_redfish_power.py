"""What BMCs say and want over Redfish that the emulator does not; the rest is in test_power_contract.py."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.machine.power import redfish_connection
from bisector.adapters.machine.power.power_stage import PowerConflict, PowerRefused
from bisector.adapters.machine.power.redfish_power import RedfishPower
from bisector.adapters.machine.power.verified_power import VerifiedPower
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.machine import power as variables
from tests.support.servers.redfish_service import (
    RESET,
    SYSTEM,
    RedfishService,
    make_certificates,
    redfish_service,
)


def power_of(
    service: RedfishService, certificate: Path | str | None = None, system: str = ""
) -> RedfishPower:
    trusted = None if certificate is None else str(certificate)
    return RedfishPower(
        variables.RedfishPowerSettings(
            kind="redfish",
            url=service.url,
            user="lab",
            password_env="BMC_OF_BOX",
            certificate=trusted,
            system=system,
        )
    )


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_OF_BOX", "canary-5f2e1")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return folder


@pytest.mark.parametrize("name", ["issued.pem", "self.pem"])
def test_a_certificate_from_the_factory_proves_its_bmc_and_no_other(certificates: Path, name: str) -> None:
    with redfish_service(certificates / name) as service:
        service.system = {"PowerState": "On"}
        assert power_of(service, certificates / name).status() == "on"
        both = certificates / "both.pem"
        both.write_text((certificates / "self.pem").read_text() + (certificates / "issued.pem").read_text())
        both.chmod(0o600)
        assert power_of(service, both).status() == "on"
        asked = service.requests
        for other in ({"issued.pem", "self.pem", "ca.pem"} - {name}) | {""}:
            with pytest.raises(PowerRefused, match="a certificate that is not trusted") as caught:
                power_of(service, certificates / other if other else None).status()
            assert "new one, or somebody" in caught.value.cure
        assert service.requests == asked, "no password goes there"


def test_one_that_shows_another_certificate_afterwards_gets_no_password(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (certificates / "self.pem").read_text()
    monkeypatch.setattr(ssl, "get_server_certificate", lambda *_, **__: other)
    with redfish_service(certificates / "issued.pem") as service:
        with pytest.raises(InfrastructureError, match="does not answer") as caught:
            power_of(service, certificates / "self.pem").status()
        assert "Fingerprints did not match" in caught.value.details
        assert service.requests == 0
    pool: Any = redfish_connection._OneCertificate("ab" * 32).proxy_manager_for("http://192.0.2.1:3128")
    assert pool.connection_pool_kw["assert_fingerprint"] == "ab" * 32


@pytest.mark.parametrize(
    ("state", "action", "resets"),
    [
        ("On", "on", []),
        ("Off", "off", []),
        ("PoweringOff", "on", ["On"]),
        ("PoweringOn", "off", ["ForceOff"]),
        ("PoweringOn", "cycle", ["PowerCycle"]),
        ("PoweringOff", "cycle", ["PowerCycle"]),
    ],
)
def test_a_machine_on_its_way_up_or_down_has_power_and_can_be_switched(
    state: str, action: str, resets: list[str]
) -> None:
    with redfish_service() as service:
        service.system = {"PowerState": state}
        service.after_reset = {"PowerState": {"off": "Off"}.get(action, "On")}
        getattr(VerifiedPower(power_of(service)), action)()
        assert service.resets == resets


@pytest.mark.parametrize(
    ("told", "state"),
    [("Paused", "unknown"), (None, "unknown"), ("PoweringOn", "on"), ("PoweringOff", "on"), ("Off", "off")],
)
def test_a_state_on_its_way_is_on_and_one_that_is_neither_is_unknown(told: str | None, state: str) -> None:
    with redfish_service() as service:
        service.system = {"PowerState": told}
        assert power_of(service).status() == state


@pytest.mark.parametrize(
    ("status", "final"), [(400, True), (404, True), (405, True), (501, True), (503, False)]
)
def test_what_a_bmc_cannot_do_is_refused_and_what_it_may_do_later_is_not(status: int, final: bool) -> None:
    """A refusal is not repeated, and the next stage is tried at once."""
    with redfish_service() as service:
        service.system, service.odd[RESET] = {"PowerState": "Off"}, (status, {"error": {"message": "no"}})
        with pytest.raises(InfrastructureError, match=f"status {status}") as caught:
            power_of(service).on()
        assert isinstance(caught.value, PowerRefused) == final


PSU502 = {"error": {"code": "Base.1.5.GeneralError", "message": "Server is already powered OFF."}}


@pytest.mark.parametrize(
    ("told", "now"), [("PoweringOff", "Off"), ("On", "Off")], ids=["changing", "old state"]
)
def test_a_bmc_in_conflict_with_a_request_is_believed_once_its_state_is_as_wanted(
    told: str, now: str
) -> None:
    """Dell's answer so where a machine is off already; the state that they tell may be some seconds old."""
    pauses: list[float] = []
    with redfish_service() as service:
        service.system, service.odd[RESET] = {"PowerState": told}, (409, PSU502)
        with pytest.raises(PowerConflict, match="status 409") as caught:
            power_of(service).off()
        assert "Server is already powered OFF." in caught.value.details

        def wait(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 5:
                service.system["PowerState"] = now

        VerifiedPower(power_of(service), wait).off()
    assert len(pauses) == 5


@pytest.mark.parametrize(("maker", "mode"), [("Supermicro", {"BootSourceOverrideMode": "UEFI"}), ("HPE", {})])
def test_a_bmc_that_forgets_the_mode_of_a_network_boot_is_told_it_again(
    maker: str, mode: dict[str, str]
) -> None:
    values = {"BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd"]}
    with redfish_service() as service:
        override, boot = power_of(service), {**values, "BootSourceOverrideMode": "UEFI"}
        service.system = {"Manufacturer": maker, "Boot": boot}
        override.boot_once_from_network()
        once = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}
        service.system["Boot"] = {**boot, **once}
        override.end_boot_override()
        off = {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}
        assert service.patches == [{"Boot": {**once, **mode}}, {"Boot": {**off, **mode}}]


def boot_of(target: str, enabled: str, *values: str) -> dict[str, Any]:
    return {
        "BootSourceOverrideTarget": target,
        "BootSourceOverrideEnabled": enabled,
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(values),
    }


def test_a_bmc_that_cannot_choose_the_network_is_refused_so_that_its_boot_order_may_do() -> None:
    with redfish_service() as service:
        service.system = {"Boot": boot_of("None", "Disabled", "None", "Hdd")}
        with pytest.raises(PowerRefused, match="the BMC has no boot source 'Pxe'"):
            power_of(service).boot_once_from_network()
        assert service.patches == []


@pytest.mark.parametrize(
    "boot",
    [boot_of("Pxe", "Disabled", "Pxe", "None"), boot_of("Cd", "Once", "Pxe", "Cd", "None"), None],
    ids=["over already", "a person's choice", "no choice at all"],
)
def test_what_is_no_network_boot_under_way_stays_as_it_is(boot: dict[str, Any] | None) -> None:
    with redfish_service() as service:
        service.system = {} if boot is None else {"Boot": boot}
        power_of(service).end_boot_override()
        assert service.patches == []


def test_where_no_choice_is_none_the_disk_is_it() -> None:
    with redfish_service() as service:
        service.system = {"Boot": boot_of("Pxe", "Once", "Pxe", "Hdd")}
        power_of(service).end_boot_override()
        off = {"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Disabled"}
        assert service.patches == [{"Boot": off}]


def test_a_bmc_without_power_cycle_switches_off_and_on() -> None:
    with redfish_service() as service:
        actions = {
            "#ComputerSystem.Reset": {
                "target": RESET,
                "ResetType@Redfish.AllowableValues": ["On", "ForceOff"],
            }
        }
        service.system = {"PowerState": "On", "Actions": actions}
        with pytest.raises(PowerRefused, match="the BMC has no 'PowerCycle'"):
            power_of(service).cycle()

        def wait(seconds: float) -> None:
            service.after_reset = {"PowerState": "On"}

        service.after_reset = {"PowerState": "Off"}
        VerifiedPower(power_of(service), wait).cycle()
        assert service.resets == ["ForceOff", "On"]


@pytest.mark.parametrize(
    ("path", "status", "document"),
    [
        (RESET, 500, []),
        (RESET, 500, {"error": None}),
        (RESET, 400, {"error": {"@Message.ExtendedInfo": ["full"]}}),
        (SYSTEM, 200, None),
        (SYSTEM, 200, []),
        (SYSTEM, 200, {"@odata.id": SYSTEM, "Id": "1", "Name": "1", "PowerState": "Off"}),
        ("/redfish/v1/Systems", 200, {"Name": "S", "Members": None}),
        ("/redfish/v1/Systems", 200, {"Name": "S", "Members": [7]}),
        ("/redfish/v1/", 200, "down for maintenance"),
    ],
)
def test_an_answer_of_another_shape_is_a_failure_of_the_bmc(path: str, status: int, document: object) -> None:
    with redfish_service() as service:
        service.system = {"PowerState": "Off"}
        service.odd[path] = status, document
        with pytest.raises(
            InfrastructureError, match=r"^the BMC answers with something unexpected$"
        ) as caught:
            power_of(service).on()
        assert not isinstance(caught.value, PowerRefused), "it may be asked again, and another stage is"


def test_a_password_that_http_cannot_carry_is_told_without_any_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_OF_BOX", "canary\N{EURO SIGN}")
    with redfish_service() as service, pytest.raises(PowerRefused, match="beyond Latin-1") as caught:
        power_of(service).status()
    shown = f"{caught.value} {caught.value.details} {caught.value.cure}"
    assert "canary" not in shown and "20ac" not in shown and "\N{EURO SIGN}" not in shown


def test_a_certificate_in_another_form_than_pem_is_told(certificates: Path) -> None:
    der = certificates / "self.der"
    der.write_bytes(b"\x30\x82\xff\xfe")
    der.chmod(0o600)
    with redfish_service(certificates / "self.pem") as service:
        with pytest.raises(InfrastructureError) as caught:
            power_of(service, der).status()
        assert service.requests == 0
        assert "unexpected" not in caught.value.message


@pytest.mark.parametrize(
    ("wanted", "path"), [("1", SYSTEM), (SYSTEM, SYSTEM), ("11", f"{SYSTEM}1"), (f"{SYSTEM}1", f"{SYSTEM}1")]
)
def test_of_several_systems_of_one_bmc_the_one_that_is_named_is_switched(wanted: str, path: str) -> None:
    """The others are machines of other people."""
    with redfish_service() as service:
        service.odd["/redfish/v1/Systems"] = 200, systems(SYSTEM, f"{SYSTEM}1")
        service.odd[SYSTEM] = 200, {**ONE, "@odata.id": SYSTEM, "PowerState": "On"}
        service.odd[f"{SYSTEM}1"] = 200, {**ONE, "@odata.id": f"{SYSTEM}1", "PowerState": "Off"}
        state = "on" if path == SYSTEM else "off"
        assert power_of(service, system=wanted).status() == state


@pytest.mark.parametrize(
    ("wanted", "words"), [("", "the BMC has 2 systems"), ("2", "the BMC has no system '2'")]
)
def test_no_system_is_switched_where_it_is_not_clear_which(wanted: str, words: str) -> None:
    with redfish_service() as service:
        service.odd["/redfish/v1/Systems"] = 200, systems(SYSTEM, f"{SYSTEM}1")
        with pytest.raises(RequestError, match=words) as caught:
            power_of(service, system=wanted).off()
        assert caught.value.details.split() == [SYSTEM, f"{SYSTEM}1"]
        assert service.resets == []


ONE = {"Id": "1", "Name": "1", "Actions": {"#ComputerSystem.Reset": {"target": RESET}}}


def systems(*paths: str) -> dict[str, object]:
    return {"Name": "S", "Members": [{"@odata.id": path} for path in paths]}


def test_a_certificate_that_is_gone_is_told(certificates: Path) -> None:
    with redfish_service(certificates / "self.pem") as service:
        with pytest.raises(InfrastructureError, match="the BMC does not answer") as caught:
            power_of(service, certificates / "gone.pem").status()
        assert "gone.pem" in caught.value.details


def test_a_certificate_that_is_not_looked_at_may_be_any(certificates: Path) -> None:
    with redfish_service(certificates / "self.pem") as service:
        service.system = {"PowerState": "On"}
        assert power_of(service, "any").status() == "on"


def test_a_bmc_that_repeats_the_password_does_not_have_it_shown() -> None:
    with redfish_service() as service:
        service.system = {"PowerState": "Off"}
        service.odd[RESET] = 503, {"error": {"code": "x", "message": "lab:canary-5f2e1 may not do that"}}
        with pytest.raises(InfrastructureError) as caught:
            power_of(service).on()
        assert "lab:*** may not" in caught.value.details and "canary" not in caught.value.details

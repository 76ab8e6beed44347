"""How a BMC lets us in: by Basic, by a session where that is off; certificates: test_redfish_power.py."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.adapters.machine.power.redfish_power import RedfishPower
from bisector.errors import InfrastructureError
from bisector.schemas.machine import power as variables
from tests.support.servers.redfish_service import RedfishService, redfish_service

PASSWORD = "canary-5f2e1"


@pytest.fixture
def bmc(monkeypatch: pytest.MonkeyPatch) -> Iterator[RedfishService]:
    """Give one that has HTTP Basic switched off."""
    monkeypatch.setenv("BMC_OF_BOX", PASSWORD)
    with redfish_service() as service:
        service.system = {"PowerState": "On"}
        service.accounts.password, service.accounts.basic = PASSWORD, False
        yield service


def power_of(service: RedfishService) -> RedfishPower:
    given = {"kind": "redfish", "url": service.url, "user": "lab", "password_env": "BMC_OF_BOX"}
    return RedfishPower(variables.RedfishPowerSettings.model_validate(given))


def test_a_bmc_with_basic_switched_off_is_switched_in_sessions_that_are_ended(bmc: RedfishService) -> None:
    power = power_of(bmc)
    assert power.status() == "on"
    power.cycle()
    assert (bmc.resets, bmc.accounts.opened, bmc.accounts.open) == (["PowerCycle"], 2, {})
    assert bmc.accounts.attempts == ["basic"], "what it refused once it may count"


def test_where_basic_works_no_session_is_taken(bmc: RedfishService) -> None:
    bmc.accounts.basic = True
    power_of(bmc).cycle()
    assert (bmc.resets, bmc.accounts.opened, bmc.accounts.attempts) == (["PowerCycle"], 0, [])


@pytest.mark.parametrize(
    ("basic", "advertised", "refusal", "attempts"),
    [
        (True, True, 401, ["basic"]),
        (True, False, 401, ["basic", "session"]),  # HTTPBasicAuth: Unadvertised
        (True, False, 400, ["basic", "session"]),
        (False, False, 401, ["basic", "session"]),
    ],
)
def test_a_wrong_password_is_told_after_as_few_attempts_as_can_be(
    bmc: RedfishService,
    monkeypatch: pytest.MonkeyPatch,
    basic: bool,
    advertised: bool,
    refusal: int,
    attempts: list[str],
) -> None:
    monkeypatch.setenv("BMC_OF_BOX", "wrong-canary")
    bmc.accounts.basic, bmc.accounts.advertised = basic, advertised
    bmc.accounts.refusal = (refusal, "UnauthorizedLoginAttempt wrong-canary")
    with pytest.raises(PowerRefused, match="does not accept the user 'lab' and its password") as caught:
        power_of(bmc).cycle()
    assert caught.value.cure == PowerRefused.usual_cure
    assert "canary" not in f"{caught.value.message}{caught.value.details}"
    assert (bmc.accounts.attempts, bmc.resets) == (attempts, [])


def test_a_password_that_becomes_wrong_is_tried_once_where_sessions_are_wanted(
    bmc: RedfishService, monkeypatch: pytest.MonkeyPatch
) -> None:
    power = power_of(bmc)
    power.status()
    bmc.accounts.attempts.clear()
    monkeypatch.setenv("BMC_OF_BOX", "wrong-canary")
    with pytest.raises(PowerRefused, match="does not accept the user"):
        power.status()
    assert bmc.accounts.attempts == ["session"]


def test_a_bmc_that_has_no_sessions_any_more_is_asked_by_basic_again(bmc: RedfishService) -> None:
    power = power_of(bmc)
    power.status()
    bmc.accounts.sessions, bmc.accounts.basic = False, True
    with pytest.raises(PowerRefused, match="does not accept the user") as caught:
        power.status()
    assert "asked for a session, it answers" in caught.value.details
    assert power.status() == "on"


@pytest.mark.parametrize("text", ["SessionLimitExceeded", "The maximum number of user sessions is reached."])
@pytest.mark.parametrize("status", [400, 503])
def test_a_bmc_without_a_free_session_is_no_wrong_password(
    bmc: RedfishService, status: int, text: str
) -> None:
    bmc.accounts.stern, bmc.accounts.refusal = True, (status, text)
    with pytest.raises(InfrastructureError, match="all sessions of the BMC are taken") as caught:
        power_of(bmc).status()
    assert not isinstance(caught.value, PowerRefused), "one may be free in a moment"
    assert "HTTP Basic" in caught.value.cure


def test_a_login_that_the_bmc_fails_at_is_told_as_that(bmc: RedfishService) -> None:
    bmc.accounts.stern, bmc.accounts.refusal = True, (500, "internal error")
    with pytest.raises(InfrastructureError, match="the BMC answers with status 500"):
        power_of(bmc).status()


def test_a_session_is_ended_after_an_error(bmc: RedfishService) -> None:
    power, reset = power_of(bmc), "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"
    bmc.accounts.forbidden = (reset,)
    with pytest.raises(PowerRefused):
        power.cycle()
    bmc.accounts.forbidden = ("/redfish/v1/Systems",)
    with pytest.raises(PowerRefused):
        power.status()
    bmc.accounts.forbidden = ()
    wanted = power._variables.model_copy(update={"system": "other"})
    with pytest.raises(Exception, match="no system 'other'"):
        RedfishPower(wanted).status()
    assert (bmc.accounts.opened, bmc.accounts.open) == (3, {}), "none is opened anew for a refusal (403)"
    assert bmc.accounts.by_basic == 2, "the first request of each, and none after a refusal"


def test_a_user_who_may_do_nothing_by_basic_gets_no_session(bmc: RedfishService) -> None:
    bmc.accounts.basic, bmc.accounts.forbidden = True, ("/redfish/v1/Systems",)
    with pytest.raises(PowerRefused, match="does not accept the user"):
        power_of(bmc).status()
    assert bmc.accounts.opened == 0


def test_a_session_that_the_bmc_has_ended_itself_is_not_ended_twice(
    bmc: RedfishService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked: list[str] = []

    def gone(path: str) -> int:
        asked.append(path)
        return 404

    monkeypatch.setattr(bmc.accounts, "log_out", gone)
    power_of(bmc).cycle()
    assert asked == ["/redfish/v1/SessionService/Sessions/1"]
    assert "open session" not in caplog.text


def test_a_session_that_is_named_with_a_host_of_the_bmcs_own_is_ended(bmc: RedfishService) -> None:
    bmc.accounts.location = "https://idrac.invalid"
    assert power_of(bmc).status() == "on"
    assert (bmc.accounts.opened, bmc.accounts.open) == (1, {})


def test_a_session_that_cannot_be_ended_takes_nothing_back(
    bmc: RedfishService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bmc.accounts.close_fails = 1
    power = power_of(bmc)
    power.cycle()
    assert bmc.accounts.open == {}, "it is asked once more"
    bmc.accounts.close_fails = 2
    power.cycle()
    assert (bmc.resets, len(bmc.accounts.open)) == (["PowerCycle"] * 2, 1)
    assert "a BMC was left with an open session, which it ends itself: ServerSideError" in caplog.text
    assert "canary" not in caplog.text

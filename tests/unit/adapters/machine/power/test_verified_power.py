"""Requests are repeated, cycles made of off and on, and states believed only when they are read."""

from __future__ import annotations

import pytest

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power import verified_power
from bisector.adapters.machine.power.power_stage import PowerConflict, PowerRefused
from bisector.adapters.machine.power.verified_power import VerifiedPower
from bisector.errors import InfrastructureError, Interrupted
from bisector.testing.fake_power import FakePower


class Bmc(FakePower):
    """One that notes requests, may refuse some, answers late, and loses requests."""

    def __init__(
        self, *, refuses: tuple[str, ...] = (), late: int = 0, loses: int = 0, told: bool = True
    ) -> None:
        super().__init__()
        self.refuses, self.late, self.loses, self.told = refuses, late, loses, told
        self.asked: list[str] = []
        self.shown: list[PowerStatus] = []

    def on(self) -> None:
        self._request("on")

    def off(self) -> None:
        self._request("off")

    def cycle(self) -> None:
        self._request("cycle")

    def status(self) -> PowerStatus:
        state = super().status()
        if not self.told:
            return "unknown"
        return self.shown.pop(0) if self.shown else state

    def _request(self, action: str) -> None:
        self.asked.append(action)
        if action in self.refuses:
            raise PowerRefused(f"no '{action}'")
        before = self.state
        if self.loses:
            self.loses -= 1
            self._answer()
            return
        getattr(super(), action)()
        self.shown = [before] * self.late


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_power, "_SWITCH_SECONDS", 0.05)


WAITED: list[float] = []


def verified(bmc: Bmc) -> VerifiedPower:
    WAITED.clear()
    return VerifiedPower(bmc, WAITED.append)


def test_a_state_that_comes_late_is_waited_for() -> None:
    bmc = Bmc(late=3)
    verified(bmc).on()
    assert (bmc.asked, bmc.shown, WAITED) == (["on"], [], [1.0, 1.0, 1.0])


def test_requests_are_repeated_with_growing_pauses() -> None:
    bmc = Bmc()
    bmc.dead = 2
    verified(bmc).on()
    assert (bmc.asked, WAITED) == (["on", "on", "on"], [2.0, 4.0])
    bmc.dead = 3
    with pytest.raises(InfrastructureError, match="does not answer"):
        verified(bmc).off()


def test_a_request_that_was_acknowledged_and_lost_is_repeated() -> None:
    bmc = Bmc(loses=1)
    verified(bmc).on()
    assert bmc.asked == ["on", "on"]
    assert bmc.state == "on"


def test_a_state_that_stays_another_is_an_error() -> None:
    bmc = Bmc(loses=99)
    with pytest.raises(InfrastructureError, match=r"its state is 'off' .* after 'on'"):
        verified(bmc).on()
    assert bmc.asked == ["on", "on"], "once more, and no longer"


def test_a_cycle_that_fails_is_for_the_next_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off and on would fail as well, after minutes."""
    bmc = Bmc()
    bmc.state = "on"

    def lost() -> None:
        bmc.asked.append("cycle")
        raise InfrastructureError("the BMC does not answer")

    monkeypatch.setattr(bmc, "cycle", lost)
    with pytest.raises(InfrastructureError, match="does not answer"):
        verified(bmc).cycle()
    assert bmc.asked == ["cycle"] * 3


@pytest.mark.parametrize("told", [True, False], ids=["state told", "no state"])
def test_a_refused_cycle_is_made_of_off_and_on(told: bool) -> None:
    bmc = Bmc(refuses=("cycle",), told=told)
    bmc.state = "on"
    verified(bmc).cycle()
    assert bmc.asked == ["cycle", "off", "on"]
    assert verified_power._OFF_SECONDS in WAITED
    assert (bmc.state, bmc.starts) == ("on", 1)


def test_a_machine_that_is_off_is_switched_on_instead() -> None:
    bmc = Bmc()
    verified(bmc).cycle()
    assert bmc.asked == ["on"]
    bmc = Bmc(refuses=("on",))  # a command for 'cycle' alone
    verified(bmc).cycle()
    assert bmc.asked == ["on", "cycle"]


def test_a_cycle_that_leaves_it_off_is_ended_with_on() -> None:
    bmc = Bmc()
    bmc.state = "on"
    bmc.late = 0
    power = verified(bmc)
    bmc.cycle = lambda: setattr(bmc, "state", "off")  # type: ignore[method-assign]
    power.cycle()
    assert bmc.asked == ["on"]
    assert bmc.state == "on"


def test_what_nothing_can_do_is_refused_at_once() -> None:
    bmc = Bmc(refuses=("cycle", "off"))
    bmc.state = "on"
    with pytest.raises(PowerRefused, match="no 'cycle'"):
        verified(bmc).cycle()
    assert WAITED == []
    assert bmc.asked == ["cycle", "off"], "nothing was switched off that must be on again"


@pytest.mark.parametrize("action", ["on", "off"])
def test_what_is_refused_because_it_is_so_already_is_done(action: PowerStatus) -> None:
    bmc = Bmc(refuses=(action,))
    bmc.state = action
    getattr(verified(bmc), action)()
    assert (bmc.asked, bmc.state) == ([action], action)
    bmc.told = False
    with pytest.raises(PowerRefused):
        getattr(verified(bmc), action)()


class Changing(Bmc):
    """One that is in conflict with requests until it was asked for its state so often; then it is `then`."""

    def __init__(self, then: PowerStatus, polls: int, *, told: bool = True) -> None:
        super().__init__(told=told)
        self.then, self.polls = then, polls

    def status(self) -> PowerStatus:
        self.polls -= 1
        if self.polls == 0:
            self.state = self.then
        return super().status()

    def _request(self, action: str) -> None:
        if self.polls > 0:
            self.asked.append(action)
            raise PowerConflict("the BMC answers with status 409", details="it is changing")
        super()._request(action)


@pytest.mark.parametrize(("action", "before"), [("on", "off"), ("off", "on")])
def test_a_change_under_way_that_leads_there_is_waited_for(action: PowerStatus, before: PowerStatus) -> None:
    """A PDU was switched under a machine that was on its way, or the machine was told to be lost."""
    bmc = Changing(action, 5)
    bmc.state = before
    getattr(verified(bmc), action)()
    assert (bmc.asked, bmc.state) == ([action] * 3, action)
    assert WAITED == [2.0, 4.0, 1.0, 1.0, 1.0]


def test_a_change_under_way_that_leads_elsewhere_has_the_request_made_again() -> None:
    bmc = Changing("on", 5)
    bmc.state = "on"
    verified(bmc).off()
    assert (bmc.asked, bmc.state) == (["off"] * 4, "off")


def test_a_conflict_that_stays_is_an_error_that_shows_it() -> None:
    bmc = Changing("on", 10**9)
    with pytest.raises(InfrastructureError, match=r"its state is 'off' .* after 'on'") as caught:
        verified(bmc).on()
    assert not isinstance(caught.value, PowerRefused), "it may be asked again"
    assert caught.value.details == "the BMC answers with status 409\nit is changing"


def test_a_conflict_where_no_state_is_told_has_switched_nothing() -> None:
    bmc = Changing("on", 10**9, told=False)
    with pytest.raises(PowerConflict):
        verified(bmc).on()
    assert bmc.asked == ["on"] * 3


def test_a_cycle_in_conflict_is_made_of_off_and_on() -> None:
    """It may be off by then: a cycle begins with a question for its state, which may be old."""
    bmc = Changing("off", 2)
    bmc.state = "on"
    verified(bmc).cycle()
    assert bmc.asked == ["cycle", "cycle", "cycle", "off", "off", "off", "on"]
    assert (bmc.state, bmc.starts) == ("on", 1)


def test_a_machine_that_was_switched_off_is_switched_on_though_that_is_refused_for_a_while() -> None:
    bmc = Bmc(refuses=("cycle", "on"))
    bmc.state = "on"

    def wait(seconds: float) -> None:
        if bmc.asked.count("on") == 2:
            bmc.refuses = ("cycle",)

    VerifiedPower(bmc, wait).cycle()
    assert (bmc.asked, bmc.state) == (["cycle", "off", "on", "on", "on"], "on")
    bmc.refuses = ("cycle", "on")
    bmc.asked.clear()
    with pytest.raises(PowerRefused, match="no 'on'"):
        VerifiedPower(bmc, WAITED.append).cycle()


def test_waiting_can_be_ended() -> None:
    def wait(seconds: float) -> None:
        raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        VerifiedPower(Bmc(late=2), wait).on()


@pytest.mark.parametrize("error", [Interrupted("stopped"), KeyboardInterrupt(), InfrastructureError("dead")])
def test_what_breaks_between_off_and_on_leaves_no_machine_off(error: BaseException) -> None:
    bmc = Bmc(refuses=("cycle",))
    bmc.state = "on"

    def wait(seconds: float) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        VerifiedPower(bmc, wait).cycle()
    assert caught.value is error
    assert (bmc.asked, bmc.state) == (["cycle", "off", "on"], "on")


def test_what_ends_the_wait_for_off_has_nothing_waited_for_any_more() -> None:
    bmc, pauses = Bmc(refuses=("cycle",), late=1), list[float]()
    bmc.state = "on"

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        VerifiedPower(bmc, wait).cycle()
    assert (bmc.asked, len(pauses)) == (["cycle", "off", "on"], 1)


def test_a_state_that_a_busy_bmc_does_not_tell_at_once_is_asked_for_again() -> None:
    """The machine was switched: a second stage would switch it once more."""
    bmc = Bmc()
    bmc.dead = 2
    assert verified(bmc).status() == "off"
    assert WAITED == [2.0, 4.0]

"""The next stage is used when one is dead; when all are, each is named with how it failed."""

from __future__ import annotations

import pytest

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.adapters.machine.power.staged_power import StagedPower
from bisector.errors import InfrastructureError, RequestError
from bisector.testing.fake_power import FakePower


class Mute(FakePower):
    """A power strip that cannot be asked."""

    def status(self) -> PowerStatus:
        return "unknown"


class Unset(FakePower):
    """A BMC whose password is missing."""

    def _answer(self) -> None:
        raise RequestError("the variable BMC is not set", details="in the inventory", cure="set it")


def test_the_first_stage_that_answers_is_enough() -> None:
    told: list[str] = []
    bmc, strip = FakePower("ipmi bmc"), FakePower("command pdu")
    power = StagedPower("box", [bmc, strip], told.append)
    power.on()
    assert (bmc.starts, strip.starts, told) == (1, 0, [])


def test_the_next_stage_takes_over_and_that_is_told() -> None:
    told: list[str] = []
    bmc, strip = FakePower("ipmi bmc", dead=1), FakePower("command pdu")
    power = StagedPower("box", [bmc, strip], told.append)
    power.cycle()
    assert strip.starts == 1
    assert told == ["power of 'box': ipmi bmc: the BMC does not answer; trying the next stage"]
    power.off()
    assert (bmc.state, strip.state) == ("off", "on")


def test_the_stages_behind_the_one_that_switched_are_left_for_a_machine_that_did_not_obey() -> None:
    bmc, spare, strip = FakePower("ipmi bmc"), FakePower("redfish bmc", dead=1), FakePower("command pdu")
    power = StagedPower("box", [bmc, spare, strip], lambda _: None)
    assert power.further() is None, "nothing was switched"
    power.cycle()
    power.status()
    behind = power.further()
    assert behind is not None
    behind.cycle()
    assert (bmc.starts, spare.starts, strip.starts) == (1, 0, 1), "the spare one is dead"
    assert behind.further() is None
    power.cycle()
    strip.dead = bmc.dead = spare.dead = 1
    with pytest.raises(InfrastructureError):
        power.cycle()
    assert power.further() is None, "all were tried"


def test_no_next_stage_is_told_of_behind_the_last() -> None:
    told: list[str] = []
    stages = [FakePower("ipmi bmc", dead=1), FakePower("command pdu", dead=1)]
    with pytest.raises(InfrastructureError):
        StagedPower("box", stages, told.append).cycle()
    assert told == ["power of 'box': ipmi bmc: the BMC does not answer; trying the next stage"]


def test_the_stage_that_switched_last_is_known() -> None:
    bmc, strip = FakePower("ipmi bmc"), FakePower("command pdu")
    power = StagedPower("box", [bmc, strip], lambda _: None)
    assert power.switched_by() == "", "nothing was switched"
    power.on()
    assert power.switched_by() == "1 of 2 (ipmi bmc)"
    bmc.dead = 1
    power.off()
    power.status()
    assert power.switched_by() == "2 of 2 (command pdu)"
    bmc.dead = strip.dead = 1
    with pytest.raises(InfrastructureError):
        power.on()
    assert power.switched_by() == ""
    alone = StagedPower("box", [bmc], lambda _: None)
    alone.on()
    assert alone.switched_by() == ""


def test_all_dead_names_each_stage_and_how_it_failed() -> None:
    stages = [FakePower("ipmi bmc", dead=1), Unset("redfish bmc"), FakePower("command pdu", dead=1)]
    with pytest.raises(InfrastructureError) as caught:
        StagedPower("box", stages, lambda _: None).cycle()
    assert caught.value.message == (
        "the testbed 'box' cannot be switched off and on: ipmi bmc: the BMC does not answer; "
        "redfish bmc: the variable BMC is not set; command pdu: the BMC does not answer"
    )
    assert (caught.value.details, caught.value.cure) == ("redfish bmc: in the inventory", "set it")
    assert not isinstance(caught.value, PowerRefused)


def test_the_state_is_of_the_first_stage_that_can_tell() -> None:
    strip, bmc = Mute("command pdu"), FakePower("ipmi bmc")
    assert StagedPower("box", [strip, bmc], lambda _: None).status() == "off"
    assert StagedPower("box", [strip], lambda _: None).status() == "unknown"
    bmc.dead = 2
    assert StagedPower("box", [strip, bmc], lambda _: None).status() == "unknown"
    with pytest.raises(InfrastructureError, match="cannot be asked for its state: ipmi bmc: "):
        StagedPower("box", [bmc], lambda _: None).status()


def test_what_one_stage_refuses_and_another_fails_to_do_may_be_asked_for_again() -> None:
    """A refusal is final: the PDU that is away for a minute would never be asked again."""

    class Refusing(FakePower):
        def on(self) -> None:
            raise PowerRefused("there is no command 'on'")

    with pytest.raises(InfrastructureError) as caught:
        StagedPower("box", [Refusing("command a"), FakePower("ipmi b", dead=9)], lambda _: None).on()
    assert not isinstance(caught.value, PowerRefused)
    with pytest.raises(PowerRefused):
        StagedPower("box", [Refusing("command a"), Refusing("command b")], lambda _: None).on()

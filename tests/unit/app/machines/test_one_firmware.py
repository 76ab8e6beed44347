"""Samples of one testbed from before and after a firmware update are not compared."""

from __future__ import annotations

import pytest

from bisector.app.machines.one_firmware import require_one_firmware
from bisector.errors import RequestError
from bisector.stats.samples import SampleSet


def sample(name: str, where: str = "", **facts: str) -> SampleSet:
    return SampleSet(name, {}, where, facts={key.replace("_", "."): text for key, text in facts.items()})


def test_a_changed_firmware_is_refused_with_a_cure() -> None:
    columns = [[sample("a", "box", machine_bios="F2")], [sample("b", "box", machine_bios="F3")]]
    with pytest.raises(RequestError, match="of the testbed 'box' changed between a and b") as caught:
        require_one_firmware(columns)
    assert caught.value.details == "firmware (BIOS): F2 -> F3" and "one firmware" in caught.value.cure


@pytest.mark.parametrize(
    "other",
    [
        sample("b", "box", machine_bios="F2"),
        sample("b", "rack", machine_bios="F3"),
        sample("b", "box"),
        sample("b", "box", machine_bios="F3", testbed="elsewhere", cpu_model="E7"),
    ],
)
def test_another_testbed_and_what_tells_nothing_are_let_through(other: SampleSet) -> None:
    require_one_firmware([[sample("a", "box", machine_bios="F2", testbed="box", cpu_model="E5")], [other]])

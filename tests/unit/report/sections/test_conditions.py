"""What was asked for, and where it was measured."""

from __future__ import annotations

import dataclasses

import pytest

from bisector.model.records import Booted, Built
from bisector.report.report_model import Material
from bisector.report.sections import conditions
from tests.support.report_material import demo


def words(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def changed(boot: str, **fields: object) -> Material:
    material = demo()
    records = [
        (n, dataclasses.replace(r, **fields) if isinstance(r, Booted) and r.boot == boot else r)  # type: ignore[arg-type]
        for n, r in material.records
    ]
    return dataclasses.replace(material, records=records)


def test_the_request() -> None:
    text = words(conditions.request(demo()))
    assert "4 candidates between 111111111111" in text
    assert "threshold 5% of good" in text
    assert "instructions: the guest's clock advances" in text
    assert "skip rt-01" in text


def test_a_workload_that_changed_in_between_is_told() -> None:
    assert "workload checksum sha256:aa11 image" in words(conditions.where(demo()))
    text = words(conditions.where(changed("b4", workload="sha256:cc33")))
    assert "workload checksum sha256:aa11, sha256:cc33 - it changed" in text


@pytest.mark.parametrize(("commit", "told"), [(2, True), (3, True), (4, False)])
def test_a_culprit_of_another_compiler_than_its_parent_is_told(commit: int, told: bool) -> None:
    material = demo()
    records = [
        (n, dataclasses.replace(r, kernel=dataclasses.replace(r.kernel, toolchain="gcc 14")))
        if isinstance(r, Built) and r.kernel is not None and r.commit == commit
        else (n, r)
        for n, r in material.records
    ]
    text = words(conditions.where(dataclasses.replace(material, records=records)))
    assert ("compilers differ" in text) == told
    assert "toolchain gcc 12.2.0, gcc 14" in text
    if told:
        assert f"its parent by gcc {'14' if commit == 2 else '12.2.0'}: that may be the change" in text


def test_settings_name_their_testbed_where_there_are_several() -> None:
    facts = {"setting.governor.before": "powersave", "setting.governor.after": "performance"}
    assert "set governor powersave -> performance" in words(conditions.where(changed("b1", facts=facts)))


def test_each_of_several_testbeds_is_told_by_name() -> None:
    """That of the last boot of good stood there without a name, as 'guest', on machines, too."""
    facts = {"cpu.model": "Atom", "cmdline": "quiet"}
    several = words(conditions.where(changed("b6", testbed="box", facts=facts)))
    assert "cpu.model on box Atom" in several and "cmdline on box quiet" in several
    assert "cpu.model on laptop-icount QEMU Virtual CPU" in several and "guest" not in several
    by_wall = dataclasses.replace(demo(), goal=dataclasses.replace(demo().goal, clock="wall"))
    assert "testbed cpu.model QEMU Virtual CPU" in words(conditions.where(by_wall))
    assert "guest cpu.model QEMU Virtual CPU" in words(conditions.where(demo()))


@pytest.mark.parametrize(
    ("candidates", "said"), [(1, "1 candidate between"), (111_556, "111,556 candidates between")]
)
def test_candidates_are_counted_as_elsewhere(candidates: int, said: str) -> None:
    graph = dataclasses.replace(demo().graph, candidate=(True,) * candidates)
    assert conditions.question(dataclasses.replace(demo(), graph=graph)).startswith(said)

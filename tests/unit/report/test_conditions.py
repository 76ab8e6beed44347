"""What was asked for, and where it was measured."""

from __future__ import annotations

import dataclasses

from bisector.model.records import Booted
from bisector.report import conditions
from bisector.report.report_model import Material
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


def test_settings_name_their_testbed_where_there_are_several() -> None:
    facts = {"setting.governor.before": "powersave", "setting.governor.after": "performance"}
    assert "set governor powersave -> performance" in words(conditions.where(changed("b1", facts=facts)))

"""The published schema describes what is printed: no key too many, none missing."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from bisector.model.decisions import Interval
from bisector.report import json_report
from bisector.report.report_model import Material
from bisector.schemas.report_document import ReportDocument, json_schema
from tests.support.report_material import demo, sixty_boots

PUBLISHED = Path(__file__).resolve().parents[3] / "docs" / "reference" / "report.schema.json"


def printed(material: Material) -> object:
    return json.loads(json.dumps(json_report.render(material), allow_nan=False))


def infinite() -> Material:
    found = demo()
    assert found.conclusion is not None
    total = Interval(-math.inf, 0.1, math.inf)
    return dataclasses.replace(found, conclusion=dataclasses.replace(found.conclusion, total=total))


@pytest.mark.parametrize(
    "material",
    [
        pytest.param(demo(), id="one testbed"),
        pytest.param(sixty_boots(), id="two testbeds"),
        pytest.param(dataclasses.replace(demo(), conclusion=None), id="no conclusion"),
        pytest.param(infinite(), id="no interval"),
    ],
)
def test_what_is_printed_is_what_is_described(material: Material) -> None:
    document = printed(material)
    assert ReportDocument.model_validate(document).model_dump(mode="json", by_alias=True) == document


def test_the_published_schema_is_the_one_of_the_program() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema()


def test_readers_may_meet_keys_that_they_do_not_know() -> None:
    assert "additionalProperties" not in json_schema()
    assert json_schema()["properties"]["schema"]["const"] == 1

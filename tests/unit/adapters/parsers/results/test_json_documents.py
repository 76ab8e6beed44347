"""perfbisect's own documents and plain ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.parsers.results import read
from bisector.errors import RequestError
from tests.support.result_samples import boots, only, written


def test_own_document_with_testbeds_and_published_means(tmp_path: Path) -> None:
    document = {
        "name": "BWC",
        "sets": [
            {
                "testbed": "x",
                "metrics": {"cycles": {"mean": 10, "error": 0.01, "runs": 50}},
                "sizes": {"text": 1},
            },
            {
                "testbed": "y",
                "metrics": {"cycles": {"values": [[1, 2], [3]], "unit": "", "better": "higher"}},
            },
        ],
    }
    x, y = read(written(tmp_path, json.dumps(document)))
    assert (x.name, x.testbed, x.series["cycles"].error, x.series["cycles"].repeats) == ("BWC", "x", 0.01, 50)
    assert (y.series["cycles"].boots, y.series["cycles"].better) == (((1.0, 2.0), (3.0,)), "higher")


def test_plain_document(tmp_path: Path) -> None:
    assert boots(only(written(tmp_path, '{"real": [1, 2], "sys": [[3], [4]]}'))) == {
        "real": ((1.0, 2.0),),
        "sys": ((3.0,), (4.0,)),
    }
    assert boots(only(written(tmp_path, "[1, 2]"))) == {"value": ((1.0, 2.0),)}


def test_a_set_may_have_a_name_of_its_own_units_and_reasons(tmp_path: Path) -> None:
    metrics = {"real": {"values": [1, 2], "unit": "ms", "better": "lower"}, "once": 5}
    one = {"name": "mine", "testbed": "x", "metrics": metrics, "missing": {"misses": "not counted"}}
    found = only(written(tmp_path, json.dumps(one)))
    assert (found.name, found.testbed, found.missing) == ("mine", "x", {"misses": "not counted"})
    real = found.series["real"]
    assert (real.boots, real.unit, real.better) == (((1.0, 2.0),), "ms", "lower")
    assert found.series["once"].boots == ((5.0,),)
    (first, second) = read(
        written(tmp_path, json.dumps({"name": "all", "sets": [one, {"metrics": {"a": 1}}]}))
    )
    assert (first.name, second.name) == ("mine", "all")


def test_errors_have_no_sign_and_boots_without_a_run_are_none(tmp_path: Path) -> None:
    text = '{"metrics": {"a": {"mean": 5, "error": -0.01}, "b": [[1], [], [2]]}}'
    found = only(written(tmp_path, text))
    assert (found.series["a"].error, found.series["a"].repeats) == (0.01, 0)
    assert found.series["b"].boots == ((1.0,), (2.0,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"sets": []}', "'sets' must be a list of sets"),
        ('{"sets": [{"metrics": {"a": 1}}], "set": 1}', "unknown key 'set'"),
        ('{"metrics": {"a": 1}, "test_bed": "x"}', "unknown key 'test_bed'"),
        ('{"a": [[1], 2]}', "a number was expected, not"),
        ('{"metrics": {"a": {"mean": 1, "runs": -1}}}', "a whole number from 0 on"),
        ('{"metrics": {"a": {"mean": 1, "runs": 1.5}}}', "a whole number from 0 on"),
        ('{"metrics": {"a": {"mean": 1, "runs": 1e19}}}', "a whole number from 0 on"),
    ],
)
def test_documents_that_are_no_samples(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=said):
        read(written(tmp_path, text))


def test_a_metric_may_be_called_metrics(tmp_path: Path) -> None:
    assert boots(only(written(tmp_path, '{"metrics": [1, 2]}'))) == {"metrics": ((1.0, 2.0),)}

"""perfbisect's own documents and plain ones."""

from __future__ import annotations

import json
from pathlib import Path

from bisector.adapters.parsers.results import read
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

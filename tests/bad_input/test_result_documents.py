"""Results and samples in JSON that cannot be read, or would be read wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.broken_documents import ANY_LANGUAGE, JSON, broken, not_a_file
from tests.bad_input.harness import Row, check_row, each_row

RESULTS = "new.json"
COMPARE = ["compare", "old.txt", RESULTS]

SAMPLES = "samples.json"
SIMULATE = ["simulate", "--samples", SAMPLES, "--trials", "1", "--commits", "4"]

WRONG_RESULTS = {
    "nothing": "",
    "a text": '"x"',
    "an empty object": "{}",
    "an empty list": "[]",
    "true": '{"real": [true]}',
    "numbers as text": '{"real": ["1.0"]}',
    "a mapping of mappings": '{"real": {"a": 1}}',
    "an unknown direction": '{"metrics": {"real": {"values": [1], "better": "down"}}}',
    "an unknown key": '{"metrics": {"real": {"values": [1], "unti": "s"}}}',
    "a mean of text": '{"metrics": {"real": {"mean": "x"}}}',
    "an error of text": '{"metrics": {"real": {"mean": 1, "error": "x"}}}',
    "runs of text": '{"metrics": {"real": {"mean": 1, "runs": "x"}}}',
    "sizes of text": '{"metrics": {"real": [1]}, "sizes": {"text": "x"}}',
    "metrics that are a list": '{"sets": [{"metrics": [1]}]}',
    "sets that are none": '{"sets": []}',
    "sets of numbers": '{"sets": [1]}',
    "lists of lists of lists": '{"real": [[[1]]]}',
}

WRONG_SAMPLES = {
    "no boots": "{}",
    "boots that are empty": '{"boots": []}',
    "an empty boot": '{"boots": [[]]}',
    "a boot of text": '{"boots": [["x"]]}',
    "a boot of truth": '{"boots": [[true]]}',
    "a list": "[[1, 2]]",
    "boots as a mapping": '{"boots": {"a": [1]}}',
    "boots twice": '{"boots": [[1]], "boots": [[2]]}',
}

ROWS = [
    *broken("results", RESULTS, COMPARE, JSON),
    *broken("samples", SAMPLES, SIMULATE, ANY_LANGUAGE, JSON),
    *(Row(f"results: {name}", COMPARE, [RESULTS], {RESULTS: text}) for name, text in WRONG_RESULTS.items()),
    *(Row(f"samples: {name}", SIMULATE, [SAMPLES], {SAMPLES: text}) for name, text in WRONG_SAMPLES.items()),
    *not_a_file("samples", SAMPLES, SIMULATE),
    Row("samples: eleven megabytes", SIMULATE, ["larger than 10 MiB"], {SAMPLES: "[" + "1," * (11 << 19)}),
]


@each_row(ROWS)
def test_results_are_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)

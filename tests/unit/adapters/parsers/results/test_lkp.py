"""lkp-tests: folders of runs, of one run, and a matrix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.stats.comparison import compare
from bisector.stats.samples import with_ratios
from tests.support.result_samples import boots, only, written


def test_lkp_folder_of_one_run(tmp_path: Path) -> None:
    written(tmp_path, '{"hackbench.throughput": 5.5, "boot-time.boot": [9]}', "results/stats.json")
    assert boots(only(str(tmp_path / "results"))) == {
        "boot-time.boot": ((9.0,),),
        "hackbench.throughput": ((5.5,),),
    }


def test_lkp_folder_of_runs_and_of_a_matrix(tmp_path: Path) -> None:
    for i, ops in enumerate((100, 110, 120)):
        stats = {"will-it-scale.per_thread_ops": ops, "meminfo.Active": [1, 2, 3], "stats_source.x": 1}
        written(tmp_path, json.dumps(stats | ({"rare": 1} if i == 0 else {})), f"abc/{i}/stats.json")
    found = only(str(tmp_path / "abc"))
    assert found.series["will-it-scale.per_thread_ops"].boots == ((100.0,), (110.0,), (120.0,))
    assert "stats_source.x" not in found.series
    assert "missing in some runs, such as rare" in found.notes[0]
    written(tmp_path, json.dumps({"ops": [1, 2]}), "def/matrix.json")
    assert boots(only(str(tmp_path / "def"))) == {"ops": ((1.0,), (2.0,))}


def test_ratios_of_lkp_are_of_the_runs_that_have_both(tmp_path: Path) -> None:
    runs = [
        {"instructions": 100, "cycles": 50},
        {"instructions": 200},
        {"cycles": 400},
        {"instructions": 100, "cycles": "none"},
        {"instructions": 120, "cycles": 60},
    ]
    for i, stats in enumerate(runs):
        written(tmp_path, json.dumps(stats), f"abc/{i}/stats.json")
    found = with_ratios(only(str(tmp_path / "abc")))
    assert found.series["ipc"].boots == ((2.0,), (2.0,))
    assert found.series["instructions"].values == (100.0, 200.0, 100.0, 120.0)
    result = compare("cycles", found.series["cycles"], found.series["cycles"])
    assert (result.a.runs, result.a.boots) == (3, 3)


def test_runs_are_in_the_order_of_their_numbers_and_lists_count_with_their_last_value(tmp_path: Path) -> None:
    for i in (10, 2, 9):
        stats = {"ops": i, "slabinfo": [0, 0, i], "none": [], "is_kvm": True}
        written(tmp_path, json.dumps(stats), f"abc/{i}/stats.json")
    found = only(str(tmp_path / "abc"))
    runs = ((2.0,), (9.0,), (10.0,))
    assert boots(found) == {"ops": runs, "slabinfo": runs}
    assert found.notes == ()


def test_a_matrix_has_numbers_of_all_its_runs(tmp_path: Path) -> None:
    matrix = {"ops": [1, None, 3], "stats_source": ["a", "b"], "note": "text", "flags": [True]}
    written(tmp_path, json.dumps(matrix), "def/matrix.json")
    found = only(str(tmp_path / "def"))
    assert boots(found) == {"ops": ((1.0,), (), (3.0,))}
    assert found.notes == ()
    written(tmp_path, json.dumps({"note": "text"}), "none/matrix.json")
    with pytest.raises(RequestError, match="its statistics hold no number"):
        only(str(tmp_path / "none"))

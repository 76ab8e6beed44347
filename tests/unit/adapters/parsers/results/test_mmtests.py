"""MMTests: folders of a run, and its own extraction."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bisector.adapters.parsers.results import read
from bisector.errors import RequestError
from tests.support.result_samples import boots, only, written


def test_mmtests_folder(tmp_path: Path) -> None:
    for iteration, seconds in ((0, "1.50"), (10, "3.50"), (2, "2.50")):
        for run in (1, 2, 10):
            name = f"run/iter-{iteration}/poundtime/logs/time-12-{run}"
            written(tmp_path, f"0.10user 0.20system 0:0{seconds}elapsed 99%CPU\n", name)
    packed = tmp_path / "run/iter-0/poundtime/logs/time-2-1.gz"
    packed.write_bytes(gzip.compress(b"0.10user 0.20system 0:09.00elapsed 99%CPU\n"))
    found = only(str(tmp_path / "run"))
    assert found.name == "run"
    assert found.series["Elapsed-12"].boots == ((1.5,) * 3, (2.5,) * 3, (3.5,) * 3)  # iter-2 before iter-10
    assert found.series["Elapsed-2"].boots == ((9.0,),)
    assert list(found.series)[:2] == ["Elapsed-2", "Elapsed-12"]


def test_mmtests_folder_of_a_benchmark_with_several_cases(tmp_path: Path) -> None:
    for threads, seconds in ((128, 6.42), (2, 3.68)):
        for run in (10, 9, 1):
            stem = f"6e998916df/iter-0/poundtime/logs/pound_times-{threads}-{run}"
            line = f"10.10user 0.20system 0:0{seconds + run / 100:.2f}elapsed 99%CPU"
            written(
                tmp_path, f"{line} (0avgtext+0avgdata 1572maxresident)k\n0inputs+0outputs\n", f"{stem}.time"
            )
            written(tmp_path, "utime decreased, was 3, now 2!\n", f"{stem}.log")
    found = only(str(tmp_path / "6e998916df"))
    assert list(found.series)[:2] == ["real-pound_times-2", "real-pound_times-128"]
    assert found.series["real-pound_times-2"].boots == ((3.69, 3.77, 3.78),)
    assert (found.series["syst-pound_times-128"].unit, found.name) == ("s", "6e998916df")


def test_mmtests_folder_of_a_benchmark_that_only_mmtests_can_read(tmp_path: Path) -> None:
    written(tmp_path, "x", "run/iter-0/dbench/logs/dbench-1.log")
    with pytest.raises(RequestError, match="no time-") as caught:
        read(str(tmp_path / "run"))
    assert "extract-mmtests.pl" in caught.value.cure


def test_mmtests_extraction(tmp_path: Path) -> None:
    document = {
        "_TestName": "6.1-vanilla",
        "_PreferredVal": "Higher",
        "_ResultData": {"Hmean-4": [{"Values": [10, 11]}, {"Values": [12]}, None]},
    }
    found = only(written(tmp_path, json.dumps(document)))
    assert (found.name, boots(found)) == ("6.1-vanilla", {"Hmean-4": ((10.0, 11.0), (12.0,))})
    assert found.series["Hmean-4"].better == "higher"


def test_mmtests_folder_with_its_own_extraction(tmp_path: Path) -> None:
    # Perl writes what it read from a text as a string.
    one = {
        "_PreferredVal": "Lower",
        "_ResultData": {"usecs-op": [{"SampleNrs": ["1", 2], "Values": ["5.5", 6]}]},
    }
    written(tmp_path, "x", "run/iter-0/perfpipe/logs/benchlog-_-_-1")
    written(tmp_path, json.dumps(one), "run/perfpipe.json")
    found = only(str(tmp_path / "run"))
    assert (found.name, boots(found)) == ("run", {"usecs-op": ((5.5, 6.0),)})
    assert found.series["usecs-op"].better == "lower"
    written(tmp_path, json.dumps(one | {"_PreferredVal": "Higher"}), "run/other.json")
    assert set(only(str(tmp_path / "run")).series) == {"perfpipe.usecs-op", "other.usecs-op"}
    for text, said in (
        ('{"_ResultData": {"a": [{"Values": ["x"]}]}}', "'x' is not a number"),
        ('{"_ResultData": {"a": [{"Val', "not valid JSON"),
        ('{"a": 1}', "not what extract-mmtests.pl"),
        ('{"_ResultData": {}}', "no sample"),
    ):
        written(tmp_path, text, "run/other.json")
        with pytest.raises(RequestError, match=said):
            read(str(tmp_path / "run"))


def test_mmtests_folder_of_several_benchmarks_of_which_one_was_left_out_once(tmp_path: Path) -> None:
    line = "0.10user 0.20system 0:0{}.50elapsed 99%CPU\n"
    written(tmp_path, line.format(1), "run/iter-0/poundtime/logs/time-4-1")
    written(tmp_path, line.format(2), "run/iter-0/kernbench/logs/time-4-1")
    written(tmp_path, line.format(3), "run/iter-1/kernbench/logs/time-4-1")
    written(tmp_path, line.format(4), "run/iter-1/poundtime/logs/time-8-1")
    found = only(str(tmp_path / "run"))
    assert {name: one.boots for name, one in found.series.items() if "Elapsed" in name} == {
        "kernbench.Elapsed-4": ((2.5,), (3.5,)),
        "poundtime.Elapsed-4": ((1.5,),),
        "poundtime.Elapsed-8": ((4.5,),),
    }
    times = [found.series[f"kernbench.{name}-4"].boots[0] for name in ("User", "System")]
    assert times == [(0.1,), (0.2,)]
    assert {one.better for one in found.series.values()} == {"lower"}


def test_mmtests_repetitions_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for run in (10, 9, 1):
        line = f"0.0{run % 10}user 0.20system 0:{run}.00elapsed 99%CPU\n"
        written(tmp_path, line, f"run/iter-0/poundtime/logs/time-4-{run}")
        written(tmp_path, line, f"run/iter-0/poundtime/logs/case-4-{run}.time")
    found = only(str(tmp_path / "run")).series
    assert found["Elapsed-4"].boots == found["real-case-4"].boots == ((1.0, 9.0, 10.0),)
    assert found["user-case-4"].boots == ((0.01, 0.09, 0.0),) and found["syst-case-4"].values[0] == 0.2

"""What other programs measured, read: every form, and what is wrong with a file in words."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.parsers.results import read
from bisector.adapters.parsers.run_files import values
from bisector.adapters.parsers.workload_output import OutputError
from bisector.errors import RequestError
from bisector.ports import MetricSpec
from bisector.stats.samples import SampleSet


def written(folder: Path, text: str, name: str = "a.txt") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def only(place: str) -> SampleSet:
    (found,) = read(place)
    return found


def boots(found: SampleSet) -> dict[str, tuple[tuple[float, ...], ...]]:
    return {name: s.boots for name, s in found.series.items()}


# --- numbers, names, time, size


def test_numbers_with_boots_and_comments(tmp_path: Path) -> None:
    found = only(written(tmp_path, "# a\n1 2.5\n3e1 # b\n# c\n\n-4\n\n\n", "old.txt"))
    assert boots(found) == {"value": ((1.0, 2.5, 30.0), (-4.0,))}
    assert found.name == "old"


def test_names_with_units_repeat_as_runs(tmp_path: Path) -> None:
    found = only(written(tmp_path, "real: 5.3 s\nops = 12\nreal: 5.4 s\nops = 13\n"))
    assert boots(found) == {"real": ((5.3, 5.4),), "ops": ((12.0, 13.0),)}
    assert found.series["real"].unit == "s"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("real\t0m5.328s\nuser\t1m0.106s\nsys\t0m2.287s\n", (5.328, 60.106, 2.287)),
        ("real 5.32\nuser 60.10\nsys 2.28\n", (5.32, 60.10, 2.28)),
        ("real\t0m5,328s\nuser\t1m0,106s\nsys\t0m2,287s\n", (5.328, 60.106, 2.287)),
        ("60.10user 2.28system 0:05.32elapsed 99%CPU (0avgtext+0avgdata)\n", (5.32, 60.10, 2.28)),
        ("60.10user 2.28system 1:00:05elapsed 99%CPU (0avgtext+0avgdata)\n", (3605.0, 60.10, 2.28)),
        (
            "\tUser time (seconds): 60.10\n\tSystem time (seconds): 2.28\n"
            "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:05.32\n",
            (5.32, 60.10, 2.28),
        ),
    ],
)
def test_every_time(text: str, values: tuple[float, float, float], tmp_path: Path) -> None:
    found = only(written(tmp_path, text))
    assert tuple(found.series[n].boots[0][0] for n in ("real", "user", "sys")) == values
    assert found.series["real"].better == "lower"


def test_sizes_of_two_kernels_in_one_file(tmp_path: Path) -> None:
    found = read(
        written(
            tmp_path,
            "   text\t   data\t bss\t dec\t hex\tfilename\n 10 20 30 60 3c old\n 11 20 30 61 3d new\n",
        )
    )
    assert [(s.name, dict(s.sizes)) for s in found] == [
        ("old", {"text": 10, "data": 20, "bss": 30}),
        ("new", {"text": 11, "data": 20, "bss": 30}),
    ]


def elf(sections: list[tuple[int, int, int]]) -> bytes:
    """Return a 64-bit ELF file with sections of (type, flags, size)."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 40, 64)
    struct.pack_into("<HH", head, 58, 64, len(sections))
    body = b"".join(struct.pack("<IIQQQQIIQQ", 0, t, f, 0, 0, n, 0, 0, 0, 0) for t, f, n in sections)
    return bytes(head) + body


def test_a_vmlinux_is_measured_as_size_does(tmp_path: Path) -> None:
    image = elf([(1, 0x6, 100), (1, 0x2, 11), (1, 0x3, 50), (8, 0x3, 7), (1, 0x0, 999)])
    (tmp_path / "vmlinux").write_bytes(image)
    assert dict(only(str(tmp_path / "vmlinux")).sizes) == {"text": 111, "data": 50, "bss": 7}
    (tmp_path / "vmlinux").write_bytes(image[:150])
    with pytest.raises(RequestError, match="cut off"):
        read(str(tmp_path / "vmlinux"))


# --- perf stat

REPEATED = """\

 Performance counter stats for 'ls /' (3 runs):

              2.00 msec task-clock                       #    0.132 CPUs utilized            ( +-  6.31% )
   <not supported>      cycles
     1,234,567,890      instructions                     #    1.16  insn per cycle           ( +-  0.58% )

           0.01520 +- 0.00160 seconds time elapsed  ( +- 10.53% )

"""


def test_perf_stat_repeated(tmp_path: Path) -> None:
    found = only(written(tmp_path, REPEATED))
    assert boots(found) == {
        "task-clock": ((2.0,),),
        "instructions": ((1234567890.0,),),
        "elapsed": ((0.0152,),),
    }
    elapsed = found.series["elapsed"]
    assert (elapsed.unit, elapsed.repeats) == ("s", 3)
    assert elapsed.error == pytest.approx(0.1053)
    assert dict(found.missing) == {"cycles": "not supported"}  # stated, never zero


def test_perf_stat_several_times_in_one_file_is_several_runs(tmp_path: Path) -> None:
    text = "\n Performance counter stats for 'x':\n\n  {} cycles  # 1 GHz\n\n  0.5 seconds time elapsed\n"
    found = only(written(tmp_path, text.format(10) + text.format(12)))
    assert boots(found)["cycles"] == ((10.0, 12.0),)
    assert not found.series["cycles"].published


def row(event: str, value: str, **more: Any) -> str:
    return json.dumps({"counter-value": value, "unit": "", "event": event, "pcnt-running": 100.0, **more})


def test_perf_stat_json(tmp_path: Path) -> None:
    lines = [
        "started on Sat Nov 21",
        row("cycles", "10.0", variance=1.5),
        row("LLC-misses", "<not counted>"),
        row("faults", "7", **{"pcnt-running": 40.0}),
    ]
    found = only(written(tmp_path, "\n".join(lines)))
    assert boots(found) == {"cycles": ((10.0,),), "faults": ((7.0,),)}
    assert found.series["cycles"].error == 0.015
    assert dict(found.missing) == {"LLC-misses": "not counted"}
    assert "faults was counted 40% of the time" in found.notes[0]


# --- fio


def fio(iops: float, **more: Any) -> dict[str, Any]:
    read_part = {
        "total_ios": 1000,
        "iops": iops,
        "bw_bytes": 4096 * iops,
        "lat_ns": {"mean": 1500.0},
        "clat_ns": {"percentile": {"50.000000": 1000, "99.000000": 9000, "99.990000": 20000}},
    }
    job = {
        "jobname": "log",
        "error": 0,
        "read": read_part,
        "write": {"total_ios": 0},
        "usr_cpu": 2.0,
        "sys_cpu": 8.0,
    }
    return {"fio version": "fio-3.33", "jobs": [{**job, **more}]}


def test_fio_once_and_repeated(tmp_path: Path) -> None:
    found = only(
        written(tmp_path, "fio: some warning\n" + json.dumps(fio(100)) + "\n" + json.dumps(fio(110)))
    )
    assert boots(found)["read.iops"] == ((100.0, 110.0),)
    assert (found.series["read.iops"].unit, found.series["read.iops"].better) == ("IOPS", "higher")
    latency = found.series["read.clat-p99"]
    assert (latency.boots, latency.unit, latency.better) == (((9.0, 9.0),), "us", "lower")
    assert "write.iops" not in found.series
    assert found.series["sys_cpu"].boots == ((8.0, 8.0),)


def test_fio_of_several_jobs_and_with_an_error(tmp_path: Path) -> None:
    document = fio(100)
    document["jobs"].append({**document["jobs"][0], "jobname": "data", "error": 5})
    found = only(written(tmp_path, json.dumps(document)))
    assert {"log.read.iops", "data.read.iops"} <= set(found.series)
    assert found.notes == ("fio's job 'data' ended with error 5",)


# --- documents of samples


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


# --- folders of MMTests and lkp-tests


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


# --- the Phoronix Test Suite


def phoronix(*tests: str) -> str:
    system = "<System><Identifier>6.1</Identifier></System>"
    body = f"{system}{''.join(tests)}"
    return f"<?xml version='1.0'?>\n<!--v10.8.6-->\n<PhoronixTestSuite>{body}</PhoronixTestSuite>"


def phoronix_test(*entries: tuple[str, str, str], name: str = "pts/stream-1.3.4", way: str = "HIB") -> str:
    data = "".join(
        f"<Entry><Identifier>{system}</Identifier><Value>{value}</Value>{more}</Entry>"
        for system, value, more in entries
    )
    about = f"<Identifier>{name}</Identifier><Description>Type: Copy</Description><Scale>MB/s</Scale>"
    return f"<Result>{about}<Proportion>{way}</Proportion><Data>{data}</Data></Result>"


def test_phoronix_xml(tmp_path: Path) -> None:
    raw = "<RawString>10.5:11:12.5</RawString>"
    text = phoronix(
        phoronix_test(("6.1", "11.33", raw), ("6.2", "12", "")),
        phoronix_test(("6.1", "3", ""), name="local/own", way="LIB"),
        phoronix_test(("6.1", "PASS", ""), name="pts/check-1.0.0", way=""),
        phoronix_test(("6.2", "", '<JSON>{"error":"E: no disk"}</JSON>'), name="pts/fio-2.1.0"),
    )
    old, new = read(written(tmp_path, text, "composite.xml"))
    assert (old.name, new.name) == ("6.1", "6.2")
    assert boots(old) == {
        "pts/stream: Type: Copy": ((10.5, 11.0, 12.5),),
        "local/own: Type: Copy": ((3.0,),),
    }
    copy = old.series["pts/stream: Type: Copy"]
    assert (copy.unit, copy.better, old.series["local/own: Type: Copy"].better) == ("MB/s", "higher", "lower")
    assert "no measurement" in old.missing["pts/check: Type: Copy"]
    assert new.missing == {"pts/fio: Type: Copy": "E: no disk"}
    assert [s.name for s in read(str(tmp_path))] == ["6.1", "6.2"]  # the folder that the suite keeps


def test_phoronix_export(tmp_path: Path) -> None:
    entry = {"value": 11.3, "raw_values": [10.5, 11, 12.5], "test_run_times": [1, 1, 1]}
    test = {"identifier": "pts/ctx-clock-1.0.0", "scale": "Clocks", "proportion": "LIB"}
    document = {
        "title": "x",
        "systems": {"run": {}},
        "results": {"d66656": test | {"results": {"run": entry}}},
    }
    found = only(written(tmp_path, json.dumps(document)))
    assert (found.name, boots(found)) == ("run", {"pts/ctx-clock": ((10.5, 11.0, 12.5),)})
    failed = {"run": {"details": {"error": "The test run did not produce a result."}}}
    document["results"] = {"d66656": test | {"results": failed}}
    with pytest.raises(RequestError, match="measured nothing") as caught:
        read(written(tmp_path, json.dumps(document)))
    assert "did not produce a result" in caught.value.details


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (phoronix(phoronix_test(("6.1", "1", "")))[:-60], "the XML ends in the middle"),
        (phoronix(), "measured nothing"),
        (phoronix(phoronix_test(("6.1", "1,5", ""))), "a comma"),
        (phoronix(phoronix_test(("6.1", "nan", ""))), "no finite number"),
        (phoronix(*[phoronix_test(("6.1", "1", ""))] * 2), "is there twice"),
    ],
)
def test_phoronix_that_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=said):
        read(written(tmp_path, text, "composite.xml"))


# --- one run's metrics from its files


def test_metrics_of_a_run_are_means_of_what_it_repeated(tmp_path: Path) -> None:
    place = Path(written(tmp_path, '{"metrics": {"a": {"values": [[1, 2], [6]], "unit": "s"}, "b": [4]}}'))
    wanted = [MetricSpec("time", "s", "a"), MetricSpec("b", "MB/s"), MetricSpec("c", "s", optional=True)]
    assert values(place, wanted) == {"time": 3.0, "b": 4.0}


@pytest.mark.parametrize(
    ("text", "metric", "said"),
    [
        ('{"ops": [1]}', MetricSpec("op", "s"), r"no metric 'op'; did you mean 'ops'\? \(there are: ops\)"),
        ('{"ops": [1', MetricSpec("ops", "s"), "the JSON ends in the middle"),
        ('{"metrics": {"a": {"values": [1], "unit": "ms"}}}', MetricSpec("a", "s"), "is in 'ms'"),
        ('{"a": [NaN]}', MetricSpec("a", "s"), "not a finite number"),
        (
            '{"metrics": {"a": [1]}, "missing": {"b": "not counted"}}',
            MetricSpec("b", "s"),
            "'b': not counted",
        ),
        ('{"sets": [{"metrics": {"a": [1]}}, {"metrics": {"a": [1]}}]}', MetricSpec("a", "s"), "2 systems"),
        (json.dumps({f"m{i}": [i] for i in range(30)}), MetricSpec("x", "s"), "and 18 more"),
    ],
)
def test_metrics_that_cannot_be_had_from_a_runs_files(
    text: str, metric: MetricSpec, said: str, tmp_path: Path
) -> None:
    with pytest.raises(OutputError, match=said):
        values(Path(written(tmp_path, text)), [metric])


# --- wrong input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is nothing in it"),
        ("# only a comment\n", "there is no number in it"),
        ("1\ntwo\n", ":2: 'two' is not a number"),
        ("1,5\n", "a comma, which is a decimal point in some locales"),
        ("5,328\n", "a comma, which is a decimal point in some locales"),
        ("1\nnan\n", "is no finite number"),
        ("1\ninf\n", "is no finite number"),
        ('{"real": [1, 2', "the JSON ends in the middle"),
        ('{"real": [1 2]}', "not valid JSON"),
        ('{"real": [1, "2"]}', "a number was expected"),
        ('{"real": [true]}', "a number was expected"),
        ('{"real": []}', "has no value"),
        ("{}", "there is nothing in it"),
        ('{"metrics": {"a": {"values": [1], "units": "s"}}}', "unknown key 'units'"),
        ('{"metrics": {"a": {"values": [1], "better": "less"}}}', "'better' is 'less'"),
        ('{"metrics": {"a": {"runs": 3}}}', "neither 'values' nor a 'mean'"),
        ('{"a": [1]}\n{"a": [2]}', "2 JSON documents"),
        ("real: 5.3 s\nreal: 5300 ms\n", "is in 'ms' here and in 's' above"),
        ('{"fio version": "3", "jobs": []}', "no jobs"),
        ("\n Performance counter stats for 'x':\n\n <not supported> cycles\n", "perf stat counted nothing"),
        ("user 1.0\nsys 2.0\n", "has no 'real' line"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        read(written(tmp_path, text))
    assert said in caught.value.message
    assert str(tmp_path) in caught.value.message


def test_what_is_no_text_or_no_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8bno")
    (tmp_path / "folder").mkdir()
    for name, said in (("x", "no text"), ("x.gz", "cannot be read"), ("folder", "no results that are known")):
        with pytest.raises(RequestError, match=said):
            read(str(tmp_path / name))
    with pytest.raises(RequestError, match="no such file"):
        read(str(tmp_path / "absent"))

"""Every parser of workload output, with what workloads print and with what they should not."""

import pytest

from bisector.adapters.parsers import last_matches
from bisector.adapters.parsers.workload_output import OutputError, parse
from bisector.errors import InfrastructureError
from bisector.ports import MetricSpec

REAL = MetricSpec("real", "s")
OPS = MetricSpec("ops", "ops/s")

PRETTY = '{\n  "real": 5,\n  "threads": [\n    {"real": 1},\n    {"real": 2}\n  ]\n}\n'

GOOD = [
    ("key-value", "real: 0.158 s\nuser: 0.01 s\n", [REAL], {"real": 0.158}),
    ("key-value", "real=0.158\n", [REAL], {"real": 0.158}),
    ("key-value", "real = 1e-3\n", [REAL], {"real": 0.001}),
    ("key-value", "noise about real life\n  real 2\n", [REAL], {"real": 2.0}),
    ("key-value", "real: 2 s\nreal: 2 s\n", [REAL], {"real": 2.0}),
    ("key-value", "real: -3 s", [REAL], {"real": -3.0}),
    (
        "key-value",
        "Total throughput: 12.5 ops/s\n",
        [MetricSpec("ops", "ops/s", "Total throughput")],
        {"ops": 12.5},
    ),
    ("key-value", "real: 1 s\r\nops: 5 ops/s\r\n", [REAL, OPS], {"real": 1.0, "ops": 5.0}),
    ("time", "\nreal\t0m1.500s\nuser\t0m0.1s\nsys\t0m0.2s\n", [REAL], {"real": 1.5}),
    ("time", "real 1h2m3.5s", [REAL], {"real": 3723.5}),
    ("time", "real 1.23\nuser 0.01\nsys 0.02\n", [REAL], {"real": 1.23}),
    ("time", "real 61.00", [MetricSpec("elapsed", "s", "real")], {"elapsed": 61.0}),
    ("json", '{"real": 0.5}', [REAL], {"real": 0.5}),
    ("json", 'starting\n{"real": 0.5, "x": [1]}\n', [REAL], {"real": 0.5}),
    (
        "json",
        '{"jobs": [{"read": {"iops": 12}}]}',
        [MetricSpec("ops", "ops/s", "jobs.0.read.iops")],
        {"ops": 12.0},
    ),
    ("json", '{\n "real": "0.25"\n}', [REAL], {"real": 0.25}),
    (
        "json",
        '{"lat": {"99": {"9": [1, {"us": 2}]}, "99.9": [3, {"us": 4}]}}',
        [MetricSpec("tail", "us", "lat.99.9.1.us")],
        {"tail": 4.0},
    ),
    ("json", f"warning: x\n{PRETTY}", [REAL], {"real": 5.0}),
    ("json", f"{PRETTY}done\n[INFO] end\n[1]+ done\n", [REAL], {"real": 5.0}),
    ("json", f"[12:30:01] begin\n{PRETTY}[12:30:02] {{end}}\n[[0m\n", [REAL], {"real": 5.0}),
    ("json", f'{{"real": 1}}\r\n{PRETTY}', [REAL], {"real": 5.0}),
    ("json", '\n  {"real": 1}\nend\n', [REAL], {"real": 1.0}),
    ("regex", "took 3.5 sec\ntook 4.5 sec", [MetricSpec("real", "s", r"took ([0-9.]+) sec")], {"real": 4.5}),
    ("regex", "took 45 ms", [MetricSpec("real", "s", r"took ([0-9.]+) (?P<unit>\w+)")], {"real": 0.045}),
]

BAD = [
    ("key-value", "", [REAL], "has no metric 'real'"),
    ("key-value", "unreal: 5\n", [REAL], "has no metric 'real'"),
    ("key-value", "real: nan s\n", [REAL], "not a finite number: nan"),
    ("key-value", "real: inf\n", [REAL], "not a finite number: inf"),
    ("key-value", "real: -1e101\n", [REAL], ": -1e101"),
    ("key-value", "real: fast\n", [REAL], "not a number: 'fast'"),
    ("key-value", "real: 158 ms\n", [REAL], "in 'ms', its manifest says 's'"),
    ("key-value", "real: 1 s\nreal: 2 s\n", [REAL], "printed twice, as 1 and as 2"),
    ("time", "real 1.0\nreal 2.0\n", [REAL], "printed twice, as 1.0 and as 2.0"),
    ("key-value", f"real: {'9' * 5000}\n", [REAL], "not a finite number: 99"),
    ("json", '{"real": 1' + "0" * 400 + "}", [REAL], "too large"),
    ("json", "[" * 100_000, [REAL], "no JSON document"),
    ("time", "real never", [REAL], "not a number: 'never'"),
    ("time", "user 1.0", [REAL], "has no metric 'real'"),
    ("json", "oh no", [REAL], "no JSON document"),
    ("json", '{"jobs": [1]}', [MetricSpec("ops", "ops/s", f"jobs.{'5' * 5000}")], "has no metric 'ops'"),
    ("json", f"{PRETTY[:-2]}\nfio: killed\n", [REAL], "no JSON document"),
    ("json", '{"real": 1}\n{"real": 2, "real": 3}\n', [REAL], "is there already"),
    ("json", '{"real": 1}\n{"real": 2, "user"', [REAL], "no JSON document"),
    ("json", f"{PRETTY}[\n", [REAL], "no JSON document"),
    ("json", '[\n{"real": 1}\n,{"real": ', [REAL], "no JSON document"),
    ("json", "[\n" * 500_000, [REAL], "more than 100 lists"),  # took five minutes
    ("json", '{"user": 1}', [REAL], "nothing at 'real'"),
    ("json", '{"real": null}', [REAL], "not a number: None"),
    ("json", '{"real": true}', [REAL], "not a number: True"),
    ("json", '{"real": NaN}', [REAL], "no finite number"),
    ("json", '{"a": []}', [MetricSpec("real", "s", "a.0")], "nothing at 'a.0'"),
    ("regex", "nothing", [MetricSpec("real", "s", r"took (\S+)")], "has no metric 'real'"),
    (
        "regex",
        "took 4 B",
        [MetricSpec("real", "s", r"took (\S+) (?P<unit>\w+)")],
        "in 'B', which is no amount of 's'",
    ),
    (
        "regex",
        "took 9.5e-05 s",
        [MetricSpec("real", "s", r"took ([0-9.]+)")],
        "'real' takes '9.5' out of '9.5e-05': let its group match the whole number",
    ),
    ("xml", "<real/>", [REAL], "unknown kind of output 'xml'"),
]


@pytest.mark.parametrize(("kind", "text", "metrics", "expected"), GOOD)
def test_reads(kind: str, text: str, metrics: list[MetricSpec], expected: dict[str, float]) -> None:
    assert parse(kind, text, metrics) == expected


@pytest.mark.parametrize(("kind", "text", "metrics", "words"), BAD)
def test_refuses(kind: str, text: str, metrics: list[MetricSpec], words: str) -> None:
    with pytest.raises(OutputError) as caught:
        parse(kind, text, metrics)
    assert words in str(caught.value)


@pytest.mark.parametrize(("kind", "text"), [("key-value", "real: 1 s\n"), ("json", '{"real": 1}')])
def test_an_optional_metric_may_be_missing(kind: str, text: str) -> None:
    metrics = [MetricSpec("real", "s"), MetricSpec("misses", "1", optional=True)]
    assert parse(kind, text, metrics) == {"real": 1.0}
    with pytest.raises(OutputError, match="no metric 'misses'"):
        parse(kind, text, [MetricSpec("misses", "1")])


def test_an_expression_that_does_not_end_is_no_kernels_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_matches, "_MATCH_SECONDS", 0.5)
    slow = MetricSpec("real", "s", r"^((?:a+)+)$")
    with pytest.raises(InfrastructureError, match="parse: regex") as caught:
        parse("regex", "a" * 60 + "!", [slow])
    assert "manifest" in caught.value.cure and slow.at in caught.value.details


def test_only_a_label_of_the_parameters_begins_another_part() -> None:
    metrics = [MetricSpec(f"ops[t={t}]", "1/s", "ops", point=f"t={t}") for t in (1, 2)]
    printed = "== t=1\nwarm\n== results ==\nops: 5\n== t=2\nops: 6\n"
    assert parse("key-value", printed, metrics) == {"ops[t=1]": 5.0, "ops[t=2]": 6.0}


def test_two_values_below_one_label_are_refused() -> None:
    metric = MetricSpec("ops[t=1]", "1/s", "ops", point="t=1")
    with pytest.raises(OutputError, match="printed twice, as 5 and as 6"):
        parse("key-value", "== t=1\nops: 5\n== t=1\nops: 6\n", [metric])


def test_a_ratio_is_a_finite_number() -> None:
    metrics = [MetricSpec("a", "x"), MetricSpec("b", "x"), MetricSpec("r", "x", ratio=("a", "b"))]
    with pytest.raises(OutputError, match="'r' is not a finite number"):
        parse("key-value", "a: 1e30\nb: 1e-300\n", metrics)
    optional = MetricSpec("r", "x", optional=True, ratio=("a", "b"))
    assert "r" not in parse("key-value", "a: 1e30\nb: 1e-300\n", [*metrics[:2], optional])


def test_a_ratio_that_cannot_be_had_says_which_number_is_to_blame() -> None:
    a, b = MetricSpec("a", "x"), MetricSpec("b", "x", optional=True)
    ratio = MetricSpec("r", "x", ratio=("a", "b"))
    with pytest.raises(OutputError, match="'r' is 'a' / 'b', and 'b' is 0"):
        parse("key-value", "a: 1\nb: 0\n", [a, b, ratio])
    with pytest.raises(OutputError, match="'r' is 'a' / 'b', and the output has no 'b'"):
        parse("key-value", "a: 1\n", [a, b, ratio])
    optional = MetricSpec("r", "x", optional=True, ratio=("a", "b"))
    assert parse("key-value", "a: 1\n", [a, b, optional]) == {"a": 1.0}
    assert parse("key-value", "a: 1\nb: 0\n", [a, b, optional]) == {"a": 1.0, "b": 0.0}
    assert parse("key-value", "a: 1\nb: 4\n", [a, b, ratio])["r"] == 0.25

"""Parameter matrices: which points there are, what the runner is told, what it does, how it is read."""

import subprocess
from pathlib import Path

import pytest

from bisector.adapters.agent import payload
from bisector.adapters.parsers.workload_output import OutputError, parse
from bisector.errors import RequestError
from bisector.ports import MetricSpec
from bisector.schemas.workload.parameter_matrix import points
from bisector.schemas.workload.workload import load_workload

MANIFEST = """\
name: toy
description: A toy.
metrics:
  - {name: real, unit: s, better: lower, threshold: 5%, decides: true}
parameters:
  calls: 100
  threads: [2, 9, 4x]
setup: [[sh, -c, "echo once >>log"]]
cleanup: [[sh, -c, "echo end >>log"]]
files: [toy.sh]
run: [toy.sh, "{threads}", "n={calls}"]
"""


def write(folder: Path, text: str) -> str:
    place = folder / "toy"
    place.mkdir()
    (place / "workload.yaml").write_text(text)
    script = place / "toy.sh"
    script.write_text('#!/bin/sh\necho "real: $1 s"\n[ "$2" = n=100 ]\n')
    script.chmod(0o755)
    return str(place)


def test_every_combination_of_lists_is_a_point() -> None:
    found = points({"a": ("1", "2"), "b": ("x",), "c": ("3", "0.5x")})
    assert [point.label for point in found] == ["a=1,c=3", "a=1,c=0.5x", "a=2,c=3", "a=2,c=0.5x"]
    assert [point.limits for point in found] == [((3, 0.5),), (), ((3, 0.5),), ()]
    odd = points({"a": ("\N{SUPERSCRIPT TWO}", "9" * 5000, "2x")})
    assert [point.limits for point in odd] == [(), (), ()], "which is no number of CPUs"


def test_metrics_are_named_by_point_and_one_decides(tmp_path: Path) -> None:
    workload = load_workload(write(tmp_path, MANIFEST))
    metrics = workload.manifest.expanded_metrics()
    assert [m.name for m in metrics] == ["real[threads=2]", "real[threads=9]", "real[threads=4x]"]
    assert [m.optional for m in metrics] == [True, True, False]
    assert workload.metric().name == "real[threads=4x]"
    assert workload.metric("real[threads=9]").unit == "s"


def test_the_runner_does_what_the_plan_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """4x is four times the CPUs this process may use; on one CPU 9 threads are more, and left out."""
    workload = load_workload(write(tmp_path, MANIFEST))
    job = payload.workload_job(workload, tmp_path / "job")
    assert job.run == (payload.RUNNER, payload.PLAN) and job.cleanup
    runner = ["taskset", "-c", "0", str(job.payload / payload.RUNNER), payload.PLAN]
    for _ in range(2):
        done = subprocess.run(runner, cwd=job.payload, capture_output=True, text=True, check=True)
        assert done.stdout == "== threads=2\nreal: 2 s\n\n== threads=4x\nreal: 4 s\n"
    subprocess.run([*runner, "cleanup"], cwd=job.payload, check=True)
    assert (job.payload / "log").read_text() == "once\nend\n"
    assert parse("key-value", done.stdout, job.metrics) == {"real[threads=2]": 2.0, "real[threads=4x]": 4.0}


def test_a_label_stands_alone_whatever_was_printed_before(tmp_path: Path) -> None:
    text = MANIFEST.replace("files:", "parse: json\ndecides_at: {threads: 4x}\nfiles:").replace(
        "[2, 9, 4x]", "[4x, 1, 2]"
    )
    place = Path(write(tmp_path, text))
    (place / "toy.sh").write_text('#!/bin/sh\nprintf \'{"real": %s}\' "$1"\n')
    job = payload.workload_job(load_workload(str(place)), tmp_path / "job")
    runner = ["taskset", "-c", "0", str(job.payload / payload.RUNNER), payload.PLAN]
    done = subprocess.run(runner, cwd=job.payload, capture_output=True, text=True, check=True)
    labels = [line for line in done.stdout.splitlines() if line.startswith("==")]
    assert labels == ["== threads=4x", "== threads=1", "== threads=2"]
    assert parse("json", done.stdout, job.metrics) == {
        "real[threads=4x]": 4.0,
        "real[threads=1]": 1.0,
        "real[threads=2]": 2.0,
    }


def test_a_failing_command_fails_the_run(tmp_path: Path) -> None:
    workload = load_workload(write(tmp_path, MANIFEST.replace("calls: 100", "calls: 99")))
    job = payload.workload_job(workload, tmp_path / "job")
    done = subprocess.run(
        [job.payload / payload.RUNNER, payload.PLAN],
        cwd=job.payload,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "./toy.sh ended with code 1" in done.stderr


def test_a_point_that_must_be_there_is_missed() -> None:
    metrics = [
        MetricSpec("real[n=1]", "s", "real", False, "n=1"),
        MetricSpec("real[n=2]", "s", "real", False, "n=2"),
    ]
    assert parse("key-value", "== n=1\nreal: 1 s\n== n=2\nreal: 3 s\n", metrics) == {
        "real[n=1]": 1.0,
        "real[n=2]": 3.0,
    }
    with pytest.raises(OutputError, match=r"no metric 'real\[n=2\]'"):
        parse("key-value", "== n=1\nreal: 1 s\n", metrics)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("{calls}", "{cals}"), "'{cals}' is not a parameter (known: calls, threads)"),
        (("echo end", "echo {threads}"), "has several values; setup and cleanup happen once"),
        (
            ("files:", "work: {unit: call, count: '2 * {cals}'}\nfiles:"),
            "key 'work.count': '{cals}' is not a parameter (known: calls, threads)",
        ),
        (("[2, 9, 4x]", "[2, 2]"), "has a value twice"),
        (("[2, 9, 4x]", "[]"), "needs a number or text"),
        (("files:", "decides_at: {threads: 7}\nfiles:"), "the parameter 'threads' has no value '7'"),
        (("files:", "decides_at: {threads: 2}\nfiles:"), "must be there on every testbed"),
        (("files: [toy.sh]\n", ""), "without 'files' there must be 'requires'"),
        (
            ("files:", "requires: {packages: [Fio]}\nfiles:"),
            "workload.yaml:10: key 'requires.packages.0': must be",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    with pytest.raises(RequestError) as caught:
        load_workload(write(tmp_path, MANIFEST.replace(*change)))
    assert words in caught.value.message

"""Parameters that a user sets, and metrics that are computed from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.agent.payload import metric_specs
from bisector.adapters.parsers.workload_output import OutputError, parse
from bisector.app.accept import workload_of
from bisector.errors import RequestError
from bisector.interfaces.cli.options import parameters, workload_name
from bisector.ports import MetricSpec
from bisector.resources import resource
from bisector.schemas.request import Accepted, Request, command_line
from bisector.schemas.settings import Settings
from bisector.schemas.workload.workload import Workload, load_requested, load_workload

MANIFEST = """\
name: toy
description: A toy.
metrics:
  - {name: cycles, unit: cycles, better: lower, threshold: 5%}
  - {name: instructions, unit: instructions, better: lower, threshold: 5%}
  - {name: cpi, unit: cycles, better: lower, threshold: 2%, decides: true, ratio: cycles / instructions}
parameters:
  calls: 100
  threads: [2, 4, 8]
decides_at: {threads: 4}
files: [toy.sh]
run: [toy.sh, "{threads}", "{calls}"]
"""
ONE = MANIFEST.replace("[2, 4, 8]", "2").replace("decides_at: {threads: 4}\n", "")


def workload(folder: Path, text: str = MANIFEST) -> Workload:
    place = folder / "toy"
    place.mkdir()
    (place / "workload.yaml").write_text(text)
    (place / "toy.sh").touch()
    return load_workload(str(place))


def test_a_request_means_the_shipped_workload_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that somebody changes is another workload. `start` names it by its absolute path."""
    own = workload(tmp_path).folder.rename(tmp_path / "pipe-test")
    monkeypatch.chdir(tmp_path)
    assert load_workload("pipe-test").folder == own
    assert workload_name(Settings.model_construct(workload=""), "pipe-test") == str(own)
    assert load_requested(str(own)).folder == own
    assert load_requested("pipe-test").folder == resource("workloads") / "pipe-test"
    request = Request(good="a", bad="b", workload="pipe-test", repo="/r", recipe="auto")
    assert workload_of(request).folder == resource("workloads") / "pipe-test"
    with pytest.raises(RequestError, match="no workload 'pipe-tst'; did you mean 'pipe-test'"):
        load_requested("pipe-tst")


# --- parameters ---------------------------------------------------------------------------------------------


def test_a_name_said_again_makes_a_list(tmp_path: Path) -> None:
    given = parameters(["threads=4", "threads=16", "calls=7"])
    assert given == {"threads": ("4", "16"), "calls": ("7",)}
    changed = workload(tmp_path).with_parameters(given).manifest
    assert [point.label for point in changed.points()] == ["threads=4", "threads=16"]
    assert changed.parameters["calls"] == ("7",)
    assert [m.name for m in changed.expanded_metrics() if m.decides] == ["cpi[threads=4]"]


def test_where_it_decides_follows_the_values(tmp_path: Path) -> None:
    toy = workload(tmp_path)
    changed = toy.with_parameters({"threads": ("3", "5")}).manifest
    assert [m.name for m in changed.expanded_metrics() if m.decides] == ["cpi[threads=5]"], "the last one"
    assert toy.with_parameters({"threads": ("8",)}).metric().name == "cpi"
    assert toy.with_parameters({}) is toy


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["treads=4"], "has no parameter 'treads'; did you mean 'threads'?"),
        (["threads"], "--param 'threads' is no NAME=VALUE"),
        (["=4"], "--param '=4' is no NAME=VALUE"),
        (["threads="], "--param 'threads=' is no NAME=VALUE"),
        (["threads=4", "threads=4"], "has a value twice"),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, said: list[str], words: str) -> None:
    with pytest.raises(RequestError) as caught:
        workload(tmp_path).with_parameters(parameters(said))
    assert words in caught.value.message


def accepted(**more: object) -> Accepted:
    request = Request.model_validate({"repo": "/r", "good": "a", "bad": "b", "workload": "toy", **more})
    return Accepted(
        request=request,
        good="a",
        bad="b",
        goal={},
        testbeds=(),
        clock="wall",
        workload="toy",
        workload_sum="",
    )


def test_parameters_are_part_of_a_request_and_of_its_command(tmp_path: Path) -> None:
    given = {"threads": ("4", "8")}
    assert accepted(param=given).identity() != accepted().identity()
    again = Accepted.model_validate_json(accepted(param=given).model_dump_json())
    assert again.request.param == given
    words = command_line(again.request.model_dump(mode="json"))
    assert words[words.index("--param") :][:4] == ["--param", "threads=4", "--param", "threads=8"]


def test_the_id_of_a_request_without_parameters_is_what_it_was() -> None:
    """Else 'start' would not go on with what an older version has begun."""
    assert accepted().identity() == "dff8ef46"


def test_a_workload_within_another_is_a_name_and_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workload(tmp_path)
    assert workload_name(Settings(), "poundtime/small") == "poundtime/small"
    assert workload_name(Settings(), "./mine") == str(tmp_path / "mine")
    assert workload_name(Settings(), "toy") == str(tmp_path / "toy"), "a folder here goes before a name"


# --- ratios -------------------------------------------------------------------------------------------------


def test_a_ratio_is_computed_at_every_point(tmp_path: Path) -> None:
    toy = workload(tmp_path)
    text = "".join(f"== threads={n}\ncycles: {n * 100}\ninstructions: 50\n" for n in (2, 4, 8))
    found = parse("key-value", text, metric_specs(toy.manifest))
    assert [found[f"cpi[threads={n}]"] for n in (2, 4, 8)] == [4.0, 8.0, 16.0]
    assert toy.metric().name == "cpi[threads=4]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cycles: 100\ninstructions: 0\n", "'cpi' is 'cycles' / 'instructions', and 'instructions' is 0"),
        ("cycles: 100\n", "no metric 'instructions'"),
    ],
)
def test_a_ratio_without_a_value_is_told(tmp_path: Path, text: str, words: str) -> None:
    specs = metric_specs(workload(tmp_path, ONE).manifest)
    with pytest.raises(OutputError, match=words):
        parse("key-value", text, specs)


def test_an_optional_ratio_may_be_missing() -> None:
    specs = [
        MetricSpec("cycles", "c", optional=True),
        MetricSpec("loads", "l"),
        MetricSpec("each", "c", optional=True, ratio=("cycles", "loads")),
    ]
    assert parse("key-value", "loads: 4\n", specs) == {"loads": 4.0}
    assert parse("key-value", "cycles: 8\nloads: 4\n", specs)["each"] == 2.0
    assert "each" not in parse("key-value", "cycles: 8\nloads: 0\n", specs)


@pytest.mark.parametrize(
    ("ratio", "of_cycles", "words"),
    [
        ("cycles per instruction", "", "write the names of two metrics"),
        ("cycle / instructions", "", "no metric 'cycle' is printed; did you mean 'cycles'?"),
        ("cpi / instructions", "", "no metric 'cpi' is printed"),
        ("cycles / instructions, at: x", "", "leave 'at' out"),
        ("cycles / instructions", ", optional: true", "must be optional, because 'cycles' is"),
    ],
)
def test_wrong_ratios_are_named(tmp_path: Path, ratio: str, of_cycles: str, words: str) -> None:
    text = ONE.replace("cycles / instructions", ratio)
    with pytest.raises(RequestError) as caught:
        workload(tmp_path, text.replace("threshold: 5%}", f"threshold: 5%{of_cycles}}}", 1))
    assert words in caught.value.message


# --- JSON ---------------------------------------------------------------------------------------------------


def test_a_key_may_hold_dots() -> None:
    text = '{"clat": {"percentile": {"99.000000": 7, "99": {"000000": 1}}}, "jobs": [{"iops": 3}]}'
    specs = [
        MetricSpec("p99", "ns", "clat.percentile.99.000000"),
        MetricSpec("iops", "1/s", "jobs.0.iops"),
    ]
    assert parse("json", text, specs) == {"p99": 7.0, "iops": 3.0}
    with pytest.raises(OutputError, match=r"nothing at 'clat.percentile.95'"):
        parse("json", text, [MetricSpec("p95", "ns", "clat.percentile.95")])

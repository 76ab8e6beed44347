"""What decides a workload's samples is compared key by key, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.workload.command_workload import command_workload
from bisector.schemas.workload.sample_keys import require_same_samples, sample_keys
from bisector.schemas.workload.workload import Workload, load_workload

MANIFEST = """\
name: mine
description: prints a latency
metrics:
  - {name: lat, unit: us, better: lower, threshold: 5%, decides: true, at: 'mean ([0-9.]+)'}
  - {name: top, unit: us, better: lower, threshold: 5%, optional: true, at: 'top ([0-9.]+)'}
files: [b.sh]
run: [b.sh, "{count}"]
setup: [[b.sh, setup]]
cleanup: [[b.sh, cleanup]]
parameters: {count: [1, 2]}
parse: regex
results: left
counters: [instructions]
warmup: 1
settle: 1
pause: 1
timeout: 10
runs: 3
requires: {block_device: 1G, cpus: 1}
environment: {cpus: "0", variables: {TOKEN: secret}}
"""


def load(folder: Path, text: str = MANIFEST) -> Workload:
    (folder / "b.sh").touch()
    (folder / "workload.yaml").write_text(text)
    return load_workload(str(folder))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('b.sh, "{count}"', 'b.sh, -x, "{count}"', "run"),
        ("[1, 2]", "[2, 1]", "parameters"),
        ("b.sh, setup", "b.sh, other", "setup"),
        ("b.sh, cleanup", "b.sh, other", "cleanup"),
        ("mean (", "p99 (", "metrics"),
        ("name: top, unit: us", "name: top, unit: ms", "metrics"),
        (", optional: true", "", "metrics"),
        ("parse: regex", "parse: json", "parse"),
        ("results: left", "results: there", "results"),
        ("[instructions]", "[loads]", "counters"),
        ("warmup: 1", "warmup: 2", "warmup"),
        ("settle: 1", "settle: 2", "settle"),
        ("pause: 1", "pause: 2", "pause"),
        ("block_device: 1G", "block_device: 2G", "requires.block_device"),
        ('cpus: "0"', 'cpus: "0-3"', "environment"),
        ("TOKEN: secret", "TOKEN: other", "environment"),
    ],
)
def test_what_decides_a_sample_may_not_change(tmp_path: Path, old: str, new: str, key: str) -> None:
    known = sample_keys(load(tmp_path).manifest)
    assert MANIFEST.count(old) == 1
    edited = load(tmp_path, MANIFEST.replace(old, new))
    with pytest.raises(RequestError) as refused:
        require_same_samples(known, edited, "1.2.3")
    assert refused.value.message == (
        f"{tmp_path / 'workload.yaml'}: '{key}' changed since the bisection began: old and new samples "
        "cannot be compared"
    )
    assert "perfbisect 1.2.3" in refused.value.cure


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("timeout: 10", "timeout: 20"),
        ("prints a latency", "prints the latency of a pipe"),
        ("runs: 3", "runs: 5"),
        ("threshold: 5%, decides", "threshold: 9%, decides"),  # the goal has its own
        ("settle: 1", "settle: 1.0"),
        ("cpus: 1}", "cpus: 2}"),
        ("TOKEN: secret}", "TOKEN: secret}, nice: 0, autogroup: 'off'"),
        ("name: mine", "# a comment\nname: mine"),
    ],
)
def test_what_decides_no_sample_may_change(tmp_path: Path, old: str, new: str) -> None:
    known = sample_keys(load(tmp_path).manifest)
    assert MANIFEST.count(old) == 1
    require_same_samples(known, load(tmp_path, MANIFEST.replace(old, new)), "1.2.3")


def test_the_order_of_metrics_decides_nothing_and_values_are_not_kept(tmp_path: Path) -> None:
    lines = MANIFEST.splitlines(keepends=True)
    known = sample_keys(load(tmp_path).manifest)
    swapped = "".join([*lines[:3], lines[4], lines[3], *lines[5:]])
    require_same_samples(known, load(tmp_path, swapped), "")
    assert "secret" not in str(known)


def test_a_bisection_of_an_earlier_version_has_nothing_to_compare(tmp_path: Path) -> None:
    workload = load(tmp_path)
    require_same_samples({}, workload, "")
    require_same_samples({"of another version": "0"}, workload, "")


def test_a_command_has_no_file_to_name() -> None:
    known = sample_keys(command_workload("true", None, higher_is_better=False).manifest)
    other = command_workload("true", "lat", higher_is_better=False)
    with pytest.raises(RequestError, match=r"^the workload of --run: 'metrics', 'parse' changed"):
        require_same_samples(known, other, "1.2.3")

"""Manifests that cannot be: broken YAML, numbers out of range, lists with repeats, keys that contradict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bisector.interfaces.cli import run
from bisector.schemas.workload.manifest import WorkloadManifest
from tests.bad_input.broken_documents import ANY_LANGUAGE, YAML, YAML_VALUES, broken, not_a_file
from tests.bad_input.harness import Row, check_row, each_row
from tests.bad_input.request_place import MANIFEST
from tests.bad_input.wrong_numbers import WRONG_NUMBERS, number_keys

FILE = "w/workload.yaml"
SHOW = ["workload", "show", "./w"]

OUTSIDE = {
    "runs": ("0", "10001"),
    "warmup": ("-1", "10001"),
    "settle": ("-0.1", "86401"),
    "pause": ("-0.1", "86401"),
    "timeout": ("0", "604801"),
    "requires.cpus": ("0", "8193"),
    "environment.nice": ("-21", "20"),
    "monitors.perf-stat.repeat": ("0", "101"),
    "monitors.perf-record.frequency": ("0", "20001"),
}
"""Number of a manifest -> one below and one above its range."""

WRONG = {
    "no keys": ("{}", ["the key 'name' is missing"]),
    "nothing": ("", ["the key 'name' is missing"]),
    "an unknown key": (MANIFEST + "tiemout: 3\n", [":11: unknown key 'tiemout'; did you mean 'timeout'?"]),
    "an unknown key of a metric": (MANIFEST + "    unti: s\n", [":11: unknown key 'metrics.0.unti'"]),
    "a number as a key": (MANIFEST + "3: 4\n", [":11: unknown key '3'"]),
    "a truth as a key": (MANIFEST + "yes: 4\n", [":11: unknown key 'yes'"]),
    "nothing as a key": (MANIFEST + "null: 4\n", [":11: unknown key 'null'"]),
    "a key of 10,000 characters": (MANIFEST + "k" * 10_000 + ": 1\n", [":11: "]),
    "a key with a line break": (MANIFEST + '"a\\nb\\e": 1\n', [":11: unknown key 'a\\nb\\x1b'"]),
    "a name of 10,000 characters": (MANIFEST.replace("mine\n", "m" * 10_000 + "\n", 1), [":1: key 'name'"]),
    "a name with a slash too many": (MANIFEST.replace("mine\n", "a/b/c\n", 1), [":1: key 'name'"]),
    "a name of another folder": (MANIFEST.replace("mine\n", "../mine\n", 1), [":1: key 'name'"]),
    "an empty description": (MANIFEST.replace("a workload of my own", "''"), [":2: key 'description'"]),
    "a metric with a colon": (MANIFEST.replace("real", "'a: b'"), [":6: key 'metrics.0.name'"]),
    "a unit of 10,000 characters": (MANIFEST.replace("unit: s", "unit: " + "s" * 10_000), ["at most 40"]),
    "the time of a matrix": (
        MANIFEST.replace("[./mine]", '[./mine, "{n}"]') + "parse: elapsed\nparameters: {n: [1, 2]}\n",
        ["'elapsed' is of one run"],
    ),
    "the time in another unit": (
        MANIFEST.replace("unit: s", "unit: ms") + "parse: elapsed\n",
        [":7: key 'metrics.0.unit'", "'parse: elapsed' gives seconds", "write 'unit: s'"],
    ),
    "what time prints in another unit": (
        MANIFEST.replace("unit: s", "unit: ops/s") + "parse: time\n",
        [":7: key 'metrics.0.unit'", "'parse: time' gives seconds, which 'real' in 'ops/s' is not"],
    ),
    "two numbers of one time": (
        MANIFEST + "  - {name: rate, unit: ops/s, better: higher, threshold: 5%}\nparse: elapsed\n",
        [":11: key 'metrics.1'", "one number, the seconds of 'real', and no 'rate'"],
    ),
    "another direction": (MANIFEST.replace("lower", "down"), ["must be 'lower' or 'higher' (got 'down')"]),
    "metrics that are text": (MANIFEST[: MANIFEST.index("metrics")] + "metrics: real\n", ["must be a list"]),
    "no metrics": (MANIFEST[: MANIFEST.index("metrics")] + "metrics: []\n", ["must not be empty"]),
    "run as text": (MANIFEST.replace("[./mine]", "./mine"), [":3: key 'run': must be a list"]),
    "run without words": (MANIFEST.replace("[./mine]", "[]"), [":3: key 'run': must not be empty"]),
    "run of an empty word": (MANIFEST.replace("[./mine]", "['']"), [":3: key 'run'"]),
    "run with a line break": (MANIFEST.replace("[./mine]", '[mine, "a\\nb"]'), ["text of one line"]),
    "run of a number": (MANIFEST.replace("[./mine]", "[mine, 3]"), [":3: key 'run.1': must be text (got 3)"]),
    "run outside": (MANIFEST.replace("./mine", "/bin/sh"), ["must lie inside the workload's folder"]),
    "a file outside": (MANIFEST.replace("[mine]", "[mine, ../../etc/passwd]"), ["must lie inside"]),
    "an absolute file": (MANIFEST.replace("[mine]", "[mine, /etc/passwd]"), [":4: key 'files'", "inside"]),
    "a file twice": (MANIFEST.replace("[mine]", "[mine, mine]"), [":4: key 'files': 'mine' is there twice"]),
    "a file that is absent": (
        MANIFEST.replace("[mine]", "[mine, yours]"),
        [":4: key 'files.1'", "not exist"],
    ),
    "a file of 10,000 characters": (MANIFEST.replace("[mine]", f"[mine, {'f' * 10_000}]"), ["'files.1'"]),
    "a threshold past all": (MANIFEST.replace("5%", "1e309%"), ["threshold '1e309%' must be from"]),
    "a threshold of 5,000 digits": (MANIFEST.replace("5%", f"'{'9' * 5000}%'"), ["must be from"]),
    "a threshold too small": (MANIFEST.replace("5%", "1e-320%"), ["must be from"]),
    "a threshold without a unit": (MANIFEST.replace("5%", "5"), ["needs a unit"]),
    "a threshold of zero": (MANIFEST.replace("5%", "0 s"), ["must be above zero"]),
    "a threshold below zero": (MANIFEST.replace("5%", "-5%"), ["is not a number with a unit"]),
    "a threshold in another unit": (MANIFEST.replace("5%", "5 ms"), ["is not in the metric's unit 's'"]),
    "CPUs backwards": (MANIFEST + 'environment: {cpus: "3-1"}\n', ["in ascending order"]),
    "CPUs twice": (MANIFEST + 'environment: {cpus: "1,1"}\n', ["in ascending order"]),
    "CPUs that overlap": (MANIFEST + 'environment: {cpus: "0-3,2"}\n', ["in ascending order"]),
    "CPUs past all": (MANIFEST + 'environment: {cpus: "0-99999"}\n', ["below 8192"]),
    "interrupts backwards": (MANIFEST + 'environment: {irqs: "7-0"}\n', ["in ascending order"]),
    "a variable with an equals sign": (MANIFEST + 'environment: {variables: {"A=B": x}}\n', ["a variable"]),
    "a variable with a line break": (
        MANIFEST + 'environment: {variables: {A: "b\\nPATH=/tmp"}}\n',
        ["key 'environment.variables.A': must be text of one line"],
    ),
    "a sysctl elsewhere": (MANIFEST + "environment: {sysctl: {../x: 1}}\n", ["the name of a sysctl"]),
    "a sysctl that is a list": (MANIFEST + "environment: {sysctl: {vm.x: [1]}}\n", ["must be text"]),
    "a governor of spaces": (MANIFEST + "environment: {governor: 'a b'}\n", ["small letters"]),
    "an unknown fragment": (MANIFEST + "requires: {kernel: [nope]}\n", [":11: ", "no fragment 'nope'"]),
    "a fragment elsewhere": (MANIFEST + "requires: {kernel: [../x]}\n", ["the name of a fragment"]),
    "a fragment twice": (MANIFEST + "requires: {kernel: [block, block]}\n", ["is there twice"]),
    "a package twice": (MANIFEST + "requires: {packages: [fio, fio]}\n", ["'fio' is there twice"]),
    "a package that is an option": (MANIFEST + "requires: {packages: [--yes]}\n", ["a Debian package"]),
    "a disk without a unit": (MANIFEST + "requires: {block_device: 100}\n", ["'512M' or '1G'"]),
    "a disk of exabytes": (MANIFEST + "requires: {block_device: 9999999999T}\n", ["'512M' or '1G'"]),
    "a clock twice": (MANIFEST + "clocks: [wall, wall]\n", ["'wall' is there twice"]),
    "no clock": (MANIFEST + "clocks: []\n", ["must not be empty"]),
    "an unknown clock": (MANIFEST + "clocks: [sundial]\n", [":11: key 'clocks.0': must be 'wall'"]),
    "a user space twice": (MANIFEST + "userspaces: [debian, debian]\n", ["is there twice"]),
    "a monitor twice": (MANIFEST + "monitors: [proc, proc]\n", ["'proc' is there twice"]),
    "an event twice": (MANIFEST + "monitors: {perf-stat: {events: [a, a]}}\n", ["'a' is there twice"]),
    "a monitor of other files": (MANIFEST + "monitors: {proc: {files: [/etc/shadow]}}\n", ["below /proc/"]),
    "a parameter with a capital": (MANIFEST + "parameters: {A: 1}\n", ["needs a name of small letters"]),
    "a parameter that is true": (MANIFEST + "parameters: {a: yes}\n", ["needs a number or text"]),
    "a parameter twice the same": (MANIFEST + "parameters: {a: [1, 1]}\n", ["has a value twice"]),
    "a parameter with a line break": (MANIFEST + 'parameters: {a: "b\\nc"}\n', ["text of one line"]),
    "a million combinations": (
        MANIFEST + f"parameters: {{a: {list(range(1000))}, b: {list(range(1000))}}}\n",
        ["more than 1,000"],
    ),
    "a placeholder that is none": (
        MANIFEST.replace("[./mine]", "[mine, '{n}']"),
        ["'{n}' is not a parameter"],
    ),
    "work without a number": (
        MANIFEST + "work: {unit: call, count: many}\n",
        [":11: key 'work.count': must be numbers above 0 and '{parameter}'"],
    ),
    "work in no words": (MANIFEST + "work: {unit: '%', count: 1}\n", [":11: key 'work.unit': must be"]),
    "a value that is none": (
        MANIFEST + "parameters: {a: [1, 2]}\ndecides_at: {a: 3}\n",
        [":12: key 'decides_at.a': the parameter 'a' has no value '3'"],
    ),
    "a decision at a list": (MANIFEST + "decides_at: {a: [3]}\n", ["key 'decides_at.a': must be text"]),
    "a decision at what is none": (MANIFEST + "decides_at: {b: 3}\n", ["'decides_at.b'"]),
    "a pattern left open": (
        MANIFEST + "    at: '('\nparse: regex\n",
        [":11: key 'metrics.0.at'", "not a regular"],
    ),
    "a pattern too large": (
        MANIFEST + "    at: 'a{99999999999}'\nparse: regex\n",
        ["too large for a regular"],
    ),
    "a pattern nested": (MANIFEST + f"    at: '{'(' * 9000}'\nparse: regex\n", ["regular expression"]),
    "a pattern without a group": (MANIFEST + "    at: 'x'\nparse: regex\n", ["exactly one group"]),
    "an unknown form": (MANIFEST + "parse: xml\n", [":11: key 'parse': must be 'key-value'"]),
    "results elsewhere": (MANIFEST + "results: ../x\n", [":11: key 'results'", "must lie inside"]),
    "results that are all": (MANIFEST + "results: .\n", [":11: key 'results'", "must lie inside"]),
    "results without a place": (MANIFEST + "parse: results\n", [":11: key 'parse'"]),
    "a ratio of itself": (
        MANIFEST + "  - {name: r, unit: x, better: lower, threshold: 5%, ratio: r / real}\n",
        [":11: key 'metrics.1.ratio'", "no metric 'r' is printed"],
    ),
    "a metric twice": (
        MANIFEST + "  - {name: real, unit: x, better: lower, threshold: 5%}\n",
        [":11: key 'metrics.1.name'", "'real' is there twice"],
    ),
    "a setup without words": (MANIFEST + "setup: [[]]\n", [":11: key 'setup.0': a command needs a word"]),
    "a setup of words": (MANIFEST + "setup: [mine, x]\n", [":11: key 'setup.0': must be a list"]),
    "a wish for text": (MANIFEST + "requires: linux\n", [":11: key 'requires': must be a mapping"]),
}


def with_number(path: str, value: str) -> str:
    """Return a manifest with a number in the place of a key, on line 11."""
    *outer, last = path.split(".")
    return MANIFEST + "".join(f"{name}: {{" for name in outer) + f"{last}: {value}" + "}" * len(outer) + "\n"


ROWS = [
    *broken("manifest", FILE, SHOW, ANY_LANGUAGE, YAML, YAML_VALUES),
    *(Row(name, SHOW, [FILE, *words], {FILE: text, "w/mine": ""}) for name, (text, words) in WRONG.items()),
    *(
        Row(
            f"{path}: {name}",
            SHOW,
            [f"{FILE}:11", path.split(".")[-1]],
            {FILE: with_number(path, value), "w/mine": ""},
        )
        for path, (below, above) in OUTSIDE.items()
        for name, value in {"below": below, "above": above, **WRONG_NUMBERS["yaml"]}.items()
    ),
    *not_a_file("manifest", FILE, SHOW),
]


@each_row(ROWS)
def test_a_manifest_is_refused(
    row: Row, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_row(row, place, capsys, monkeypatch)


def test_every_number_of_a_manifest_has_its_rows() -> None:
    assert number_keys(WorkloadManifest) == set(OUTSIDE)


def test_the_range_of_every_number_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workload", "show", "./mine"]) == 0
    out = capsys.readouterr().out
    assert "monitors.perf-stat.repeat: from 1 to 100\n" in out
    for key in OUTSIDE:
        assert re.search(rf" {re.escape(key)}: (from|above) [-0-9]", out), f"{key}:\n{out}"

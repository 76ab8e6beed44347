"""Manifests: what is accepted, and that each mistake is named with file, line, key and the cure."""

from pathlib import Path

import pytest

from bisector.adapters.agent.payload import metric_specs
from bisector.app.workload_check import read_samples
from bisector.errors import RequestError
from bisector.model.goal import Threshold
from bisector.schemas.workload.workload import list_workloads, load_workload

GOOD = """\
name: toy
description: A toy.
metrics:
  - name: real
    unit: s
    better: lower
    threshold: 5%
    decides: true
files: [toy.sh]
run: [toy.sh]
"""


def write(folder: Path, text: str) -> Path:
    place = folder / "toy"
    place.mkdir()
    (place / "workload.yaml").write_text(text)
    (place / "toy.sh").write_text("#!/bin/sh\necho real: 1 s\n")
    return place


def refuse(folder: Path, text: str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        load_workload(str(write(folder, text)))
    return caught.value


def test_minimal_manifest_has_defaults(tmp_path: Path) -> None:
    workload = load_workload(str(write(tmp_path, GOOD)))
    assert workload.name == "toy"
    assert workload.metric().threshold == Threshold(0.05, relative=True)
    assert workload.manifest.environment.settings() == {"autogroup": "0", "nice": "0"}
    assert workload.manifest.clocks == ("wall", "instructions")


def test_commands_and_settings_get_numbers_as_they_are_written(tmp_path: Path) -> None:
    text = GOOD.replace("run: [toy.sh]", "run: [toy.sh, '{mask}']") + (
        "parameters: {mask: 0x10}\nenvironment: {sysctl: {vm.x: 0x2}, variables: {VERSION: 6.10}}\n"
    )
    workload = load_workload(str(write(tmp_path, text)))
    (point,) = workload.manifest.points()
    assert (
        point.command(workload.manifest.run, {"mask": workload.manifest.parameters["mask"][0]})[1] == "0x10"
    )
    assert workload.manifest.environment.sysctl == {"vm.x": "0x2"}
    assert workload.manifest.environment.variables == {"VERSION": "6.10"}


def test_environment_becomes_flat_settings(tmp_path: Path) -> None:
    text = GOOD + (
        "environment:\n  autogroup: on\n  aslr: off\n  cpus: 0-1\n  sysctl: {vm.swappiness: 10}\n"
        "  variables: {A: b}\n"
    )
    settings = load_workload(str(write(tmp_path, text))).manifest.environment.settings()
    assert settings == {
        "autogroup": "1",
        "aslr": "0",
        "nice": "0",
        "cpus": "0-1",
        "sysctl.vm.swappiness": "10",
        "env.A": "b",
    }


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        (("better: lower", "beter: lower"), ":6", "unknown key 'metrics.0.beter'; did you mean 'better'?"),
        (("threshold: 5%", "threshold: 5"), ":7", "a threshold needs a unit: '5%'"),
        (("threshold: 5%", "threshold: '5'"), ":7", "the threshold '5' has no unit; write '5%'"),
        (("threshold: 5%", "threshold: 5 ms"), ":7", "not in the metric's unit 's'; write '5%'"),
        (("threshold: 5%", "threshold: 0%"), ":7", "must be above zero"),
        (("threshold: 5%", "threshold: much"), ":7", "not a number with a unit"),
        (("better: lower", "better: faster"), ":6", "'lower' or 'higher'"),
        (
            ("    decides: true\n", ""),
            "",
            "exactly one metric must have 'decides: true' under the clock 'wall' (none",
        ),
        (("decides: true", "decides: true\n    optional: true"), "", "decides, so it cannot be optional"),
        (("decides: true", "decides: true\n    clocks: [wall]"), "", "under the clock 'instructions' (none"),
        (("files:", "userspaces: [busybox]\nfiles:"), ":9", "'debian' or 'initramfs'"),
        (("run: [toy.sh]", ""), "", "the key 'run' is missing"),
        (("run: [toy.sh]", "run: [/bin/sh]"), ":10", "must lie inside the workload's folder"),
        (("run: [toy.sh]", "run: toy.sh"), ":10", "'run'"),
        (("files: [toy.sh]", "files: [tyo.sh]"), "", "tyo.sh does not exist"),
        (("files:", "warmpu: 1\nfiles:"), ":9", "unknown key 'warmpu'; did you mean 'warmup'?"),
        (("files:", "warmup: -1\nfiles:"), ":9", "'warmup'"),
        (("files:", "environment: {autogrup: off}\nfiles:"), ":9", "did you mean 'autogroup'?"),
        (("files:", "parse: regex\nfiles:"), "", "'at' needs exactly one group"),
        (("name: toy", "name: [toy"), ":", "not valid YAML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], place: str, words: str) -> None:
    error = refuse(tmp_path, GOOD.replace(*change))
    assert f"workload.yaml{place}" in error.message
    assert words in error.message


def test_unknown_workload_names_the_nearest() -> None:
    with pytest.raises(RequestError) as caught:
        load_workload("pipetest")
    assert "did you mean 'pipe-test'?" in caught.value.message


def test_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(RequestError) as caught:
        load_workload("pipe-test").metric("rael")
    assert "did you mean 'real'?" in caught.value.message


def test_clock_that_cannot_decide_is_refused(tmp_path: Path) -> None:
    workload = load_workload(str(write(tmp_path, GOOD + "clocks: [wall]\n")))
    workload.check_clock("wall")
    with pytest.raises(RequestError, match="cannot be decided by the clock 'instructions'"):
        workload.check_clock("instructions")


def test_another_metric_may_decide_under_each_clock() -> None:
    workload = load_workload("db-aio")
    assert workload.metric(None, "instructions").name == "ticks_per_io"
    assert workload.metric(None, "wall").name == "iops"
    with pytest.raises(RequestError) as caught:
        workload.metric("iops", "instructions")
    assert "cannot decide under the clock 'instructions'" in caught.value.message
    assert caught.value.details == "metrics that can: ticks_per_io, cpu_per_io"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("parse: results\n", "'results' needs the key 'results'"),
        ("results: /var/out\n", "'/var/out' must lie inside the folder"),
        ("results: ../out\n", "'../out' must lie inside the folder"),
        ("results: .\n", "must lie inside the folder"),
        ("results: out\nuserspaces: [initramfs]\n", "which an 'initramfs' does not have"),
        ("results: out\nparse: results\nparameters: {a: [1, 2]}\n", "parameters need one value each"),
        ("requires: {programs: ['{root}/x']}\n", "'{root}' is not a parameter"),
    ],
)
def test_results_that_cannot_be_had(more: str, said: str, tmp_path: Path) -> None:
    error = refuse(tmp_path, GOOD + more)
    assert said in f"{error.message}\n{error.details}"


def test_results_and_programs_of_a_manifest(tmp_path: Path) -> None:
    text = GOOD + "results: out\nparameters: {root: /opt/x}\nrequires: {programs: ['{root}/bin/x', gcc]}\n"
    manifest = load_workload(str(write(tmp_path, text))).manifest
    assert (manifest.results, manifest.programs()) == ("out", ("/opt/x/bin/x", "gcc"))


def test_shipped_workloads_load_and_their_samples_parse() -> None:
    workloads, wrong = list_workloads()
    assert wrong == []
    assert {"pipe-test", "db-aio", "poundtime/small", "mmtests", "lkp", "phoronix"} <= {
        workload.name for workload in workloads
    }
    for workload in workloads:
        metrics = metric_specs(workload.manifest)
        samples = dict(read_samples(workload))
        assert samples, f"{workload.name} has no sample output"
        assert any((place / "README.md").is_file() for place in (workload.folder, workload.folder.parent))
        for sample, found in samples.items():
            assert isinstance(found, dict), f"{sample}: {found}"
            assert {m.name for m in metrics if not m.optional} <= set(found)


SETUP = "setup: [[toy.sh, prepare]]\n"


@pytest.mark.parametrize(
    ("more", "disturbed"),
    [("parse: elapsed\n", "the seconds that it takes"), ("counters: [loads]\n", "'loads'")],
)
def test_what_setup_does_is_in_no_sample(tmp_path: Path, more: str, disturbed: str) -> None:
    error = refuse(tmp_path, GOOD + SETUP + more)
    assert "toy/workload.yaml" in error.message
    assert "'warmup'" in error.message
    assert f"the first run of a boot begins with 'setup', so {disturbed} would be those of both" in str(error)
    assert error.cure == "write 'warmup: 1': that run is no sample then"
    manifest = tmp_path / "toy" / "workload.yaml"
    for good in (GOOD + SETUP + more + "warmup: 1\n", GOOD + more, GOOD + SETUP):
        manifest.write_text(good)
        load_workload(str(manifest.parent))


def test_nothing_asked_for_is_counted_in_a_run_that_sets_up(tmp_path: Path) -> None:
    workload = load_workload(str(write(tmp_path, GOOD + SETUP)))
    assert workload.with_monitors(["dmesg"]).with_counter("real").manifest.sample_sets_up
    with pytest.raises(RequestError, match=r"--metric loads: the first run .* so 'loads' would be") as caught:
        workload.with_counter("loads")
    assert f"'warmup: 1' in {tmp_path / 'toy' / 'workload.yaml'}" in caught.value.cure
    with pytest.raises(RequestError, match="--monitor counters: the first run of a boot of 'toy' begins"):
        workload.with_monitors(["counters"])

"""A new workload runs as it was written, and checking finds what is wrong with one."""

from pathlib import Path

import pytest

from bisector.app import workload_check
from bisector.app.wiring import Wiring
from bisector.app.workload_check import WorkloadFinding, check_workload
from bisector.errors import RequestError
from bisector.interfaces.cli.groups import workload_run
from bisector.schemas.settings import Settings
from bisector.schemas.workload.template import write_template
from bisector.schemas.workload.workload import load_workload


def check(folder: Path) -> dict[str, WorkloadFinding]:
    """Return what is found, by what was looked at. No other perfbisect is waited for."""
    parent = folder.parent
    own = Settings(state_dir=parent / "state", cache_dir=parent / "cache", lock_dir=parent / "locks")
    return {one.what: one for one in check_workload(Wiring(own), load_workload(str(folder)))}


def test_a_new_workload_is_fit_as_it_is(tmp_path: Path) -> None:
    folder = write_template("mine", tmp_path)
    assert len((folder / "workload.yaml").read_text().splitlines()) <= 10
    found = check(folder)
    assert found["run"].state == "ok", found["run"].words
    assert "no" not in {finding.state for finding in found.values()}
    assert found["threshold"].words.startswith("real: 5 runs a side show ")
    assert "the threshold of 0." in found["threshold"].words


def test_a_long_workload_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_check, "_TRIED_SECONDS", 0.0)
    found = check(write_template("mine", tmp_path))
    assert (found["run"].state, found["threshold"].state) == ("ok", "note")
    assert "perfbisect workload run" in found["threshold"].words


def test_a_sample_without_the_metric_and_a_failing_run_are_mistakes(tmp_path: Path) -> None:
    folder = write_template("mine", tmp_path)
    (folder / "samples" / "old.txt").write_text("user: 1 s\n")
    (folder / "mine.sh").write_text("#!/bin/sh\necho lost >&2; exit 3\n")
    found = check(folder)
    assert (found["samples/old.txt"].state, found["run"].state) == ("no", "no")
    assert "no metric 'real'" in found["samples/old.txt"].words
    assert "ended with code 3" in found["run"].words and "lost" in found["run"].words


@pytest.mark.parametrize("name", ["Mine", "../mine", "", "-x"])
def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="not a name for a workload"):
        write_template(name, tmp_path)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    write_template("mine", tmp_path)
    with pytest.raises(RequestError, match="exists already"):
        write_template("mine", tmp_path)


@pytest.mark.parametrize(("number", "lines"), [(4, 1), (5, 6)])
def test_a_run_of_many_metrics_is_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int, lines: int
) -> None:
    folder = write_template("mine", tmp_path)
    names = ["real", *(f"m{k}" for k in range(1, number))]
    rows = [f"  - {{name: {name}, unit: s, better: lower, threshold: 5%}}\n" for name in names[1:]]
    manifest = (folder / "workload.yaml").read_text()
    (folder / "workload.yaml").write_text(manifest.replace("files:", "".join(rows) + "files:"))
    (folder / "mine.sh").write_text("#!/bin/sh\n" + "".join(f"echo {name}: 1.5 s\n" for name in names))
    workload_run.run(str(folder), runs=1)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == lines
    assert told[0].startswith("run 0:")
    assert all(f"{name} " in "\n".join(told) for name in names)

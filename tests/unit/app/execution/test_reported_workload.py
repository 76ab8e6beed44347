"""What a report tells of a workload, which may have changed since, or be gone."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.agent.workload_sources import source_checksum
from bisector.app.execution.reported_workload import ReportedWorkload, reported_workload
from bisector.schemas.request import Accepted, Request
from bisector.schemas.workload.workload import load_workload
from tests.support.fake_bisection import a_lab, accepted

MANIFEST = """\
name: toy
description: A toy.
metrics:
  - {name: real, unit: s, better: lower, threshold: 5%, decides: true}
  - {name: user, unit: s, better: lower, threshold: 5%, clocks: [wall]}
files: [toy.sh]
run: [toy.sh, "{loops}"]
parameters: {loops: 40}
work: {unit: loop, count: "{loops}"}
"""


def begun(folder: Path, param: dict[str, tuple[str, ...]] | None = None) -> Accepted:
    request = Request(repo="/fake", good="good", bad="bad", workload=str(folder), param=param or {})
    found = accepted(a_lab())
    return found.model_copy(
        update={"request": request, "workload_sum": source_checksum(load_workload(str(folder)))}
    )


def test_the_work_of_a_run_is_told_with_the_parameters_of_the_bisection(tmp_path: Path) -> None:
    (tmp_path / "toy.sh").touch()
    (tmp_path / "workload.yaml").write_text(MANIFEST)
    found = reported_workload(begun(tmp_path))
    assert found.work == ("loop", 40)
    assert {"real", "user"} <= found.metrics.keys()
    assert reported_workload(begun(tmp_path, {"loops": ("7",)})).work == ("loop", 7)
    assert reported_workload(begun(tmp_path, {"loops": ("7", "8")})).work == ("loop", 15)


def test_metrics_that_cannot_decide_under_the_clock_of_the_bisection_are_told(tmp_path: Path) -> None:
    (tmp_path / "toy.sh").touch()
    (tmp_path / "workload.yaml").write_text(MANIFEST + "counters: [loads]\n")
    then = begun(tmp_path)
    assert then.the_goal().clock == "wall"
    assert reported_workload(then).unable == {"loads"}
    emulated = then.model_copy(update={"goal": {**then.goal, "clock": "instructions"}})
    assert reported_workload(emulated).unable == {"user"}


def test_a_workload_that_has_changed_since_says_nothing_of_how_much_it_did(tmp_path: Path) -> None:
    (tmp_path / "toy.sh").touch()
    manifest = tmp_path / "workload.yaml"
    manifest.write_text(MANIFEST)
    then = begun(tmp_path)
    manifest.write_text(MANIFEST.replace("loops: 40", "loops: 80"))
    found = reported_workload(then)
    assert found.work is None
    assert {"real", "user"} <= found.metrics.keys()
    manifest.unlink()
    deciding = then.the_goal().metric
    assert reported_workload(then) == ReportedWorkload({deciding.name: deciding}, None)
    manifest.write_text(MANIFEST[: MANIFEST.index("work:")])
    assert reported_workload(begun(tmp_path)).work is None

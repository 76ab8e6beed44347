"""`--json` of each command has the keys that docs/json.md promises, and no others."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.calibrate import KexecComparison
from bisector.app.execution import health_check
from bisector.app.execution.health_check import Health
from bisector.app.wiring import Wiring
from bisector.app.workload_check import WorkloadFinding
from bisector.interfaces.cli import run
from bisector.model.alerts import HistoryEntry
from bisector.ports import Kernel
from bisector.schemas.settings import load_settings
from bisector.stats.aa_analysis import Calibration
from bisector.stats.reference_check import Judgement
from tests.support import fake_bisection as fake
from tests.support.command_line import START, Bench, said
from tests.support.machines.fake_inventory import inventory_of
from tests.support.series.alert_lab import found

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text(encoding="utf-8")


KINDS = {"decision", "build", "boot", "warmup", "run", "note", "trouble", "done"}


def section(command: str) -> str:
    """Return what the page says of a command."""
    return TEXT.partition(f"\n## {command}\n")[2].partition("\n## ")[0]


def promised(command: str) -> set[str]:
    """Return the keys of a command's table."""
    rows = re.findall(r"^\| (`.*?) \|", section(command), re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def keys(found: Any) -> set[str]:
    return set(found[0] if isinstance(found, list) else found)


def items_of_rm() -> set[str]:
    """Return the keys of an item, as the table of `rm` lists them."""
    return set(re.findall(r"`(\w+)`", TEXT.partition("\n## rm\n")[2].split("a list:")[1].split("|")[0]))


def test_of_an_ended_bisection(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(START) == 0
    capsys.readouterr()

    def printed(*arguments: str) -> Any:
        return json.loads(said(capsys, *arguments, "--json"))

    for command in (
        "list",
        "status",
        "show",
        "log",
        "report",
        "kernel list",
        "lab list",
        "kernel gc",
        "db upgrade",
        "db check",
        "db prune",
        "settings show",
        "settings check",
        "export",
    ):
        assert promised(command)
        assert keys(printed(*command.split())) == promised(command), command
    assert keys(printed("plan", *START[1:])) == promised("plan")
    one = printed("show", "--commit", bench.lab.graph.shas[fake.CULPRIT])
    assert keys(one) == promised("show --commit")
    assert keys(one["trials"]) == promised("show")

    sent = printed("export")
    gone = printed("rm", sent["id"], "--yes")
    assert keys(gone) == promised("rm")
    assert keys(gone["items"]) == items_of_rm()
    assert keys(printed("import", sent["file"])) == promised("import")
    assert keys(printed("prune", "--dry-run")) == promised("rm")


def test_what_changes_a_bisection(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = fake.store_bisections(bench.state.parent, monkeypatch)
    assert store.status("fake-new")
    for command, arguments in {
        "mark": ["fake-new", bench.lab.graph.shas[3], "skip"],
        "discard": ["fake-new", "--boot", "boot-001"],
        "pause": ["fake-new", "--reason", "new memory"],
        "priority": ["fake-new", "high"],
        "cancel": ["fake-new"],
    }.items():
        assert keys(json.loads(said(capsys, command, *arguments, "--json"))) == promised(command)


def test_of_what_is_queued(
    bench: Bench, capsys: pytest.CaptureFixture[str], own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = own_folders / "lab.yml"
    lab.write_text(inventory_of("fake"))
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    queued = json.loads(said(capsys, *START, "--detach", "--json"))
    assert keys(queued) == promised("start --detach")
    found = json.loads(said(capsys, "queue", "--json"))
    inner = TEXT.partition("\n## queue\n")[2].partition("`bisections`")[2].partition("\n")[0]
    assert keys(found["bisections"]) == set(re.findall(r"`(\w+)`", inner)) - {"null"}
    assert set(found) == {"executor", "bisections"}
    (one,) = found["bisections"]
    assert (one["id"], one["status"], one["place"]) == (queued["id"], "queued", 1)
    lines = [json.loads(line) for line in said(capsys, "worker", "--until-idle", "--json").splitlines()]
    assert {key for line in lines for key in line} == promised("worker") - KINDS
    found = json.loads(said(capsys, "worker", "--check", "--json"))
    assert keys(found) == promised("worker --check")
    assert {line["kind"] for line in lines} <= KINDS
    assert lines[-1]["kind"] == "done"


def test_of_testbeds(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Health("guest", "sound", "as before", {"commit": "1"}, (1.0,), Judgement("kept", 0), "good")
    monkeypatch.setattr(health_check, "check_now", lambda *_, **__: found)
    health = json.loads(said(capsys, "testbed", "health", "guest", "--json"))
    rows = TEXT.partition("\n## testbed health\n")[2].partition("\n## ")[0]
    assert keys(health) == promised("testbed health")
    assert keys(health["judgement"]) <= set(re.findall(r"`(\w+)`", rows))
    for command, arguments in {
        "testbed list": [],
        "testbed drain": ["guest"],
        "testbed reserve": ["guest"],
    }.items():
        found = json.loads(said(capsys, *command.split(), *arguments, "--json"))
        assert keys(found) == promised(command)
    assert keys(json.loads(said(capsys, "testbed", "release", "guest", "--json"))) == promised(
        "testbed drain"
    )


def test_of_alerts(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alerts = open_alerts(Wiring(load_settings()))
    alerts.add(found(1, 2, id="a1"), HistoryEntry("perfbisect", "suspect"))
    listed = json.loads(said(capsys, "alert", "list", "--json"))
    assert keys(listed) == promised("alert list")
    assert keys(json.loads(said(capsys, "alert", "set", "a1", "--note", "x", "--json"))) == keys(listed)
    alert = json.loads(said(capsys, "alert", "show", "a1", "--json"))
    assert keys(alert) == keys(listed) | promised("alert show")
    rows = TEXT.partition("\n## alert show\n")[2].partition("\n## ")[0]
    assert keys(alert["history"]) <= set(re.findall(r"`(\w+)`", rows))


def test_a_new_workload(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "workload", "new", "mine", "--in", str(own_folders), "--json"))
    assert keys(found) == promised("workload new")
    assert (Path(found["folder"]) / "workload.yaml").exists()


def test_first_settings(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "init", "--yes", "--dry-run", "--json"))
    assert keys(found) == promised("init")


def test_what_needs_no_bisection(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_folders)
    for name in ("old", "new"):
        Path(name).write_text("1.0\n1.1\n")
        Path(f"{name}.folded").write_text("main;read 10\nmain;write 5\n")

    def printed(*arguments: str) -> Any:
        return json.loads(said(capsys, *arguments, "--json"))

    assert keys(printed("compare", "old", "new")) == promised("compare")
    assert keys(printed("profile", "old.folded", "new.folded")) == promised("profile")
    listed, shown = printed("workload", "list"), printed("workload", "show", "pipe-test")
    assert keys(listed) == set(shown) >= {"name", "folder"}
    explained = printed("kernel", "explain")
    assert promised("kernel explain") <= set(explained)
    assert keys(explained["options"]) <= set(re.findall(r"`(\w+)`", section("kernel explain")))


def test_keys_of_what_is_measured_and_built() -> None:
    """These take a kernel or a testbed, so their types are asked."""
    assert {field.name for field in fields(Kernel)} == promised("kernel build")
    assert {field.name for field in fields(Calibration)} == promised("calibrate") - {"kept", "null"}
    assert {field.name for field in fields(KexecComparison)} <= set(
        re.findall(r"`(\w+)`", section("calibrate"))
    )
    assert {field.name for field in fields(WorkloadFinding)} == promised("workload check")


def test_each_command_with_json_has_its_place_on_the_page() -> None:
    names = {name.replace("-", " ", 1) for name in _with_json()}
    missing = {name for name in names if f"\n## {name}\n" not in TEXT and f"`{name}" not in TEXT}
    assert not missing


def _with_json() -> set[str]:
    folder = Path(__file__).resolve().parent / "expected" / "help"
    return {path.stem for path in folder.glob("*.txt") if "--json" in path.read_text()}


def test_the_only_command_without_json_is_help() -> None:
    folder = Path(__file__).resolve().parent / "expected" / "help"
    without = {path.stem for path in folder.glob("*.txt")} - _with_json()
    groups = {
        "perfbisect",
        "alert",
        "workload",
        "kernel",
        "lab",
        "db",
        "settings",
        "testbed",
        "token",
        "series",
        "mail",
    }
    assert without == {*groups, "help", "web"}, "and web says nothing but where it serves"

"""`perfbisect doctor` on checks that a test chooses: what is printed, and when its exit code is 3."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.system.host_requirements import Check
from bisector.app import doctor
from bisector.errors import InfrastructureError
from bisector.interfaces.cli import run

FINE = Check("git", found="2.39", needed="building kernels")
MISSING = Check("libvirt", wrong="no daemon", cure="first\nsecond", needed="guests")
OPTIONAL = Check("ccache", wrong="not found", cure="apt-get install ccache", needed="speed", optional=True)


@pytest.fixture
def checks(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> list[Check]:
    chosen: list[Check] = []
    monkeypatch.setattr(doctor, "check_host", lambda *args, **options: chosen)
    return chosen


def test_everything_is_there(checks: list[Check], capsys: pytest.CaptureFixture[str]) -> None:
    checks += [FINE]
    assert run(["doctor"]) == 0
    assert capsys.readouterr().out == "ok      git  2.39\n\nEverything is there.\n"


def test_what_is_missing_is_told_with_its_cure_and_exit_code_3(
    checks: list[Check], capsys: pytest.CaptureFixture[str]
) -> None:
    checks += [FINE, MISSING]
    assert run(["doctor", "--quiet"]) == 3
    assert capsys.readouterr().out == (
        "missing libvirt  no daemon (needed for guests)\n        first\n        second\n\n"
        "1 of 2 are missing. 'perfbisect doctor --fix' installs packages.\n"
    )


def test_what_is_optional_is_a_note(checks: list[Check], capsys: pytest.CaptureFixture[str]) -> None:
    checks += [FINE, OPTIONAL]
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "note    ccache  not found (needed for speed)" in out and "missing" not in out


def test_disk_use_is_shown_with_what_prune_frees(
    checks: list[Check], own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks += [FINE]
    log = own_folders / "cache" / "kernels" / "failed" / "abc.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"x" * 2_000_000)
    assert run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["DISK", "USE", "SIZE", "'PRUNE'", "FREES", "WHERE"]
    assert lines[3].split() == ["kernels", "2.0", "MB", "0", "kB", str(own_folders / "cache" / "kernels")]
    os.utime(log, (0, 0))
    assert run(["doctor", "--json"]) == 0
    (row,) = [one for one in json.loads(capsys.readouterr().out) if one["name"] == "disk use: kernels"]
    assert row["ok"] and row["bytes"] >= row["prunable_bytes"] >= 2_000_000
    (log.parent / "new.log").write_bytes(b"x" * 3_000_000)
    graph = own_folders / "cache" / "graphs" / "abc"
    graph.parent.mkdir(parents=True)
    graph.write_bytes(b"x" * 5_000_000)
    os.utime(graph, (0, 0))
    assert run(["doctor", "--json"]) == 0
    rows = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert rows["disk use: kernels"]["bytes"] >= 5_000_000
    assert 2_000_000 <= rows["disk use: kernels"]["prunable_bytes"] < 3_000_000
    assert 5_000_000 <= rows["disk use: commit graphs"]["prunable_bytes"] < 6_000_000
    assert run(["doctor", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_what_a_state_file_has_not_taken_in_yet_counts_as_records(
    checks: list[Check], own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks += [FINE]
    state = own_folders / "state"
    open_state_file(state / "perfbisect.sqlite")
    (state / "perfbisect.sqlite-journal").write_bytes(b"\0" * 5_000_000)
    assert run(["doctor", "--json"]) == 0
    rows = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert rows["disk use: records"]["bytes"] >= 5_000_000


def test_kvm_is_probed_again_when_asked(
    checks: list[Check], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[bool] = []

    def check_host(wiring: object, progress: object, *, probe: bool) -> list[Check]:
        asked.append(probe)
        return [FINE]

    monkeypatch.setattr(doctor, "check_host", check_host)
    assert (run(["doctor", "--probe"]), run(["doctor"])) == (0, 0)
    assert asked == [True, False]


def test_a_state_file_that_cannot_be_read_is_one_of_the_checks(
    checks: list[Check], own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks += [FINE]
    (own_folders / "state").mkdir()
    (own_folders / "state" / "perfbisect.sqlite").write_text("no database " * 1000)
    assert run(["doctor"]) == 3
    told = capsys.readouterr().out
    assert "ok      git      2.39" in told and "Everything is there" not in told
    assert re.search(r"missing records  .*perfbisect.sqlite is damaged", told)
    assert "        restore a backup" in told
    assert run(["doctor", "--json"]) == 3
    assert [one["name"] for one in json.loads(capsys.readouterr().out) if not one["ok"]] == ["records"]


def test_a_folder_of_another_user_is_one_of_the_checks(
    checks: list[Check], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All commands send their user to 'doctor', which ended with the same one line."""

    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied", "/cache/kernels")

    monkeypatch.setattr(doctor, "disk_use", refuse)
    checks += [FINE]
    assert run(["doctor"]) == 3
    told = capsys.readouterr()
    assert "ok      git " in told.out and "missing files  /cache/kernels: Permission denied" in told.out
    assert "PERFBISECT_CACHE_DIR" in told.out and told.err == ""


def test_json_has_every_check(checks: list[Check], capsys: pytest.CaptureFixture[str]) -> None:
    checks += [FINE, MISSING, OPTIONAL]
    assert run(["doctor", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["ok"], one["needed_for"], one["optional"]) for one in found] == [
        ("git", True, "building kernels", False),
        ("libvirt", False, "guests", False),
        ("ccache", False, "speed", True),
    ]


def test_what_cannot_be_fixed_is_told_and_the_checks_follow(
    checks: list[Check], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(*args: object) -> None:
        raise InfrastructureError("no room for an image", cure="free some space")

    def install(*args: object) -> None:
        raise InfrastructureError("no root", cure="sudo -i")

    monkeypatch.setattr(doctor, "install_packages", install)
    monkeypatch.setattr(doctor, "prepare_guests", prepare)
    checks += [MISSING]
    assert run(["doctor", "--fix"]) == 3
    shown = capsys.readouterr()
    assert "error: no root\ncure: sudo -i\n" in shown.err
    assert "error: no room for an image\ncure: free some space\n" in shown.err
    assert "missing libvirt" in shown.out


def test_not_everything_is_there_where_something_could_not_be_prepared(
    checks: list[Check], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image that is not built is no obstacle to 'doctor'; for --fix, which should build it, it is."""

    def prepare(*args: object) -> None:
        raise InfrastructureError("no room for an image", cure="free some space")

    monkeypatch.setattr(doctor, "install_packages", lambda *_: None)
    monkeypatch.setattr(doctor, "prepare_guests", prepare)
    checks += [FINE]
    assert run(["doctor", "--fix"]) == 3
    shown = capsys.readouterr()
    assert "Everything is there" not in shown.out and "not all could be prepared" in shown.out
    assert "error: no room for an image" in shown.err
    monkeypatch.setattr(doctor, "prepare_guests", lambda *_: None)
    assert run(["doctor", "--fix"]) == 0
    assert "Everything is there" in capsys.readouterr().out


def test_a_dry_run_prints_commands_and_runs_none(
    checks: list[Check], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("install_packages", "prepare_guests"):
        monkeypatch.setattr(doctor, name, lambda *args: pytest.fail("it was run"))
    monkeypatch.setattr(doctor, "missing_packages", lambda: ["apt-get install gcc", "pip install x"])
    checks += [FINE]
    assert run(["doctor", "--fix", "--dry-run"]) == 0
    assert capsys.readouterr().err == "would run: apt-get install gcc\nwould run: pip install x\n"
    assert run(["doctor", "--dry-run"]) == 1
    assert "--dry-run has no effect without --fix" in capsys.readouterr().err

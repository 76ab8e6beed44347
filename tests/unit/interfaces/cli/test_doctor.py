"""`perfbisect doctor` on checks that a test chooses: what is printed, and when its exit code is 3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
        "1 of 2 are missing.\n"
    )


def test_what_is_optional_is_a_note(checks: list[Check], capsys: pytest.CaptureFixture[str]) -> None:
    checks += [FINE, OPTIONAL]
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "note    ccache  not found (needed for speed)" in out and "missing" not in out


def test_json_has_every_check(checks: list[Check], capsys: pytest.CaptureFixture[str]) -> None:
    checks += [FINE, MISSING]
    assert run(["doctor", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["ok"], one["needed_for"]) for one in found] == [
        ("git", True, "building kernels"),
        ("libvirt", False, "guests"),
    ]


def test_what_cannot_be_fixed_is_told_and_the_checks_follow(
    checks: list[Check], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(*args: object) -> None:
        raise InfrastructureError("no room for an image", cure="free some space")

    monkeypatch.setattr(doctor, "prepare_guests", prepare)
    checks += [MISSING]
    assert run(["doctor", "--fix"]) == 3
    shown = capsys.readouterr()
    assert "error: no room for an image\ncure: free some space\n" in shown.err
    assert "missing libvirt" in shown.out

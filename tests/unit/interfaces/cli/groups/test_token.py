"""The commands of tokens: what is shown, and what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.upkeep import tokens
from bisector.app.upkeep.tokens import row
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.interfaces.cli.arguments import ages
from bisector.schemas.settings import Settings
from tests.support.command_line import said


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state"


def test_a_token_is_shown_once(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    assert said(capsys, "token", "list") == "No token yet.\n"
    assert run(["token", "add", "ann", "--role", "operate"]) == 0
    out, err = capsys.readouterr()
    secret = out.strip()
    assert out == f"{secret}\n" and "ann" in err and secret not in err
    found = tokens.access_of(Wiring(Settings(state_dir=state))).find(secret)
    assert found is not None and found.role == "operate"
    listed = said(capsys, "token", "list")
    assert listed.splitlines()[1].split()[:3] == ["ann", "operate", "valid"] and secret not in listed
    assert secret not in said(capsys, "token", "list", "--json")


def test_a_token_ends_by_its_date_or_by_being_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    made = json.loads(said(capsys, "token", "add", "ci", "--days", "2", "--json"))
    assert (made["role"], made["expires"]) == ("read", pytest.approx(made["created"] + 2 * 86400, abs=1))
    assert run(["token", "revoke", "ci"]) == 0
    (row,) = json.loads(said(capsys, "token", "list", "--json"))
    assert row["state"] == "revoked"


def test_the_list_says_when_each_was_made_used_and_ends(
    capsys: pytest.CaptureFixture[str], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFBISECT_OWNER", "root")
    assert run(["token", "add", "ci", "--days", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == "the token of 'ci' (read); it is not shown again\n"
    access = tokens.access_of(Wiring(Settings(state_dir=state)))
    access.find(out.strip())
    (kept,) = access.tokens()
    assert kept.expires is not None and kept.last_used is not None
    monkeypatch.setattr(
        tokens, "row", lambda *_: {**row(kept, kept.created), "last_used": kept.created - 7 * 86400}
    )
    head, line = said(capsys, "token", "list").splitlines()
    assert head.split() == ["NAME", "ROLE", "STATE", "CREATED", "EXPIRES", "LAST", "USED"]
    days = [ages.day(at) for at in (kept.created, kept.expires, kept.created - 7 * 86400)]
    assert line.split() == ["ci", "read", "valid", *days] and len({*days}) == 3
    monkeypatch.setenv("COLUMNS", "40")
    assert said(capsys, "token", "list").splitlines()[0].split() == ["NAME", "ROLE", "STATE", "LAST", "USED"]


def test_who_makes_and_revokes_a_token_is_written_down(
    capsys: pytest.CaptureFixture[str], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFBISECT_OWNER", "root")
    said(capsys, "token", "add", "ann", "--role", "operate")
    said(capsys, "token", "revoke", "ann")
    found = tokens.access_of(Wiring(Settings(state_dir=state))).changes(9)
    assert [(one.who, one.what, one.target, one.details) for one in found] == [
        ("root", "token revoke", "ann", ""),
        ("root", "token add", "ann", "operate"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "../x"], "is not a valid token name"),
        (["add", "a b"], "is not a valid token name"),
        (["add", "x", "--role", "root"], "unknown value 'root'"),
        (["add", "x", "--days", "0"], "from 1 to 3,650"),
        (["revoke", "nobody"], "there is no token 'nobody'"),
    ],
)
def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert run(["token", *arguments]) == 1
    assert words in capsys.readouterr().err


def test_a_token_is_valid_until_its_date_unless_it_is_revoked(state: Path) -> None:
    made, _ = tokens.add(Wiring(Settings(state_dir=state)), "ci", "read", 2, "root")
    assert made.expires is not None
    assert [row(made, made.expires + later)["state"] for later in (-1.0, 0.0, 1.0)] == [
        "valid",
        "expired",
        "expired",
    ]
    assert row(replace(made, revoked=made.created), made.expires)["state"] == "revoked"

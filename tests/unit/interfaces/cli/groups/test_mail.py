"""`perfbisect mail`: what became of each message, and what is said where one is let go or stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.outbox.sql_outbox import SqlOutbox
from bisector.interfaces.cli import run
from bisector.interfaces.cli.arguments import number_options
from bisector.model.outbox import LAB, Delivery, Key, Message, State
from bisector.report import phrases
from tests.support.command_line import said

BOTH = ("ann@lab.example", "bob@lab.example")


@pytest.fixture
def outbox(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SqlOutbox:
    monkeypatch.setenv("PERFBISECT_OWNER", "ann")
    monkeypatch.setenv("COLUMNS", "200")
    return SqlOutbox(open_state_file(own_folders / "state" / "perfbisect.sqlite"))


def put(outbox: SqlOutbox, about: str, state: State, note: str = "") -> int:
    message = Message(BOTH, f"about {about}", "First line\n\nlast line\n", {"X-A": "b"})
    entry = outbox.put(Key(about, "w", "ended", LAB), "mail", message, state, by="p", note=note)
    assert entry is not None
    return entry.number


def noted(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert run(["mail", *arguments]) == 0
    return capsys.readouterr()


def test_the_list_says_what_became_of_each_message(
    outbox: SqlOutbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "mail", "list") == "No message yet.\n"
    sent = put(outbox, "sent", "approved")
    assert outbox.claim("one", 100) is not None
    outbox.finish(sent, "one", Delivery(BOTH[:1], {BOTH[1]: "550 no such user"}))
    waiting = put(outbox, "waiting", "waiting", "its first one")
    head, *lines = said(capsys, "mail", "list").splitlines()
    assert head.split() == ["NUMBER", "STATE", "TO", "CHANGED", "SUBJECT", "NOTE"]
    changed = {number: phrases.date(outbox.entry(number).changed) for number in (sent, waiting)}
    note = outbox.entry(sent).note
    refusal = "; ".join(filter(None, [note, f"{BOTH[1]}: 550 no such user"]))
    assert [" ".join(line.split()) for line in lines] == [
        f"{waiting} waiting lab {changed[waiting]} about waiting its first one",
        f"{sent} sent lab {changed[sent]} about sent {refusal}",
    ]
    found = json.loads(said(capsys, "mail", "list", "--json"))
    assert [row["number"] for row in found] == [waiting, sent]
    assert (found[1]["accepted"], found[1]["refused"]) == ([BOTH[0]], {BOTH[1]: "550 no such user"})


def test_the_latest_are_listed_and_older_ones_that_wait(
    outbox: SqlOutbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(number_options, "DEFAULT_LIMIT", 2)
    states: tuple[State, ...] = ("waiting", "draft", "draft", "draft")
    first, second, *latest = [put(outbox, str(number), state) for number, state in enumerate(states)]

    def listed(*arguments: str) -> list[int]:
        lines = said(capsys, "mail", "list", *arguments).splitlines()[1:]
        return [int(line.split()[0]) for line in lines]

    assert listed() == [*latest[::-1], first]
    assert listed("--all") == [*latest[::-1], second, first]


def test_a_message_is_shown_as_it_goes_out_with_what_may_be_done(
    outbox: SqlOutbox, capsys: pytest.CaptureFixture[str]
) -> None:
    for state, note, told in (
        ("draft", "the testbeds disagree", "is a draft: the testbeds disagree"),
        ("stopped", "", "is stopped"),
        ("waiting", "its first one", "is waiting for approval: its first one; 'perfbisect mail approve {}'"),
    ):
        number = put(outbox, state, state, note)  # type: ignore[arg-type]
        out, err = noted(capsys, "preview", str(number))
        head, _, body = out.partition("\n\n")
        assert f"Subject: about {state}" in head and "X-A: b" in head and body.startswith("First line\n\n")
        sends = " sends it" if state == "waiting" else ""
        assert err == f"message {number} {told.format(number)}{sends}\n"
        found = json.loads(said(capsys, "mail", "preview", str(number), "--json"))
        assert (found["text"], found["state"]) == (out, state)


def test_whom_an_approved_message_still_goes_to_is_told(
    outbox: SqlOutbox, capsys: pytest.CaptureFixture[str]
) -> None:
    who = "whoever executes bisections sends it: 'perfbisect worker', or the next 'start'"
    number = put(outbox, "waiting", "waiting")
    out, err = noted(capsys, "approve", str(number))
    assert (out, err) == ("", f"message {number} to {', '.join(BOTH)} is approved; {who}\n")
    assert (outbox.entry(number).state, outbox.entry(number).by) == ("approved", "ann")
    assert outbox.claim("one", 100) is not None
    outbox.finish(number, "one", Delivery(BOTH[:1], {BOTH[1]: "450 later"}))
    assert noted(capsys, "approve", str(number))[1] == f"message {number} to {BOTH[1]} is approved; {who}\n"
    assert run(["mail", "approve", str(put(outbox, "draft", "draft"))]) == 1
    assert "is a draft" in capsys.readouterr().err
    again = put(outbox, "again", "waiting")
    assert json.loads(said(capsys, "mail", "approve", str(again), "--json"))["state"] == "approved"


def test_who_stops_a_message_and_why_is_kept(outbox: SqlOutbox, capsys: pytest.CaptureFixture[str]) -> None:
    number = put(outbox, "waiting", "waiting")
    assert noted(capsys, "stop", str(number), "--reason", "known already") == (
        "",
        f"message {number} is stopped\n",
    )
    entry = outbox.entry(number)
    assert (entry.state, entry.by, entry.note) == ("stopped", "ann", "known already")
    other = put(outbox, "other", "waiting")
    assert json.loads(said(capsys, "mail", "stop", str(other), "--json"))["state"] == "stopped"


def test_what_is_not_there_is_told_and_no_database_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    for line in (["preview", "3"], ["approve", "3"], ["stop", "3"]):
        assert run(["mail", *line]) == 1
        assert "there is no message 3 in the outbox" in capsys.readouterr().err
    assert said(capsys, "mail", "list", "--json") == "[]\n"
    assert not (tmp_path / "state" / "perfbisect.sqlite").exists()

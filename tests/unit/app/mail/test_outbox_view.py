"""What is listed of the outbox, and drafts where nobody is to be written to; else tests/integration/mail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.outbox.memory_outbox import MemoryOutbox
from bisector.app.mail import outbox_view
from bisector.app.mail.culprit_offers import Prepared
from bisector.app.mail.outbox_view import row, without_secrets
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.model.decisions import Ending
from bisector.model.outbox import LAB, Channel, Delivery, Key, Message, OutboxEntry, State
from bisector.schemas.mail_settings import MailSettings
from bisector.schemas.settings import Settings
from tests.support.report_material import demo

FOUND = demo()
assert FOUND.conclusion is not None
(CULPRIT,) = FOUND.conclusion.findings
SET = replace(CULPRIT, commits=(1, 2), parents=(0,))


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ((SET,), "'#regzbot introduced: 111111111111..333333333333'"),
        ((), "'perfbisect report b-1' says"),
        ((replace(SET, certified=False),), "'perfbisect report b-1' says"),
        ((replace(SET, opposite=True),), "'perfbisect report b-1' says"),
    ],
)
def test_of_a_set_regzbot_is_told_the_range_by_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, findings: tuple[object, ...], said: str
) -> None:
    ended = replace(FOUND.conclusion, ending=Ending.CULPRIT_SET, findings=findings)  # type: ignore[type-var]
    monkeypatch.setattr(outbox_view, "load_material", lambda *_: replace(FOUND, conclusion=ended))
    with pytest.raises(RequestError, match="no certified culprit to write about") as error:
        outbox_view.mail_draft(Wiring(Settings(state_dir=tmp_path)), None)
    assert said in error.value.cure and ("regzbot" in error.value.cure) is ("regzbot" in said)


@pytest.mark.parametrize("goal", [{"find": "fix"}, {"unit": "kernel"}])
def test_regzbot_is_told_of_ranges_of_commits_that_made_something_worse_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: dict[str, str]
) -> None:
    ended = replace(FOUND.conclusion, ending=Ending.CULPRIT_SET, findings=(SET,))  # type: ignore[type-var]
    material = replace(FOUND, conclusion=ended, goal=replace(FOUND.goal, **goal))  # type: ignore[arg-type]
    monkeypatch.setattr(outbox_view, "load_material", lambda *_: material)
    with pytest.raises(RequestError, match="no certified culprit") as error:
        outbox_view.mail_draft(Wiring(Settings(state_dir=tmp_path)), None)
    assert "regzbot" not in error.value.cure


def test_nobody_is_written_to_about_a_listed_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    material = replace(FOUND, goal=replace(FOUND.goal, unit="kernel"))
    monkeypatch.setattr(outbox_view, "load_material", lambda *_: material)
    with pytest.raises(RequestError, match="compared listed kernels: there is no commit to write about"):
        outbox_view.mail_draft(Wiring(Settings(state_dir=tmp_path)), None)


@pytest.mark.parametrize("known", ["Ann <ann@home.example>", ""])
def test_a_draft_is_from_whom_git_knows_else_it_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str
) -> None:
    monkeypatch.setattr(outbox_view, "load_material", lambda *_: FOUND)
    monkeypatch.setattr(outbox_view, "_person", lambda *_: known)
    asked: list[str] = []

    def prepare(wiring: Wiring, material: object, finding: object, settings: object, sender: str) -> Prepared:
        asked.append(sender)
        return Prepared(Message(("ann@lab.example",), "sched: slower", "text"), ("too small",), ())

    monkeypatch.setattr(outbox_view, "prepare_upstream", prepare)
    mail = MailSettings.model_validate({"host": "mail.example", "from": "Lab <lab@lab.example>"})
    mails, reasons = outbox_view.mail_draft(Wiring(Settings(state_dir=tmp_path, mail=mail)), None)
    sender = known or "Lab <lab@lab.example>"
    assert asked == [sender] and f"\nFrom: {sender}\n" in mails[0]
    unknown = [] if known else [f"git knows no user.email of yours: it is from {sender}"]
    assert reasons == [*unknown, "too small"]


@pytest.mark.parametrize("channel", ["mail", "webhook"])
def test_a_message_is_shown_as_it_would_go_out(tmp_path: Path, channel: Channel) -> None:
    target = LAB if channel == "mail" else "https://hook.example/secret"
    outbox = MemoryOutbox(lambda: 1.0)
    message = Message(("ann@lab.example",), "slower", '{"event": "x"}')
    entry = outbox.put(Key("x", "w", "event", target), channel, message, "waiting", by="p")
    assert entry is not None
    mail = MailSettings.model_validate({"host": "mail.example", "from": "Lab <lab@lab.example>"})
    shown = outbox_view.whole(Wiring(Settings(state_dir=tmp_path, mail=mail)), entry)
    if channel == "webhook":
        assert shown == 'POST https://hook.example/secret\n\n{"event": "x"}\n'
    else:
        assert "\nFrom: Lab <lab@lab.example>\n" in f"\n{shown}" and "\nSubject: slower\n" in shown
        without = outbox_view.whole(Wiring(Settings(state_dir=tmp_path)), entry)
        assert "From: perfbisect@localhost\n" in without


def test_what_waits_for_a_person_is_listed_however_old_it_is() -> None:
    outbox = MemoryOutbox(lambda: 1.0)
    states: tuple[State, ...] = ("waiting", "sent", "refused", "approved", "unsure", "sent", "sent")
    for number, state in enumerate(states):
        key = Key(f"culprit {number}", "w", "regression", LAB)
        outbox.put(key, "mail", Message(("lab@example.org",), "subject", "text"), state, by="ann")

    def listed(limit: int | None) -> list[int]:
        return [entry.number for entry in outbox_view.latest(outbox, limit)]

    assert listed(2) == [7, 6, 5, 3, 1]
    assert listed(4) == [7, 6, 5, 4, 3, 1]
    assert listed(None) == listed(9) == [7, 6, 5, 4, 3, 2, 1]


def test_a_mail_that_the_daily_limit_holds_back_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was approved, and for a day nobody knew why it did not go."""
    settings = {"host": "mail.example", "from": "Lab <lab@lab.example>", "daily_limit": 1}
    wiring = Wiring(Settings(state_dir=tmp_path, mail=MailSettings.model_validate(settings)))
    outbox, now = MemoryOutbox(wiring.coordinator.now), wiring.coordinator.now()
    monkeypatch.setattr(outbox_view, "outbox_of", lambda _: outbox)
    channels: tuple[Channel, ...] = ("mail", "mail", "webhook")
    for number, channel in enumerate(channels):
        key = Key(f"culprit {number}", "w", "regression", LAB)
        outbox.put(key, channel, Message(("lab@example.org",), "subject", "text"), "approved", by="ann")

    def notes() -> list[str]:
        return [one.note for one in outbox_view.with_waits(wiring, outbox_view.latest(outbox, None))]

    assert notes() == ["", "", ""]
    assert outbox.claim("me", 1) is not None
    outbox.finish(1, "me", Delivery(accepted=("lab@example.org",)))
    assert notes() == ["", "waits: the limit of 1 mail within 24 hours is reached", ""]
    monkeypatch.setattr(type(wiring.coordinator), "now", lambda _: now + 86500.0)
    assert notes() == ["", "", ""]


def test_a_person_may_approve_what_waits_was_stopped_or_did_not_arrive() -> None:
    outbox = MemoryOutbox(lambda: 1.0)
    assert outbox_view.latest(outbox, 2) == []
    states: tuple[State, ...] = ("waiting", "sent", "stopped", "approved", "unsure", "draft")
    for state in states:
        message = Message(("lab@example.org",), "subject", "text")
        outbox.put(Key(state, "", "ended", LAB), "mail", message, state, by="ann")
    assert [one.state for one in outbox_view.approvable(outbox)] == ["unsure", "stopped", "waiting"]
    assert row(outbox.entry(1))["workload"] is None


@pytest.mark.parametrize(
    "address", ["https://user:word@hook.example:8443/secret", "HTTP://hook.example/secret"]
)
def test_who_may_not_send_sees_the_host_of_a_webhook_wherever_it_stands(address: str) -> None:
    key = Key("x", "w", "event", address)
    entry = OutboxEntry(
        number=1,
        key=key,
        channel="webhook",
        message=Message((address, "ann@lab.example"), "event", "{}"),
        state="sent",
        bisection="",
        created=1.0,
        changed=2.0,
        by="p",
        accepted=(address, "ann@lab.example"),
        refused={address: "410 Gone", "bob@lab.example": "550"},
    )
    host = f"{address.partition(':')[0].lower()}://hook.example"
    seen = without_secrets({**row(entry), "text": f"POST {address}\n\n{{}}\n"})
    assert seen["to"] == host
    assert seen["recipients"] == seen["accepted"] == [host, "ann@lab.example"]
    assert seen["refused"] == {host: "410 Gone", "bob@lab.example": "550"}
    assert seen["text"] == f"POST {host}\n\n{{}}\n"
    assert "secret" not in str(seen) and "word" not in str(seen)
    assert "text" not in without_secrets(row(entry))

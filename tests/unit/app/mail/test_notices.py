"""What --notify keeps in the outbox and says at the end; with a mail server: tests/integration/mail."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.store.outbox.memory_outbox import MemoryOutbox
from bisector.adapters.system import command
from bisector.app.mail import notices
from bisector.app.mail.notices import Notice
from bisector.errors import InfrastructureError, RequestError
from bisector.model.outbox import LAB, Key, Message, OutboxEntry
from bisector.model.stored_bisection import failure
from bisector.report.mail.culprit_mails import size_in_words
from bisector.report.report_model import Material
from bisector.schemas.request import Attempt
from tests.support.report_material import demo

FOUND = demo()
assert FOUND.conclusion is not None
(CULPRIT,) = FOUND.conclusion.findings
SHA = FOUND.graph.shas[CULPRIT.commits[-1]]
ME, HOOK = "me@y.org", "https://x.org/a"


class Lab:
    """One bisection, b-1, and who wants to know of its end. event: the last one that is stored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.outbox = MemoryOutbox(lambda: 1.0)
        self.status, self.event, self.material = "running", 7, FOUND
        mail = SimpleNamespace(sender="Lab <lab@y.org>", web=None)
        self.wiring: Any = SimpleNamespace(
            settings=SimpleNamespace(mail=mail, webhook=None, owner="ann"),
            store=SimpleNamespace(status=lambda _: self.status, trials=lambda _: (self.event, [])),
            bisection_folder=lambda _: folder,
        )
        monkeypatch.setattr(notices, "outbox_of", lambda _: self.outbox)
        monkeypatch.setattr(notices, "load_material", lambda *_: self.material)

    def tell(self) -> list[OutboxEntry]:
        """Look for what has ended; return the messages, with their own numbers."""
        return notices.tell_ended(self.wiring)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lab:
    made = Lab(monkeypatch, tmp_path)
    wanted = [Notice("mail", ME), Notice("webhook", HOOK), Notice("command", "true")]
    notices.promise(made.wiring, "b-1", "pipe-test", wanted)
    return made


def test_who_wants_to_know_is_kept_and_a_command_stays_with_its_process(lab: Lab) -> None:
    kept = [(one.channel, one.key.audience, one.state, one.by) for one in lab.outbox.entries()]
    assert sorted(kept) == [("mail", ME, "draft", "ann"), ("webhook", HOOK, "draft", "ann")]


@pytest.mark.parametrize("status", ["running", "interrupted", "done", "cancelled", "failed"])
def test_only_an_end_is_told(lab: Lab, status: str) -> None:
    """Whoever interrupts a bisection knows."""
    other = Key("c" * 40, "pipe-test", "regression", LAB)
    lab.outbox.put(other, "mail", Message(("team@y.org",), "slower", "text"), "draft", by="perfbisect")
    lab.status = status
    told = {one.key.audience for one in lab.tell()}
    assert told == (set() if status in ("running", "interrupted") else {ME, HOOK})
    left = lab.outbox.find(other)
    assert left is not None and left.message.subject == "slower", "another draft is nobody's notice"


def test_each_gets_the_result_in_the_form_of_its_channel(lab: Lab) -> None:
    lab.status = "done"
    told = {one.channel: one for one in lab.tell()}
    assert [one.by for one in told.values()] == ["ann", "ann"]
    mail, hook = told["mail"].message, told["webhook"].message
    assert (mail.recipients, mail.subject) == ((ME,), "b-1: CULPRIT PROVEN")
    assert [*mail.headers] == ["Message-ID"] and not hook.headers
    assert "Result: CULPRIT PROVEN" in mail.text and "The whole report: /" in mail.text
    assert (hook.recipients, hook.subject) == ((HOOK,), "bisection.ended")
    assert [one["commit"] for one in json.loads(hook.text)["culprits"]] == [SHA]
    assert lab.tell() == [], "once"


def test_each_failure_is_told_once_and_the_end_all_the_same(lab: Lab) -> None:
    lab.status = "failed"
    lab.material = replace(FOUND, status="failed", conclusion=None, action=failure("no room"))
    told = {one.message.subject: one.message.text for one in lab.tell()}
    assert told.keys() == {"b-1: No conclusion yet: failed.", "bisection.failed"}
    assert ": no room. 'perfbisect resume" in " ".join(told["b-1: No conclusion yet: failed."].split())
    assert ": no room. " in json.loads(told["bisection.failed"])["summary"]
    assert lab.tell() == []
    lab.event = 9  # it was resumed, and failed again
    assert len(lab.tell()) == 2
    lab.status, lab.material = "done", FOUND
    assert {one.message.subject for one in lab.tell()} == {"b-1: CULPRIT PROVEN", "bisection.ended"}
    assert lab.tell() == [] and not lab.outbox.entries(["draft"])


def test_one_that_cannot_be_read_holds_up_no_other_and_is_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices.promise(lab.wiring, "b-2", "pipe-test", [Notice("mail", ME)])
    lab.status = "done"

    def load(_: object, bisection: str) -> Material:
        if bisection == "b-1":
            raise InfrastructureError("its records are away")
        return FOUND

    monkeypatch.setattr(notices, "load_material", load)
    with pytest.raises(InfrastructureError, match="records are away"):
        lab.tell()
    assert [one.bisection for one in lab.outbox.entries(["approved"])] == ["b-2"]


def test_a_culprit_that_was_not_proven_is_no_fact() -> None:
    assert FOUND.conclusion is not None
    open_ = replace(FOUND.conclusion, findings=(replace(CULPRIT, certified=False),))
    assert notices.facts(replace(FOUND, conclusion=open_))["culprits"] == []
    facts = notices.facts(FOUND)
    assert (facts["event"], facts["ending"], facts["metric"]) == ("bisection.ended", "culprit", "real")
    subject, effect = FOUND.commit(CULPRIT.commits[-1]).subject, CULPRIT.effect.estimate
    words = size_in_words(FOUND, CULPRIT)
    told = {"commit": SHA, "subject": subject, "effect": effect, "words": words}
    assert facts["culprits"] == [told]
    request = {**FOUND.request, "workload": "/home/me/Größe"}
    assert notices.facts(replace(FOUND, request=request))["workload"] == "Größe"


def test_each_commit_of_a_set_is_told_and_nothing_of_a_try() -> None:
    assert FOUND.conclusion is not None
    last = CULPRIT.commits[-1]
    several = replace(CULPRIT, commits=(last - 1, last))
    found = replace(FOUND, conclusion=replace(FOUND.conclusion, findings=(several,)))
    told = notices.facts(found)["culprits"]
    assert isinstance(told, list)
    assert [one["commit"] for one in told] == list(FOUND.graph.shas[last - 1 : last + 1])
    tried = Attempt(of="b-0", culprit=SHA, unpatched=SHA, tried=SHA)
    assert notices.facts(replace(FOUND, attempt=tried))["culprits"] == []


def test_a_command_is_given_facts_and_a_minute(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: dict[str, Any] = {}

    def run(words: list[str], *, env: dict[str, str], timeout: float) -> None:
        given.update(env, words=words, seconds=timeout)

    monkeypatch.setattr(command, "run_command", run)
    failed = replace(FOUND, status="failed", conclusion=None)
    said = [Notice("mail", ME), Notice("command", "tell 'my team'")]
    assert notices.run_commands(lab.wiring, failed, said) == []
    assert (given["words"], given["seconds"]) == (["tell", "my team"], 60.0)
    assert (given["PERFBISECT_NOTICE_STATUS"], given["PERFBISECT_NOTICE_ENDING"]) == ("failed", "")
    assert json.loads((tmp_path / "notice.json").read_text())["bisection"] == "b-1"
    assert FOUND.conclusion is not None
    two = replace(FOUND.conclusion, findings=(CULPRIT, replace(CULPRIT, commits=(1,))))
    notices.run_commands(lab.wiring, replace(FOUND, conclusion=two), said)
    assert given["PERFBISECT_NOTICE_CULPRITS"] == f"{SHA} {FOUND.graph.shas[1]}"


@pytest.mark.parametrize("error", [InfrastructureError("it took a minute"), OSError("the disk is full")])
def test_a_command_that_fails_is_told_and_changes_no_ending(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command, "run_command", run)
    wrong = notices.run_commands(lab.wiring, FOUND, [Notice("command", "a"), Notice("command", "b")])
    assert wrong == [f"--notify command:{name}: {error}" for name in ("a", "b")]


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(RequestError) as error:
        read()
    return error.value.message


def test_what_cannot_be_understood_is_shown_in_a_line_that_fits(lab: Lab) -> None:
    long = refused(lambda: notices.read_notices(lab.wiring, [f"pigeon:{'x' * 9000}"], waits=True))
    assert len(long) < 300
    hostile = refused(lambda: notices.read_notices(lab.wiring, ["mail:a@x.org\x1b[31m"], waits=True))
    assert "that is no address" in hostile and "\x1b" not in hostile


def test_who_is_named_twice_is_told_once(lab: Lab) -> None:
    assert notices.read_notices(lab.wiring, ["command:true", "command:true"], waits=True) == [
        Notice("command", "true")
    ]

"""Mail as commands: a bisection on fakes ends, and its reports arrive at a real SMTP server, or wait.

With `lab_events`: what the webhook is told of alerts and testbeds.
"""

from __future__ import annotations

import datetime
import email
import http.server
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.git import person, upstream_fix
from bisector.adapters.git.upstream_fix import UpstreamFix
from bisector.adapters.mail.recipients import Recipients
from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app import find_culprit
from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.load_report import load_material
from bisector.app.mail import (
    culprit_offers,
    follow_ups,
    mail_chore,
    notices,
    outbox_view,
    same_culprit,
)
from bisector.app.mail.delivery import outbox_of
from bisector.app.mail.mail_chore import MailChore
from bisector.app.mail.notices import Notice, read_notices
from bisector.app.operations.local_operations import LocalOperations
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.engine import trial_runner
from bisector.errors import InfrastructureError, RequestError
from bisector.interfaces.cli import run
from bisector.model.alerts import BY_PROGRAM, HistoryEntry
from bisector.model.commit_graph import described
from bisector.model.series import Series, owner_of
from bisector.report.mail.may_send import culprits_of
from bisector.schemas.remote_request import RemoteRequest
from bisector.schemas.settings import load_settings
from bisector.testing.fakes import Faults
from tests.support import fake_bisection as fake
from tests.support.command_line import START, Bench, said
from tests.support.series.alert_lab import found as a_suspect
from tests.support.servers.mail_server import Sink, mail_server, text_of
from tests.support.small_git import SmallGit

PEOPLE = Recipients(("Zoë <z@x.org>", "list@x.org"), ("A note.",))


@pytest.fixture
def sink() -> Iterator[Sink]:
    with mail_server() as server:
        yield server


@pytest.fixture
def lab(bench: Bench, own_folders: Path, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> Bench:
    write_settings(own_folders, sink)
    monkeypatch.setattr(culprit_offers, "recipients", lambda *_: PEOPLE)
    monkeypatch.setattr(culprit_offers, "find_fix", lambda *_: None)
    monkeypatch.setattr(follow_ups, "find_fix", lambda *_: None)
    monkeypatch.setenv("PERFBISECT_WEBHOOK_SECRET", "s3cret")
    return bench


def write_settings(folder: Path, sink: Sink, more: str = "weekly = false") -> None:
    (folder / "perfbisect.toml").write_text(
        f'[mail]\nhost = "127.0.0.1"\nport = {sink.port}\nsecurity = "none"\n'
        f'from = "Lab <lab@y.org>"\nlab = ["team@y.org"]\n{more}\n'
    )


def wiring(folder: Path) -> Wiring:
    return Wiring(load_settings(folder / "perfbisect.toml"))


def test_the_result_is_shown_before_a_mail_server_is_waited_for(
    lab: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []

    def tell_end(*_: object) -> None:
        shown.append((capsys.readouterr().out, signal.getsignal(signal.SIGTERM)))

    monkeypatch.setattr(find_culprit, "tell_end", tell_end)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run([*START, "--notify", "mail:me@y.org"]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    ((text, on_sigterm),) = shown
    assert "CULPRIT PROVEN" in text and "\nreport: " in text
    assert on_sigterm is signal.SIG_DFL  # ends the process at once: what was found is written and shown


def test_the_lab_is_told_and_maintainers_wait_for_approval(
    lab: Bench,
    sink: Sink,
    own_folders: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sha = lab.lab.graph.shas[fake.CULPRIT]
    said(capsys, *START, "--notify", "mail:me@y.org")
    told = {mail["To"]: mail for mail in sink.mails}
    assert sorted(told) == ["me@y.org", "team@y.org"]
    assert sha[:12] in told["team@y.org"]["Subject"] and "slower" in told["team@y.org"]["Subject"]
    assert "waits for approval" in text_of(told["team@y.org"])
    assert "CULPRIT PROVEN" in told["me@y.org"]["Subject"] and sha in text_of(told["me@y.org"])
    for mail in told.values():
        words = " ".join(text_of(mail).split())
        assert "Measured: pipe-test.simulated from good to bad (bisection fake-" in words
        assert "The whole report: /" in words and words.count("report.txt") == 1
    rows = {row["to"]: row for row in json.loads(said(capsys, "mail", "list", "--json"))}
    waiting = rows["maintainers"]
    assert (waiting["state"], waiting["recipients"]) == ("waiting", list(PEOPLE.addresses))
    assert rows["lab"]["state"] == rows["me@y.org"]["state"] == "sent"
    number = str(waiting["number"])
    assert run(["mail", "preview", number]) == 0
    shown, next_step = capsys.readouterr()
    assert f"waiting for approval; 'perfbisect mail approve {number}' sends it" in next_step
    assert "From: Lab <lab@y.org>" in shown and f"#regzbot introduced: {sha[:12]}" in shown
    assert "A note." in shown and "Closes: https://lore.kernel.org/all/perfbisect." in shown
    assert "waiting" in said(capsys, "mail", "list")
    MailChore(wiring(own_folders)).do()
    assert len(sink.arrived) == 2, "nothing again, and nothing without approval"
    said(capsys, "mail", "approve", number)
    assert run(["mail", "approve", number]) == 1
    assert "approved already" in capsys.readouterr().err
    MailChore(wiring(own_folders)).do()
    assert sink.recipients[2] == ["z@x.org", "list@x.org"]
    mail = sink.mails[2]
    assert mail["Message-ID"].strip("<>") in text_of(mail), "the link of Closes is its own"
    settings = own_folders / "perfbisect.toml"
    settings.write_text(settings.read_text().replace("lab@y.org", "lab@moved.org"))
    monkeypatch.setattr(follow_ups, "find_fix", lambda *_: UpstreamFix("f" * 40, "x86: mend", True))
    MailChore(wiring(own_folders)).do()
    entries = outbox_of(wiring(own_folders)).entries()
    fixed = {e.key.audience: e for e in entries if e.key.kind == "fixed"}
    assert fixed["lab"].state == "sent" and len(sink.arrived) == 4
    assert sink.mails[3]["In-Reply-To"] == told["team@y.org"]["Message-ID"], "the thread of the old address"
    assert follow_ups.offer_fixes(wiring(own_folders)) == []
    last = outbox_of(wiring(own_folders)).entries(["waiting"])[0]
    assert last.key.kind == "fixed" and last.message.headers["References"] == mail["Message-ID"]
    assert run(["mail", "stop", str(last.number), "--reason", "known"]) == 0
    assert outbox_of(wiring(own_folders)).entry(last.number).note == "known"


def test_only_the_lab_is_told_of_a_listed_kernel(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(mail_chore, "offer_reports", lambda *_: [])
        said(capsys, *START)
    material = load_material(wiring(own_folders), None)
    listed = replace(material, goal=replace(material.goal, unit="kernel"))
    made = culprit_offers.offer_reports(wiring(own_folders), listed)
    assert [entry.key.audience for entry in made] == ["lab"]
    assert "no mail to maintainers" in made[0].message.text


def test_only_the_bisection_of_a_public_series_needs_no_approval(
    lab: Bench, sink: Sink, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its owner decides: an alert of a public series may share the bisection of one that is not."""
    said(capsys, *START)
    shared = wiring(own_folders).store.list()[0].id
    write_settings(own_folders, sink, 'weekly = false\npublic = ["nightly", "other"]')
    found = wiring(own_folders)
    alert = a_suspect(10, 20, "nightly", id="a-1", bisection=shared, finding="bisecting")
    SqlAlerts(found.database).add(alert, HistoryEntry(BY_PROGRAM, "bisecting"))
    for owner, state in (("nightly", "approved"), ("secret", "waiting")):
        found.database.execute("UPDATE scheduling SET owner = :owner", owner=owner_of(owner))
        found.database.execute("DELETE FROM outbox")
        culprit_offers.offer_reports(found, load_material(found, shared))
        entries = {one.key.audience: one for one in outbox_of(found).entries()}
        assert entries["maintainers"].state == state
        assert ("waits for approval" in entries["lab"].message.text) is (state == "waiting")
        told = "Alert of the series nightly, measured on fake:\n  'perfbisect alert show a-1'\n"
        assert told in entries["lab"].message.text and "a-1" not in entries["maintainers"].message.text
    write_settings(own_folders, sink, 'weekly = false\nweb = "https://perf.y.org/"')
    assert "  https://perf.y.org/alerts/a-1" in culprit_offers.alert_lines(wiring(own_folders), shared)
    assert culprit_offers.alert_lines(found, "another") == []


def test_a_mail_names_the_branch_that_a_series_measures(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, *START)
    found = wiring(own_folders)
    repo = own_folders / "linux"
    SmallGit(repo).make("c0\n").git("remote", "add", "origin", "/nowhere")
    found.database.execute("UPDATE scheduling SET owner = :owner", owner=owner_of("nightly"))
    material = load_material(found, None)
    (finding,) = culprits_of(material)
    what = ("pipe-test", "small", "box1", "0 2 * * *", "UTC")
    for branch, named in (
        ("", "bad"),  # no series
        ("origin/next", "next"),
        ("fixes/x86", "fixes/x86"),
        ("v6.*", "bad"),
    ):
        if branch:
            measured = Series("nightly", str(repo), branch, *what, budget=1.0, boots=4, reference="c" * 40)
            series_store(found).add(measured)
        message = culprit_offers.prepare_upstream(
            found, material, finding, found.settings.mail, "Lab"
        ).message
        assert message.subject.startswith(f"[fake:{named}] ")
        assert f"\ngit tree: fake {named}\n" in message.text, "a folder of the lab is nobody's business"
        if branch:
            series_store(found).remove("nightly")


def test_a_mail_names_where_others_fetch_the_tree_without_the_labs_password(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, *START)
    found = wiring(own_folders)
    linux = SmallGit(own_folders / "linux").make("c0\n")
    linux.git("remote", "add", "origin", "https://bot:geheim@git.example.org/torvalds/linux.git")
    material = load_material(found, None)
    asked = {**material.request, "repo": str(linux.path), "bad": "origin/master"}
    material = replace(material, request=asked)
    (finding,) = culprits_of(material)
    message = culprit_offers.prepare_upstream(found, material, finding, found.settings.mail, "Lab").message
    assert "\ngit tree: https://git.example.org/torvalds/linux.git master\n" in message.text
    assert message.subject.startswith("[linux:master] ")
    assert "geheim" not in message.text


def test_what_else_a_culprit_changes_is_told_where_others_have_proven_it(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `same_culprit` finds: another workload's proof, but no second one of the same, and no guess."""
    said(capsys, *START)
    found = wiring(own_folders)
    store, material = found.store, load_material(found, None)
    stored, (finding,) = store.load(material.id), culprits_of(material)
    assert stored.conclusion is not None
    records = [record for _, record in store.records(material.id)]
    unproven = replace(stored.conclusion, findings=(replace(finding, certified=False),))
    (before,) = finding.parents
    parents = (*material.graph.parents[before], before)
    more = replace(finding, commits=(before, *finding.commits), parents=parents)
    several = replace(stored.conclusion, findings=(more,))
    renamed = stored.request.replace('"workload":"pipe-test"', '"workload":"/w/hackbench"')
    assert renamed != stored.request
    sha = material.graph.shas[finding.commits[-1]]
    asked = {**json.loads(renamed.replace("hackbench", "futex")), "attempt": attempt_of(material.id, sha)}
    for identity, request, conclusion in (
        ("again", stored.request, stored.conclusion),
        ("proven", renamed, stored.conclusion),
        ("proven-before", renamed, stored.conclusion),
        ("unproven", renamed.replace("hackbench", "db-aio"), unproven),
        ("tried", json.dumps(asked), stored.conclusion),
        ("several", renamed.replace("hackbench", "sched"), several),
    ):
        copied = replace(stored, id=identity, request=request, conclusion=None, status="running")
        copied = replace(copied, created=stored.created - 60) if identity == "proven-before" else copied
        store.create(copied, records)
        store.set_status(identity, "done", conclusion)
    draft = said(capsys, "report", material.id, "--mail-draft")
    (box,) = re.findall(r"The commit also changes these.*?#regzbot", draft, re.DOTALL)
    assert re.findall(r"testcase: change \| (\S+)", box) == ["hackbench.simulated"]
    assert "proven" not in box.partition("+--")[2], "ids of bisections are the lab's"
    found.database.execute("DELETE FROM outbox")
    culprit_offers.offer_reports(found, material)
    mails = {one.key.audience: one.message.text for one in outbox_of(found).entries()}
    assert box in mails["maintainers"]
    assert "| bisection        | proven " in mails["lab"] and "| again " not in mails["lab"]
    for name in {visit.testbed for visit in material.state.visits}:
        found.coordinator.set_testbed(name, "suspect", "its fan", "ann")
    assert "The commit also changes" not in said(capsys, "report", material.id, "--mail-draft")
    found.database.execute("DELETE FROM testbeds")
    monkeypatch.setattr(
        same_culprit,
        "load_material",
        lambda _, one: (
            load_material(_, one) if one not in ("proven", "proven-before") else raise_for_a_moment()
        ),
    )
    assert "The commit also changes" not in said(capsys, "report", material.id, "--mail-draft"), "it is gone"


def attempt_of(bisection: str, sha: str) -> dict[str, str]:
    """Of a try, which may measure the culprit itself: its proof is none of a search."""
    return {"of": bisection, "culprit": sha, "unpatched": sha, "tried": sha}


def test_what_fixes_tags_say_is_not_measured(
    lab: Bench,
    sink: Sink,
    own_folders: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fix, with_fix = UpstreamFix("f" * 40, "x86: mend", False), set[str]()
    for module in (culprit_offers, follow_ups):
        monkeypatch.setattr(module, "find_fix", lambda *_: fix)
    monkeypatch.setattr(upstream_fix, "has_commit", lambda _, tip, __: tip in with_fix)
    said(capsys, *START)
    found, doubt = wiring(own_folders), "names it in 'Fixes:' (not measured): ffffffffffff (\"x86: mend\")"
    entries = {one.key.audience: one for one in outbox_of(found).entries()}
    assert entries["maintainers"].state == "waiting" and doubt in entries["maintainers"].note
    assert doubt in " ".join(entries["maintainers"].message.text.split())
    to_lab = " ".join(entries["lab"].message.text.split())
    assert doubt in to_lab and "waits for approval" in to_lab
    outbox_of(found).approve(entries["maintainers"].number, "ann")
    MailChore(found).do()
    MailChore(found).do()
    named = [one for one in outbox_of(found).entries() if one.key.kind in ("named", "fixed")]
    assert [(one.key.kind, one.key.audience) for one in named] == [("named", "maintainers"), ("named", "lab")]
    assert all("#regzbot" not in one.message.text and "measured" in one.message.text for one in named)
    (back,) = found.source().infos([lab.lab.graph.shas[-1]])
    known: dict[str, Any] = {
        "workload": "/w/pipe-test",
        "culprits": (entries["lab"].key.about,),
        "back_since": back.sha,
    }
    alert = a_suspect(1, 2, id="a-1", finding="culprit", triage="fixed", **known)
    SqlAlerts(found.database).add(alert, HistoryEntry(BY_PROGRAM, "fixed"))
    assert follow_ups.offer_fixes(found) == [], "the level was back before the fix"
    better = a_suspect(3, 4, direction="improvement", id="b-1", finding="confirmed", first_bad=back.sha)
    SqlAlerts(found.database).add(better, HistoryEntry(BY_PROGRAM, "confirmed"))
    other = a_suspect(5, 6, direction="improvement", id="b-2", finding="confirmed")
    SqlAlerts(found.database).add(other, HistoryEntry(BY_PROGRAM, "confirmed"))
    with_fix |= {back.sha, better.last_good, other.last_good}
    assert follow_ups.offer_fixes(found) == [], "the loss was there with the fix: something else mended it"
    with_fix -= {better.last_good}
    sent, days = "UPDATE outbox SET created = :at WHERE kind = 'regression'", 86400
    found.database.execute(sent, at=found.clock.now() - 366 * days)
    assert follow_ups.offer_fixes(found) == [], "a year later nobody is told any more"
    found.database.execute(sent, at=found.clock.now() - 364 * days)
    assert {one.key.audience: one.state for one in follow_ups.offer_fixes(found)} == {
        "maintainers": "waiting",
        "lab": "approved",
    }
    last = outbox_of(found).entries(limit=1)[0]
    assert last.key.kind == "fixed" and "#regzbot fix: ffffffffffff" in last.message.text
    MailChore(found).do()
    arrived = text_of(sink.mails[-1])
    assert arrived.splitlines() == last.message.text.splitlines(), (
        "it is the lab's and the maintainers' alike"
    )
    assert f"measured again, at the latest since {described(back.sha, back.subject)}, which" in " ".join(
        arrived.split()
    )


def test_nobody_is_told_of_what_a_later_commit_reverts(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(culprit_offers, "find_fix", lambda *_: UpstreamFix("f" * 40, "Revert x86", True))
    said(capsys, *START)
    (entry,) = [one for one in outbox_of(wiring(own_folders)).entries() if one.key.audience == "maintainers"]
    assert entry.state == "draft" and "a later commit reverts it (not measured): ffff" in entry.note


def test_hostile_recipients_break_no_preview_and_no_draft(
    lab: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    people = Recipients(("A, B <a@x.org>", "B <.b@y.org>", "a..b@x.org"))
    monkeypatch.setattr(culprit_offers, "recipients", lambda *_: people)
    said(capsys, *START)
    rows = {row["to"]: row for row in json.loads(said(capsys, "mail", "list", "--json"))}
    shown = said(capsys, "mail", "preview", str(rows["maintainers"]["number"]))
    for text in (shown, said(capsys, "report", "--mail-draft")):
        assert 'To: "A, B" <a@x.org>\n' in text


def test_a_draft_waits_for_approval_once_what_spoke_against_it_is_over(
    lab: Bench,
    sink: Sink,
    own_folders: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(culprit_offers, "recipients", lambda *_: Recipients((), ("A note.",)))
    said(capsys, *START)
    found = wiring(own_folders)
    (draft,) = outbox_of(found).entries(["draft"])
    assert draft.note == "nobody is known who could get it"
    assert run(["mail", "preview", str(draft.number)]) == 0
    preview, note = capsys.readouterr()
    assert "\nTo:" not in preview and f"message {draft.number} is a draft: nobody is known" in note
    assert follow_ups.look_at_drafts(found) == [], "nothing has changed"
    monkeypatch.setattr(culprit_offers, "recipients", lambda *_: Recipients((), ("Another note.",)))
    (still,) = follow_ups.look_at_drafts(found)
    assert still.state == "draft", "so the lab is not told that it waits for approval"
    monkeypatch.setattr(culprit_offers, "recipients", lambda *_: PEOPLE)
    monkeypatch.setattr(mail_chore, "offer_reports", lambda *_: [])
    said_before = len(sink.mails)
    MailChore(found).do()
    (told,) = sink.mails[said_before:]
    assert told["To"] == "team@y.org" and told["Subject"].startswith("Re: pipe-test ")
    assert f"perfbisect mail approve\n{draft.number}'" in text_of(
        told
    ) or f"approve {draft.number}'" in text_of(told)
    (first,) = [mail for mail in sink.mails if mail["Message-ID"] == told["In-Reply-To"]]
    assert first["To"] == "team@y.org" and "is not to be sent" in text_of(first)
    MailChore(found).do()
    assert len(sink.mails) == said_before + 1
    again = outbox_of(found).entry(draft.number)
    assert (again.state, again.note, again.message.recipients) == ("waiting", "", PEOPLE.addresses)
    outbox_of(found).stop(draft.number, "ann", "known")
    assert follow_ups.look_at_drafts(found) == []


def test_what_ended_while_nobody_executed_is_reported_later(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, *START)
    found = wiring(own_folders)
    outbox, now = outbox_of(found), found.coordinator.now()
    assert outbox.told_until("mail") == found.store.list()[0].changed
    seen_late = 1.0 + 300 / 86400  # its transaction began before one that was told, and ended after it
    for told_days, ended_days, offered in (
        (None, 3, 0),
        (4, 3, 2),
        (2, 3, 0),
        (50, 40, 0),
        (1, seen_late, 2),
    ):
        found.database.execute("DELETE FROM outbox")
        found.database.execute("DELETE FROM about WHERE key <> 'schema'")
        found.database.execute("UPDATE bisections SET changed = :at", at=now - ended_days * 86400)
        if told_days is not None:
            outbox.tell_until("mail", now - told_days * 86400)
        MailChore(found).do()
        assert len(outbox.entries()) == offered, (told_days, ended_days)


def test_what_could_not_be_offered_is_offered_by_the_next_process(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that ended later was: what the chore has told of ends before the one that failed."""
    with monkeypatch.context() as before:
        before.setattr(mail_chore, "offer_reports", lambda *_: [])
        said(capsys, *START)
    found = wiring(own_folders)
    store, (known,), now = found.store, found.store.list(), found.coordinator.now()
    stored = store.load(known.id)
    other = stored.request.replace('"workload":"pipe-test"', '"workload":"/w/hackbench"')
    later = replace(stored, id="later", request=other, conclusion=None, status="running")
    store.create(later, [record for _, record in store.records(known.id)])
    store.set_status("later", "done", stored.conclusion)
    for identity, hours in ((known.id, 5), ("later", 1)):
        found.database.execute(
            "UPDATE bisections SET changed = :at WHERE id = :id", at=now - hours * 3600, id=identity
        )
    outbox_of(found).tell_until("mail", now - 6 * 3600)
    with monkeypatch.context() as broken, pytest.raises(InfrastructureError, match="for a moment"):
        broken.setattr(
            mail_chore,
            "load_material",
            lambda wiring, one: load_material(wiring, one) if one == "later" else raise_for_a_moment(),
        )
        MailChore(found).do()
    offered = {entry.bisection for entry in outbox_of(found).entries()}
    assert offered == {"later"}
    assert [entry.key.audience for entry in outbox_of(found).entries(["sent"])] == ["lab"], (
        "what can be is sent"
    )
    MailChore(wiring(own_folders)).do()
    assert {entry.bisection for entry in outbox_of(found).entries()} == {known.id, "later"}


def test_what_had_ended_before_it_was_imported_is_no_news(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(mail_chore, "offer_reports", lambda *_: [])
        said(capsys, *START)
    found = wiring(own_folders)
    found.database.execute("DELETE FROM about WHERE key <> 'schema'")
    (known,) = found.store.list()
    said(capsys, "export", known.id, "--output", "x.tar.gz")
    said(capsys, "rm", known.id, "--yes")
    said(capsys, "import", "x.tar.gz")
    MailChore(found).do()
    (imported,) = found.store.list()
    assert outbox_of(found).entries() == []
    assert follow_ups.collect_week(found, "2026-W47", imported.changed - 60).culprits == []


def test_a_notice_is_stopped_only_where_its_bisection_was_removed(
    lab: Bench, sink: Sink, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, *START)
    found, me = wiring(own_folders), Notice("mail", "me@y.org")
    known = found.store.list()[0].id
    notices.promise(found, known, "pipe-test", [me])
    notices.promise(found, "removed", "pipe-test", [me])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(InfrastructureError, match="for a moment"):
        patch.setattr(notices, "load_material", raise_for_a_moment)
        notices.tell_ended(found)
    states = {one.bisection: one.state for one in outbox_of(found).entries() if one.key.kind == "ended"}
    assert states == {known: "draft", "removed": "stopped"}
    assert [one.state for one in notices.tell_ended(found)] == ["approved"]


def raise_for_a_moment(*_: object) -> None:
    raise InfrastructureError("the disk is away for a moment")


def test_the_week_shows_changes_in_the_unit_of_their_alerts(lab: Bench, own_folders: Path) -> None:
    found = wiring(own_folders)
    for name, unit in (("a-1", "ms"), ("a-2", "")):
        alert = a_suspect(1, 2, id=name, unit=unit)
        SqlAlerts(found.database).add(alert, HistoryEntry(BY_PROGRAM, "suspect"))
    closed = a_suspect(3, 4, id="a-3", triage="invalid")
    SqlAlerts(found.database).add(closed, HistoryEntry(BY_PROGRAM, "suspect"))
    alerts = follow_ups.collect_week(found, "2026-W47", 0.0).alerts
    assert len(alerts) == 2, "what is closed is no news"
    shown = "\n".join(alerts)
    assert "fake on fake: +0.1 ms worse, suspect, open since " in shown
    assert "fake on fake: +10.0% worse, suspect, open since " in shown


def test_the_week_names_culprits_in_words(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, *START)
    found = wiring(own_folders)
    (known,) = found.store.list()
    sha = lab.lab.graph.shas[fake.CULPRIT]
    (line,) = follow_ups.collect_week(found, "2026-W47", known.changed - 60).culprits
    assert line.startswith(f'{sha[:12]} ("') and "% slower, " in line and line.endswith("report.txt")
    assert follow_ups.collect_week(found, "2026-W47", known.changed + 60).culprits == []
    week = 7 * 86400
    assert len(follow_ups.collect_week(found, "2026-W47", known.changed - week + 60).culprits) == 1
    assert follow_ups.collect_week(found, "2026-W47", known.changed - week).culprits == [], "of the next one"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow_ups, "load_material", raise_for_a_moment)
        (line,) = follow_ups.collect_week(found, "2026-W47", known.changed - 60).culprits
    assert line == f"{sha[:12]}: {known.workload}, bisection {known.id}"


def test_the_week_names_drafts_that_wait_for_approval(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, *START)
    found = wiring(own_folders)
    (draft,) = follow_ups.collect_week(found, "2026-W47", 0.0).waiting
    assert (draft.state, draft.key.audience) == ("waiting", "maintainers")
    outbox_of(found).stop(draft.number, "ann", "known")
    assert follow_ups.collect_week(found, "2026-W47", 0.0).waiting == []


def test_drafts_are_looked_at_once_an_hour_and_fixes_four_times_a_day(
    lab: Bench, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts, fixes = list[float](), list[float]()
    found = wiring(own_folders)
    start = found.coordinator.now()
    monkeypatch.setattr(mail_chore, "look_at_drafts", lambda wiring: drafts.append(wiring.coordinator.now()))
    monkeypatch.setattr(mail_chore, "offer_fixes", lambda wiring: fixes.append(wiring.coordinator.now()))
    chore = MailChore(found)
    for seconds in (0.0, 20.0, 3599.0, 3600.0, 3620.0, 7200.0, 6 * 3600.0):
        monkeypatch.setattr(SqlCoordinator, "now", lambda _, at=seconds: start + at)
        chore.do()
    assert [at - start for at in drafts] == [0.0, 3600.0, 7200.0, 6 * 3600.0]
    assert [at - start for at in fixes] == [0.0, 6 * 3600.0]
    found.stop.set()
    monkeypatch.setattr(SqlCoordinator, "now", lambda _: start + 86400)
    chore.do()
    assert (len(drafts), len(fixes)) == (4, 2), "who is told to stop begins nothing"


def test_a_draft_for_git_send_email(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_folders / "perfbisect.toml").unlink()
    said(capsys, *START)
    assert run(["report", "--mail-draft"]) == 0
    out, err = capsys.readouterr()
    assert "git knows no user.email of yours: it is from " in err, "/fake is no repository"
    monkeypatch.setattr(person, "person_of", lambda _: "Ann <ann@y.org>")
    said(capsys, "report", "--mail-draft", "--output", "mail.mbox")
    draft = (own_folders / "mail.mbox").read_text()
    first = f"From {lab.lab.graph.shas[fake.CULPRIT]} Mon Sep 17 00:00:00 2001\nFrom: "
    assert out.startswith(first) and draft.startswith(f"{first}Ann <ann@y.org>\n")
    assert "\n| Reported-by: Ann <ann@y.org>\n" in draft
    assert "To: =?utf-8?" in draft and "Subject: [fake:bad]" in draft and "\r" not in draft
    # git's own reader of mails takes it apart.
    read = subprocess.run(
        ["git", "mailinfo", "msg", "patch"], input=draft, text=True, capture_output=True, cwd=own_folders
    )
    assert read.returncode == 0 and "Subject: " in read.stdout
    assert run(["report", "--mail-draft", "--json"]) == 1
    if not Path("/usr/lib/git-core/git-send-email").exists():
        pytest.skip("needs Debian's package git-email")
    program = own_folders / "sendmail"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > envelope\ncat > sent.eml\n')
    program.chmod(0o755)
    send = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@y.org", "send-email", "--confirm=never"]
    sent = subprocess.run(
        [*send, "--suppress-cc=all", f"--smtp-server={program}", "mail.mbox"],
        text=True,
        capture_output=True,
        cwd=own_folders,
    )
    assert sent.returncode == 0, sent.stderr
    envelope = (own_folders / "envelope").read_text().splitlines()
    assert {"list@x.org", "z@x.org"} <= set(envelope)
    arrived = email.message_from_bytes((own_folders / "sent.eml").read_bytes(), policy=SMTP)
    body = arrived.get_content()
    assert arrived["Subject"].startswith("[fake:bad]") and body.startswith("Hello,"), "no 'From:' above it"
    assert f"| Closes: https://lore.kernel.org/all/{arrived['Message-ID'].strip('<>')}/\n" in body


def test_drafts_of_several_culprits_are_told_to_be_taken_apart(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git send-email` makes one mail of a file, with the recipients of all."""
    said(capsys, *START)
    assert run(["report", "--mail-draft"]) == 0
    assert "mailsplit" not in capsys.readouterr().err, "one mail is sent as it is"
    monkeypatch.setattr(outbox_view, "culprits_of", lambda material: culprits_of(material) * 2)
    assert run(["report", "--mail-draft"]) == 0
    assert "'git mailsplit -o. FILE' writes them as 0001..0002" in " ".join(capsys.readouterr().err.split())
    assert run(["report", "--mail-draft", "--output", "my mail"]) == 0
    told, command = " ".join(capsys.readouterr().err.split()), "git mailsplit -o. 'my mail'"
    assert "these are 2 mails" in told and command in told
    subprocess.run(command, shell=True, check=True, cwd=own_folders)
    for name in ("0001", "0002"):
        mail = email.message_from_bytes((own_folders / name).read_bytes(), policy=SMTP)
        assert mail["Subject"].startswith("[fake:bad]") and mail.get_content().startswith("Hello,")
        assert mail.get_content().count("Closes: ") == 1


@pytest.mark.parametrize(
    ("notify", "message"),
    [
        ("mail:nobody", "that is no address"),
        ("mail:a@x.org\nBcc: b@x.org", "that is no address"),
        ("webhook:http://10.0.0.1/", "must be https://HOST/PATH"),
        ("webhook:ftp://x/", "must be https://HOST/PATH"),
        ("command:", "it names no program"),
        ("command:'x", "No closing quotation"),
        ("pigeon:x", "that is not a way to tell somebody"),
    ],
)
def test_what_notify_refuses(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str], notify: str, message: str
) -> None:
    assert run([*START, "--notify", notify]) == 1
    err = capsys.readouterr().err
    assert message in err and "cure:" in err
    assert not (own_folders / "state").exists() or not wiring(own_folders).store.list()
    assert run([*START, "--notify", notify, "--dry-run"]) == 1
    assert capsys.readouterr().err == err, "a dry run refuses what the command does"


def test_what_cannot_be_told_from_here_is_refused(
    bench: Bench, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Wiring(load_settings(None, start=own_folders))
    with pytest.raises(RequestError, match="there is no mail server in"):
        read_notices(plain, ["mail:a@x.org"], waits=True)
    with pytest.raises(RequestError, match="no secret to sign it with"):
        read_notices(plain, ["webhook:https://x.org/"], waits=True)
    with pytest.raises(RequestError, match="with --detach nobody is there"):
        read_notices(plain, ["command:true"], waits=False)
    assert run([*START, "--server", "http://127.0.0.1:1", "--notify", "command:true"]) == 1
    assert run([*START, "--dry-run", "--server", "http://127.0.0.1:1", "--notify", "command:true"]) == 1
    given = {"good": "a", "bad": "b", "workload": "w", "notify": ["mail:a@x.org"]}
    with pytest.raises(RequestError, match="there is no mail server in"):
        LocalOperations(plain).plan(RemoteRequest.model_validate(given))


def test_no_request_from_elsewhere_names_a_command() -> None:
    given = {"good": "a", "bad": "b", "workload": "w"}
    RemoteRequest.model_validate({**given, "notify": ["mail:a@x.org", "webhook:https://x.org/a"]})
    for notify in (
        "command:id",
        ["command:id"],
        ["mail:a@x.org", "command:id"],
        ["mail:a b"],
        ["COMMAND:id"],
    ):
        with pytest.raises(ValueError, match="notify"):
            RemoteRequest.model_validate({**given, "notify": notify})


def test_a_command_gets_facts_and_no_words(
    lab: Bench, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = own_folders / "tell me"
    program.write_text(
        '#!/bin/sh\nprintf \'%s|\' "$#" "$@" "$PERFBISECT_NOTICE_CULPRITS" > told\n'
        'cp "$PERFBISECT_NOTICE_FILE" facts.json\n'
    )
    program.chmod(0o755)
    said(capsys, *START, "--notify", f"command:'{program}' '$(id)'", "--notify", "command:/no/such/program")
    sha = lab.lab.graph.shas[fake.CULPRIT]
    assert (own_folders / "told").read_text() == f"1|$(id)|{sha}|"
    facts = json.loads((own_folders / "facts.json").read_text())
    assert (facts["ending"], facts["status"]) == ("culprit", "done")
    assert [one["commit"] for one in facts["culprits"]] == [sha]


def test_a_failure_is_told_too_and_the_end_later(
    lab: Bench,
    sink: Sink,
    own_folders: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    lab.faults = Faults(build=dict.fromkeys((2, 3, 4), InfrastructureError("no space")))
    assert run([*START, "--notify", "mail:me@y.org"]) == 3
    assert [mail["To"] for mail in sink.mails] == ["me@y.org"] and "failed" in sink.mails[0]["Subject"]
    loads: list[str] = []
    with monkeypatch.context() as counted:
        counted.setattr(notices, "load_material", lambda _, bisection: loads.append(bisection))
        MailChore(wiring(own_folders)).do()
    assert len(sink.arrived) == 1 and loads == [], "who was told of it is known without reading it"
    lab.faults = None
    said(capsys, "resume")
    assert sorted(mail["To"] for mail in sink.mails) == ["me@y.org", "me@y.org", "team@y.org"]


def test_a_server_that_is_down_changes_no_ending_and_what_waits_is_sent_later(
    lab: Bench, sink: Sink, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink.at["MAIL"] = lambda: "451 later"
    said(capsys, *START)
    rows = {row["to"]: row for row in json.loads(said(capsys, "mail", "list", "--json"))}
    assert (rows["lab"]["state"], rows["lab"]["note"]) == ("approved", "451 later")
    wiring(own_folders).database.execute("UPDATE outbox SET not_before = 0")
    sink.at.clear()
    MailChore(wiring(own_folders)).do()
    assert [mail["To"] for mail in sink.mails] == ["team@y.org"]


def test_events_are_posted_and_the_week_is_summed_up_once(
    lab: Bench, sink: Sink, own_folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    got: list[dict[str, object]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    write_settings(own_folders, sink, f'[webhook]\nurl = "{url}"')
    said(capsys, *START, "--notify", f"webhook:{url}mine")
    assert sorted(str(one["event"]) for one in got) == ["bisection.ended"] * 2
    assert got[0] == got[1], "one kind of event has one form, whoever gets it"
    sha = lab.lab.graph.shas[fake.CULPRIT]
    assert [one["commit"] for one in got[0]["culprits"]] == [sha]  # type: ignore[attr-defined]
    weekly = [mail for mail in sink.mails if mail["Subject"].startswith("Week ")]
    assert len(weekly) == 1 and "Open alerts" in text_of(weekly[0])
    year, week, _ = datetime.datetime.fromtimestamp(time.time() - 7 * 86400, datetime.UTC).isocalendar()
    assert f"{year}-W{week:02d}" in weekly[0]["Subject"], "the one that is over"
    MailChore(wiring(own_folders)).do()
    assert len(got) == 2 and len(sink.mails) == 2

    found, alert = wiring(own_folders), replace(a_suspect(1, 2), id="a" * 10)
    open_alerts(found).add(alert, HistoryEntry(BY_PROGRAM, "suspect", "night 7"))
    found.coordinator.set_testbed("box1", "suspect", "its level moved", "a health check")
    old = replace(a_suspect(5, 6), id="b" * 10)
    open_alerts(found).add(old, HistoryEntry(BY_PROGRAM, "suspect", "a month ago"))
    long_ago = found.coordinator.now() - 30 * 86400
    found.database.execute("UPDATE alert_history SET at = :at WHERE alert = :id", at=long_ago, id=old.id)
    found.coordinator.set_testbed("box2", "suspect", "a month ago", "ann")
    found.database.execute("UPDATE testbeds SET since = :at WHERE name = 'box2'", at=long_ago)
    MailChore(found).do()
    set_alert(open_alerts(found), alert.id, AlertChange("acknowledged", note="seen"), "ann")
    set_alert(open_alerts(found), alert.id, AlertChange(note="a note is no event"), "ann")
    found.coordinator.set_testbed("box1", "good", "mended", "bob")
    for _ in range(2):
        MailChore(wiring(own_folders)).do()
    set_alert(open_alerts(found), alert.id, AlertChange(duplicate_of=old.id, note="alike"), "ann")
    MailChore(wiring(own_folders)).do()
    assert (got[-1]["event"], got[-1]["state"], got[-1]["why"]) == ("alert.changed", "duplicate", "alike")
    assert got.pop()["alert"]["duplicate_of"] == old.id  # type: ignore[index]
    told = [(one["event"], one["state"], one["by"], one["why"]) for one in got[2:]]
    assert sorted(told[:2]) == [
        ("alert.changed", "suspect", BY_PROGRAM, "night 7"),
        ("testbed.changed", "suspect", "a health check", "its level moved"),
    ]
    assert sorted(told[2:]) == [
        ("alert.changed", "acknowledged", "ann", "seen"),
        ("testbed.changed", "good", "bob", "mended"),
    ]
    (of_alert,) = [one for one in got if one.get("state") == "acknowledged"]
    assert of_alert["alert"]["id"] == alert.id and of_alert["effect"]["estimate"] == 0.1  # type: ignore[index]
    server.shutdown()
    server.server_close()


def test_numbers_of_messages_that_are_none(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "mail", "list") == "No message yet.\n"
    for number in ("0", "x", "-1", "99999999999999999999"):
        assert run(["mail", "preview", number]) == 1
    for command in ("preview", "approve", "stop"):
        assert run(["mail", command, "7"]) == 1
        assert "there is no message 7" in capsys.readouterr().err

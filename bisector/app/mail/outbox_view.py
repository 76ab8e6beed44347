"""The outbox as commands and pages show it, and mails for `git send-email`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bisector.adapters.mail.wire_form import email_message, mail_of, wire_bytes
from bisector.adapters.store.outbox.outbox_refusals import check_approval
from bisector.app.load_report import load_material
from bisector.app.mail.culprit_offers import key_of, prepare_upstream
from bisector.app.mail.delivery import outbox_of
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError, RequestError
from bisector.model.format import count
from bisector.model.outbox import DAY_SECONDS, UNDELIVERED, OutboxEntry, State
from bisector.report.mail.may_send import culprits_of

if TYPE_CHECKING:
    from email.message import EmailMessage

    from bisector.mail_ports import Outbox
    from bisector.report.report_model import Material

_FOR_A_PERSON: tuple[State, ...] = ("waiting", *UNDELIVERED)


def latest(outbox: Outbox, limit: int | None) -> list[OutboxEntry]:
    """Return so many of the latest messages, and those before them that wait for a person; None: all."""
    found = list(outbox.entries(limit=limit))
    if limit is not None and len(found) == limit:
        found += [one for one in outbox.entries(_FOR_A_PERSON) if one.number < found[-1].number]
    return found


def with_waits(wiring: Wiring, entries: Sequence[OutboxEntry]) -> list[OutboxEntry]:
    """Return messages; the note of approved mails that the daily limit holds back says so.

    The limit is that of the settings here, which those of who sends should be.
    """
    mail = wiring.settings.mail
    held = [one for one in entries if one.state == "approved" and one.channel == "mail" and not one.note]
    if mail is None or not held:
        return [*entries]
    since = wiring.coordinator.now() - DAY_SECONDS
    mails = [one for one in outbox_of(wiring).entries() if one.channel == "mail"]
    if sum((one.sent or 0.0) > since for one in mails) < mail.daily_limit:
        return [*entries]
    note = f"waits: the limit of {count(mail.daily_limit, 'mail')} within 24 hours is reached"
    return [replace(one, note=note) if one in held else one for one in entries]


def approvable(outbox: Outbox) -> list[OutboxEntry]:
    """Return the messages that a person may approve now, the latest first."""
    return [one for one in outbox.entries() if _may_be_approved(one)]


def _may_be_approved(entry: OutboxEntry) -> bool:
    try:
        check_approval(entry)
    except RequestError:
        return False
    return True


def row(entry: OutboxEntry) -> dict[str, Any]:
    """Return a message without its text, as JSON values."""
    return {
        "number": entry.number,
        "state": entry.state,
        "note": entry.note,
        "kind": entry.key.kind,
        "about": entry.key.about,
        "workload": entry.key.workload or None,
        "to": entry.key.audience,
        "recipients": list(entry.message.recipients),
        "subject": entry.message.subject,
        "bisection": entry.bisection or None,
        "created": entry.created,
        "changed": entry.changed,
        "by": entry.by,
        "attempts": entry.attempts,
        "accepted": list(entry.accepted),
        "refused": dict(entry.refused),
    }


def without_secrets(values: dict[str, Any]) -> dict[str, Any]:
    """Return a row for those who may not send: of a webhook they see the host only.

    The path of such an address is often a secret that lets its holder post there.
    """
    found = {
        **values,
        "to": host_only(values["to"]),
        "recipients": [host_only(one) for one in values["recipients"]],
        "accepted": [host_only(one) for one in values["accepted"]],
        "refused": {host_only(one): why for one, why in values["refused"].items()},
    }
    if "text" in values:
        found["text"] = values["text"].replace(values["to"], found["to"])
    return found


def host_only(target: str) -> str:
    """Return the address of a webhook without its path, and any other target as it is."""
    is_webhook = target.lower().startswith(("https://", "http://"))  # 'HTTPS://' is taken, too
    parts = urlsplit(target) if is_webhook else None
    return target if parts is None else f"{parts.scheme}://{parts.hostname}"


def whole(wiring: Wiring, entry: OutboxEntry) -> str:
    """Return a message as it would go out: a mail with its headers, a webhook's body."""
    if entry.channel == "webhook":
        return f"POST {entry.key.audience}\n\n{entry.message.text}\n"
    settings = wiring.settings.mail
    sender = settings.sender if settings is not None else "perfbisect@localhost"
    return _as_text(mail_of(entry, sender))


def mail_draft(wiring: Wiring, identity: str | None) -> tuple[list[str], list[str]]:
    """Return the mail to maintainers for each culprit of a bisection, in mbox form, and why not to send it.

    `git send-email` takes each: it puts the date in, and asks. It is from the person whom git knows: from
    anybody else git writes another 'From:' above the text. Raises RequestError: no culprit, or one that is
    no commit.
    """
    material = load_material(wiring, identity)
    findings = culprits_of(material)
    if not findings:
        raise RequestError(
            f"the bisection '{material.id}' has no certified culprit to write about",
            cure=f"'perfbisect report {material.id}' says what is known{_range_words(material)}",
        )
    if material.goal.unit == "kernel":
        raise RequestError(
            f"the bisection '{material.id}' compared listed kernels: there is no commit to write about",
            cure=f"'perfbisect report {material.id}' says how to find it",
        )
    settings, mails, reasons = wiring.settings.mail, list[str](), list[str]()
    sender = _person(wiring, material)
    if not sender:
        sender = settings.sender if settings is not None else wiring.settings.owner
        reasons.append(f"git knows no user.email of yours: it is from {sender}")
    for finding in findings:
        prepared = prepare_upstream(wiring, material, finding, settings, sender)
        reasons += prepared.reasons
        key = key_of(material, finding)
        # git send-email keeps the Message-ID, to which 'Closes:' may lead.
        text = _as_text(email_message(prepared.message, sender))
        mails.append(f"From {key.about} Mon Sep 17 00:00:00 2001\n{text}")
    return mails, reasons


def _person(wiring: Wiring, material: Material) -> str:
    from bisector.adapters.git.person import person_of

    try:
        return person_of(Path(str(material.request.get("repo") or wiring.repo)).expanduser())
    except PerfbisectError:
        return ""


def _range_words(material: Material) -> str:
    """Return regzbot's line on a set of commits that cannot be told apart; '' where none was found.

    Their authors get no mail, since all but one of them caused nothing.
    """
    conclusion, graph = material.conclusion, material.graph
    found = conclusion.culprits if conclusion is not None and material.goal.find == "regression" else ()
    for finding in [one for one in found if one.certified and len(one.commits) > 1]:
        before = [p for commit in finding.commits for p in graph.parents[commit] if p not in finding.commits]
        if before and material.goal.unit == "commit":
            ends = "..".join(graph.shas[index][:12] for index in (before[0], finding.commits[-1]))
            return f"; in a report of your own, regzbot's line is '#regzbot introduced: {ends}'"
    return ""


def _as_text(mail: EmailMessage) -> str:
    return wire_bytes(mail).decode("utf-8", "replace").replace("\r\n", "\n")

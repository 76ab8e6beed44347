"""The weekly summary of a lab: culprits, alerts, testbeds, hours, messages that wait or did not arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from bisector.model.commit_graph import described
from bisector.model.format import count
from bisector.model.outbox import UNDELIVERED, OutboxEntry
from bisector.model.stored_bisection import workload_name
from bisector.report import phrases
from bisector.report.mail import culprit_mails
from bisector.report.mail.paragraphs import MAIL_WIDTH
from bisector.report.row_words.alert_words import change_words

if TYPE_CHECKING:
    from bisector.model.alerts import Alert
    from bisector.model.decisions import Finding
    from bisector.report.report_model import Material

_MAX_LINES = 30
"""Of a section: a mail is read, a list is looked up ('perfbisect alert list')."""


@dataclass(frozen=True, slots=True)
class Week:
    """What happened in a week. name: '2026-W47'.

    hours: machine hours of the last seven days, which are all that is kept, by who began the work.
    """

    name: str
    alerts: Sequence[str] = ()
    culprits: Sequence[str] = ()
    testbeds: Sequence[str] = ()
    hours: Mapping[str, float] = field(default_factory=dict)
    waiting: Sequence[OutboxEntry] = ()
    undelivered: Sequence[OutboxEntry] = ()


def subject(week: Week) -> str:
    """Return the subject."""
    return (
        f"Week {week.name}: {count(len(week.culprits), 'culprit')}, {count(len(week.alerts), 'open alert')}, "
        f"{count(len(week.testbeds), 'testbed')} out of use"
    )


def render(week: Week) -> str:
    """Return the text."""
    hours = [f"{who}: {used:.1f} h" for who, used in sorted(week.hours.items(), key=lambda x: -x[1])]
    out: list[str] = []
    for title, lines in (
        ("Culprits of the week", week.culprits),
        ("Open alerts", week.alerts),
        ("Testbeds out of use", week.testbeds),
        ("Machine hours of the last seven days", hours),
        ("Messages that wait for approval", [waiting(one) for one in week.waiting]),
        ("Messages that were not delivered", [undelivered(one) for one in week.undelivered]),
    ):
        out += [
            *phrases.heading(title),
            *(phrases.bullets(lines[:_MAX_LINES], width=MAIL_WIDTH) or ["  none"]),
        ]
        if len(lines) > _MAX_LINES:
            out.append(f"  and {len(lines) - _MAX_LINES} more")
    return phrases.page(out[1:])


def culprit_line(material: Material, finding: Finding, address: str) -> str:
    """Return what a bisection has proven. address: of its report."""
    culprit, size = material.label(finding.commits[-1]), culprit_mails.size_in_words(material, finding)
    return f"{culprit}: {culprit_mails.workload_of(material)} {size}, {address}"


def alert_line(alert: Alert, address: str) -> str:
    """Return where a level moved and what became of that. address: of the alert's page, '' for none."""
    row = {"direction": alert.direction, "unit": alert.unit, "effect": asdict(alert.effect)}
    words = [f"{workload_name(alert.workload)} on {alert.testbed}: {change_words(row)}"]
    if alert.state != "culprit" or not alert.culprits:
        words.append(alert.state)
    if alert.culprits:
        first = described(alert.culprits[0], alert.subject)
        more = len(alert.culprits) > 1  # several culprits, or a set that cannot be told apart
        words.append(f"culprit among {first} and others" if more else f"culprit {first}")
    if alert.assignee:
        words.append(f"{alert.assignee} looks after it")
    words += [f"open since {phrases.date(alert.created)}", address or f"alert {alert.id}"]
    return ", ".join(words)


def waiting(entry: OutboxEntry) -> str:
    """Return which message waits for a person's approval, since when, and how it is looked at."""
    words = f'message {entry.number}, to {entry.key.audience}, "{entry.message.subject}"'
    words += f", since {phrases.date(entry.changed)}{f': {entry.note}' if entry.note else ''}"
    return f"{words}; 'perfbisect mail preview {entry.number}' shows it"


def undelivered(entry: OutboxEntry) -> str:
    """Return what became of a message that somebody must look at."""
    why = entry.note or "; ".join(f"{who}: {words}" for who, words in entry.refused.items())
    about = entry.message.subject or entry.key.about
    reason = why or "no reason is known"
    return f'message {entry.number} ({entry.state}), to {entry.key.audience}, "{about}": {reason}'


def must_be_looked_at(entry: OutboxEntry, since: float) -> bool:
    """Return whether a message was not delivered, or since a time not to all its recipients.

    What has reached some of them is told once: nobody has to decide anything about it.
    """
    return entry.state in UNDELIVERED or (
        entry.state == "sent" and bool(entry.refused) and entry.changed >= since
    )

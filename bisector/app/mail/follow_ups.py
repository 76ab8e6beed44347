"""Automatic follow-ups: fixes of reported culprits, the weekly summary, events for the lab's webhook."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.mail.wire_form import identified, in_thread_of
from bisector.app.load_report import load_material
from bisector.app.mail.culprit_offers import (
    BY,
    find_fix,
    key_of,
    offer_upstream,
    page_link,
    prepare_upstream,
    report_link,
)
from bisector.app.mail.delivery import outbox_of
from bisector.app.mail.notices import facts
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError
from bisector.model.commit_graph import is_listed, short_name
from bisector.model.outbox import LAB, Key, Message, OutboxEntry, State
from bisector.model.stored_bisection import Summary, workload_name
from bisector.report.mail import culprit_mails, fix_mails, weekly_summary
from bisector.report.mail.may_send import culprits_of, may_send

if TYPE_CHECKING:
    from bisector.adapters.git.upstream_fix import UpstreamFix
    from bisector.model.decisions import Finding
    from bisector.ports import CommitInfo
    from bisector.report.report_model import Material

_DAY_SECONDS = 86400.0
_WEEK_SECONDS = 7 * _DAY_SECONDS
FOLLOWED_SECONDS = 365 * _DAY_SECONDS
"""How long fixes of a reported culprit are looked for. Chosen: after a year all who care know of it."""


def offer_event(wiring: Wiring, material: Material) -> OutboxEntry | None:
    """Put the event of a bisection that has concluded into the outbox, for the lab's webhook."""
    hook = wiring.settings.webhook
    if hook is None or hook.url is None or material.conclusion is None:
        return None
    key = Key(material.id, culprit_mails.workload_of(material), "event", hook.url)
    message = Message((hook.url,), "bisection.ended", json.dumps(facts(material), ensure_ascii=False))
    return outbox_of(wiring).put(key, "webhook", message, "approved", by=BY, bisection=material.id)


def offer_fixes(wiring: Wiring) -> list[OutboxEntry]:
    """Put a follow-up into the outbox for each sent report whose culprit a later commit names."""
    if wiring.settings.mail is None:
        return []
    outbox, now, made = outbox_of(wiring), wiring.clock.now(), list[OutboxEntry | None]()
    for entry in outbox.entries(["sent"]):
        if entry.key.kind != "regression" or now - entry.created > FOLLOWED_SECONDS:
            continue
        if is_listed(entry.key.about) or outbox.find(replace(entry.key, kind="fixed")) is not None:
            continue
        try:
            material = load_material(wiring, entry.bisection)
        except PerfbisectError:  # it was removed
            continue
        repo = Path(str(material.request.get("repo") or wiring.repo))
        fix = find_fix(repo, entry.key.about)
        if fix is not None:
            made += [
                _offer_fix(wiring, entry, material, finding, fix, _back_since(wiring, entry.key, repo, fix))
                for finding in culprits_of(material)
                if material.graph.shas[finding.commits[-1]] == entry.key.about
            ]
    return [one for one in made if one is not None]


def look_at_drafts(wiring: Wiring) -> list[OutboxEntry]:
    """Prepare drafts of reports again: what spoke against sending, such as a suspect testbed, may be over.

    Drafts that must not be sent for what is in the report itself stay as they are.
    """
    settings, made = wiring.settings.mail, list[OutboxEntry | None]()
    if settings is None:
        return []
    for entry in outbox_of(wiring).entries(["draft"]):
        if entry.key.kind != "regression":
            continue
        try:
            material = load_material(wiring, entry.bisection)
        except PerfbisectError:  # it was removed, or cannot be read now
            continue
        for finding in culprits_of(material):
            if key_of(material, finding) == entry.key and not may_send(material, finding, suspect={}):
                prepared = prepare_upstream(wiring, material, finding, settings, settings.sender)
                changed = offer_upstream(wiring, material, finding, prepared)
                made.append(changed)
                if changed is not None and changed.state == "waiting":
                    made.append(_tell_lab(wiring, material, finding, changed))
    return [one for one in made if one is not None]


def _tell_lab(
    wiring: Wiring, material: Material, finding: Finding, waiting: OutboxEntry
) -> OutboxEntry | None:
    """Mail the lab that a former draft waits for approval; None: the lab knows, or wants no mail."""
    settings = wiring.settings.mail
    if settings is None or not settings.lab:
        return None
    report = outbox_of(wiring).find(replace(waiting.key, audience=LAB))
    threading = {} if report is None else in_thread_of(report, settings.sender)
    subject = f"Re: {culprit_mails.lab_subject(material, finding)}"
    text = culprit_mails.ready_text(material, finding, waiting.number)
    key = replace(waiting.key, audience=LAB, kind="ready")
    message = identified(Message(settings.lab, subject, text, threading), key, settings.sender)
    return outbox_of(wiring).put(key, "mail", message, "approved", by=BY, bisection=material.id)


def _offer_fix(
    wiring: Wiring,
    entry: OutboxEntry,
    material: Material,
    finding: Finding,
    fix: UpstreamFix,
    back: CommitInfo | None,
) -> OutboxEntry | None:
    """Put the follow-up of one report into the outbox; None: it is there. back: see `_back_since`."""
    assert wiring.settings.mail is not None, "without mail nothing is followed up"
    sender = wiring.settings.mail.sender
    text = fix_mails.fixed_text(
        material,
        finding,
        fix=fix.commit,
        fix_subject=fix.subject,
        is_revert=fix.is_revert,
        back_since="" if back is None else back.sha,
        back_subject="" if back is None else back.subject,
    )
    key = replace(entry.key, kind="fixed" if fix.is_revert or back is not None else "named")
    message = Message(entry.accepted, f"Re: {entry.message.subject}", text, in_thread_of(entry, sender))
    message = identified(message, key, sender)
    state: State = "approved" if entry.key.audience == LAB else "waiting"
    return outbox_of(wiring).put(key, "mail", message, state, by=BY, bisection=entry.bisection)


def _back_since(wiring: Wiring, key: Key, repo: Path, fix: UpstreamFix) -> CommitInfo | None:
    """Return the commit, with the fix in it, since which a culprit's alert is measured as back, if any.

    Not where the loss was still measured with the fix in place: then something else brought the level back.
    """
    from bisector.adapters.git.upstream_fix import has_commit
    from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
    from bisector.model.alerts import AlertFilter

    alerts, folder = SqlAlerts(wiring.database), repo.expanduser()
    for alert in alerts.find(AlertFilter(states=("fixed",))):
        same = key.about in alert.culprits and workload_name(alert.workload) == key.workload
        try:
            if not same or not alert.back_since:
                continue
            of_series = alerts.find(AlertFilter(series=alert.series))
            still_lost = [one.last_good for one in of_series if one.first_bad == alert.back_since]
            came_with_it = has_commit(folder, alert.back_since, fix.commit)
            if came_with_it and not any(has_commit(folder, tip, fix.commit) for tip in still_lost):
                (back,) = wiring.source(str(repo)).infos([alert.back_since])
                return back
        except PerfbisectError:  # one of the commits is no longer in the repository
            continue
    return None


def offer_week(wiring: Wiring) -> OutboxEntry | None:
    """Put the summary of the week before into the outbox, once; None: it is there, or not wanted."""
    settings = wiring.settings.mail
    if settings is None or not settings.weekly or not settings.lab:
        return None
    outbox, now = outbox_of(wiring), wiring.coordinator.now()
    year, number, _ = datetime.datetime.fromtimestamp(now - _WEEK_SECONDS, datetime.UTC).isocalendar()
    name = f"{year}-W{number:02d}"
    key = Key(name, "", "weekly", LAB)
    if outbox.find(key) is not None:
        return None
    monday = datetime.datetime.fromisocalendar(year, number, 1).replace(tzinfo=datetime.UTC).timestamp()
    week = collect_week(wiring, name, monday)
    message = Message(settings.lab, weekly_summary.subject(week), weekly_summary.render(week))
    message = identified(message, key, settings.sender)
    return outbox.put(key, "mail", message, "approved", by=BY)


def collect_week(wiring: Wiring, name: str, start: float) -> weekly_summary.Week:
    """Return what a summary reports. start: seconds since the epoch when the week began."""
    from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
    from bisector.model.alerts import AlertFilter

    alerts = SqlAlerts(wiring.database).find(AlertFilter(open=True))
    ended = [s for s in wiring.store.list(statuses=["done"], since=start) if s.ended_here]
    done = [s for s in ended if s.changed < start + _WEEK_SECONDS]
    owners = sorted({s.owner for s in wiring.store.list() if s.changed >= start and s.owner})
    hours = {who: sum(wiring.coordinator.machine_time(who).values()) / 3600 for who in owners}
    return weekly_summary.Week(
        name,
        alerts=[weekly_summary.alert_line(one, page_link(wiring, f"alerts/{one.id}")) for one in alerts],
        culprits=[line for s in done if s.culprits for line in _culprit_lines(wiring, s)],
        testbeds=[
            f"{t.name} ({t.state}): {t.reason}" for t in wiring.coordinator.testbeds() if t.state != "good"
        ],
        hours={who: used for who, used in hours.items() if used > 0},
        waiting=outbox_of(wiring).entries(["waiting"]),
        undelivered=[e for e in outbox_of(wiring).entries() if weekly_summary.must_be_looked_at(e, start)],
    )


def _culprit_lines(wiring: Wiring, ended: Summary) -> list[str]:
    """Return what a bisection has proven, a line each; its ids where its report cannot be read."""
    try:
        material = load_material(wiring, ended.id)
    except PerfbisectError:  # it was removed meanwhile
        return [f"{short_name(sha)}: {ended.workload}, bisection {ended.id}" for sha in ended.culprits]
    address = report_link(wiring, ended.id)
    return [weekly_summary.culprit_line(material, finding, address) for finding in culprits_of(material)]

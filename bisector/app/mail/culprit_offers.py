"""Reports about proven culprits, put into the outbox: to the lab, and a draft to those who keep the code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.git.branch_tips import BranchTips
from bisector.adapters.mail.recipients import Recipients
from bisector.adapters.mail.wire_form import identified, message_id
from bisector.app.mail.delivery import outbox_of
from bisector.app.mail.same_culprit import other_effects
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError
from bisector.model.outbox import LAB, MAINTAINERS, Key, Message, OutboxEntry, State
from bisector.model.series import owner_of, series_of
from bisector.report.mail import culprit_mails, effects_table, fix_mails
from bisector.report.mail.may_send import culprits_of, may_send
from bisector.resources import resource

if TYPE_CHECKING:
    from bisector.adapters.git.upstream_fix import UpstreamFix
    from bisector.model.decisions import Finding
    from bisector.report.report_model import Material
    from bisector.schemas.mail_settings import MailSettings

BY = "perfbisect"
"""Who put a message into the outbox, where no person did."""
_ARCHIVE = "https://lore.kernel.org/all"
"""Where mails to kernel lists are found by their Message-ID."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A mail to maintainers. against: why it must not be sent; doubts: for a person to judge."""

    message: Message
    against: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """All that speaks against sending it."""
        return (*self.against, *self.doubts)


def offer_reports(wiring: Wiring, material: Material) -> list[OutboxEntry]:
    """Put the reports of a bisection's culprits into the outbox; those that are there already stay."""
    settings = wiring.settings.mail
    if settings is None:
        return []
    outbox, made = outbox_of(wiring), list[OutboxEntry | None]()
    for finding in culprits_of(material):
        state, reasons = None, tuple[str, ...]()
        if material.goal.unit == "commit":  # a listed kernel has no maintainers
            prepared = prepare_upstream(wiring, material, finding, settings, settings.sender)
            made.append(offer_upstream(wiring, material, finding, prepared))
            state, reasons = state_of(wiring, material, prepared), prepared.reasons
        if settings.lab:
            subject = culprit_mails.lab_subject(material, finding)
            others = other_effects(wiring, material, finding, suspect=suspect_testbeds(wiring))
            text = culprit_mails.lab_text(
                material,
                report_link(wiring, material.id),
                state,
                reasons,
                [*effects_table.render(others, lab=True), *alert_lines(wiring, material.id)],
            )
            own = replace(key_of(material, finding), audience=LAB)
            lab = identified(Message(settings.lab, subject, text), own, settings.sender)
            made.append(outbox.put(own, "mail", lab, "approved", by=BY, bisection=material.id))
    return [one for one in made if one is not None]


def offer_upstream(
    wiring: Wiring, material: Material, finding: Finding, prepared: Prepared
) -> OutboxEntry | None:
    """Put the mail to maintainers into the outbox; None: it is no longer a draft, or has not changed."""
    outbox, key = outbox_of(wiring), key_of(material, finding)
    state, note, kept = state_of(wiring, material, prepared), "; ".join(prepared.reasons), outbox.find(key)
    if kept is not None and (kept.state, kept.note, kept.message) == (state, note, prepared.message):
        return None
    return outbox.put(key, "mail", prepared.message, state, by=BY, note=note, bisection=material.id)


def state_of(wiring: Wiring, material: Material, prepared: Prepared) -> State:
    """Return the state that a mail to maintainers begins with."""
    if prepared.against:
        return "draft"
    return "waiting" if prepared.doubts or not is_public(wiring, material.id) else "approved"


def key_of(material: Material, finding: Finding) -> Key:
    """Return the key of the mail to maintainers about a culprit."""
    sha = material.graph.shas[finding.commits[-1]]
    return Key(sha, culprit_mails.workload_of(material), "regression", MAINTAINERS)


def prepare_upstream(
    wiring: Wiring,
    material: Material,
    finding: Finding,
    settings: MailSettings | None,
    sender: str,
) -> Prepared:
    """Return the mail to author, maintainers and lists, and what speaks against it.

    sender: who reports it: the lab, or the person who sends a draft.
    """
    key = key_of(material, finding)
    repo = Path(str(material.request.get("repo") or wiring.repo))
    people = recipients(wiring, repo, key.about)
    out = set() if settings is None else {address.lower() for address in settings.opt_out}
    chosen = [one for one in people.addresses if one.rpartition("<")[2].rstrip(">").lower() not in out]
    archived = f"{_ARCHIVE}/{message_id(key, sender).strip('<>')}/"
    link = page_link(wiring, f"bisections/{material.id}") or archived
    fix = find_fix(repo, key.about)
    doubts = [] if fix is None else [fix_mails.later_commit(fix.commit, fix.subject, is_revert=fix.is_revert)]
    notes = [*people.notes, *(f"{doubt[:1].upper()}{doubt[1:]}." for doubt in doubts)]
    remote, branch = branch_of(wiring, material, repo)
    url = find_url(repo, remote, key.about)
    suspect = suspect_testbeds(wiring)
    text = culprit_mails.upstream_text(
        material,
        finding,
        reporter=sender,
        link=link,
        notes=notes,
        branch=branch,
        url=url,
        others=effects_table.render(other_effects(wiring, material, finding, suspect=suspect)),
    )
    against = may_send(material, finding, suspect=suspect)
    if fix is not None and fix.is_revert:
        # A revert certainly removes the culprit. A 'Fixes:' commit may fix something else: a person decides.
        against += doubts
        doubts = []
    if not chosen:
        against.append("nobody is known who could get it")
    message = Message(tuple(chosen), culprit_mails.upstream_subject(material, finding, branch), text)
    return Prepared(identified(message, key, sender), tuple(against), tuple(doubts))


def recipients(wiring: Wiring, repo: Path, sha: str) -> Recipients:
    """Return who a commit's report goes to; with a note where the repository cannot be asked."""
    from bisector.adapters.git.fetching import fetch_commits
    from bisector.adapters.mail.maintainers import find_recipients

    sandbox = resource("playbooks") / "files" / "sandbox.sh"
    try:
        fetch_commits(repo.expanduser(), [sha])  # another worker may have bisected a branch that it fetched
        return find_recipients(repo.expanduser(), sha, sandbox.read_text(encoding="utf-8"))
    except PerfbisectError as error:
        return Recipients((), (f"Author and maintainers are not known: {error.message}.",))


def find_fix(repo: Path, sha: str) -> UpstreamFix | None:
    """Return a later commit that reverts another or names it in 'Fixes:'; None, too, where git fails."""
    from bisector.adapters.git.upstream_fix import find_upstream_fix

    try:
        return find_upstream_fix(repo.expanduser(), sha)
    except PerfbisectError:
        return None


def suspect_testbeds(wiring: Wiring) -> dict[str, str]:
    """Return the testbeds that a report must not rest on now, with why."""
    return {
        one.name: one.reason or one.state for one in wiring.coordinator.testbeds() if one.state == "suspect"
    }


def is_public(wiring: Wiring, bisection: str) -> bool:
    """Return whether a bisection is one of a series that the settings name as public.

    Its owner decides that: an alert of a public series may share the bisection of another series.
    """
    public = wiring.settings.mail.public if wiring.settings.mail is not None else ()
    return wiring.store.load(bisection).owner in {owner_of(series) for series in public}


def branch_of(wiring: Wiring, material: Material, repo: Path) -> tuple[str, str]:
    """Return the remote and the branch that a series measures, or of the newer end; '' for what is unknown.

    Tags that a series measures have no branch.
    """
    series, branch = series_of(wiring.store.load(material.id).owner), culprit_mails.newer_end(material)
    try:
        if series:
            known = series_store(wiring).load(series)
            repo, branch = Path(known.repo), known.branch
        tips = BranchTips(repo.expanduser(), branch)
    except PerfbisectError:  # the series was removed, or its repository
        return "", ""
    return tips.remote, tips.name


def find_url(repo: Path, remote: str, sha: str) -> str:
    """Return where others can fetch a commit from; '' where that is not known, too, where git fails."""
    from bisector.adapters.git.public_url import public_url

    try:
        return public_url(repo.expanduser(), remote, sha)
    except PerfbisectError:
        return ""


def alert_lines(wiring: Wiring, bisection: str) -> list[str]:
    """Return lines that name the alerts whose bisection it is, and where each is looked after."""
    from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
    from bisector.model.alerts import AlertFilter

    out = list[str]()
    for alert in SqlAlerts(wiring.database).find(AlertFilter(findings=("bisecting", "culprit"))):
        if alert.bisection == bisection:
            where = page_link(wiring, f"alerts/{alert.id}") or f"'perfbisect alert show {alert.id}'"
            out += [f"Alert of the series {alert.series}, measured on {alert.testbed}:", f"  {where}"]
    return [*out, ""] if out else []


def report_link(wiring: Wiring, bisection: str) -> str:
    """Return the address of a report on the web server, else where it lies here."""
    return page_link(wiring, f"bisections/{bisection}") or str(
        wiring.bisection_folder(bisection) / "report.txt"
    )


def page_link(wiring: Wiring, page: str) -> str:
    """Return the address of a page on the web server that mails link to; '' where the settings have none."""
    settings = wiring.settings.mail
    return "" if settings is None or settings.web is None else f"{settings.web.rstrip('/')}/{page}"

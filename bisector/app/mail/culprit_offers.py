"""Reports about proven culprits, put into the outbox: to the lab, and a draft to those who keep the code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bisector.adapters.mail.recipients import Recipients
from bisector.adapters.mail.wire_form import message_id
from bisector.app.mail.delivery import outbox_of
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError
from bisector.model.outbox import LAB, MAINTAINERS, Entry, Key, Message, State
from bisector.model.series import owner_of
from bisector.report.mail import culprit_mails
from bisector.report.mail.may_send import culprits_of, may_send
from bisector.resources import resource

if TYPE_CHECKING:
    from bisector.model.decisions import Finding
    from bisector.report.report_model import Material
    from bisector.schemas.mail_settings import MailSettings

BY = "perfbisect"
"""Who put a message into the outbox, where no person did."""
_ARCHIVE = "https://lore.kernel.org/all"
"""Where mails to kernel lists are found by their Message-ID."""


def offer_reports(wiring: Wiring, material: Material) -> list[Entry]:
    """Put the reports of a bisection's culprits into the outbox; those that are there already stay."""
    settings = wiring.settings.mail
    if settings is None:
        return []
    outbox, made = outbox_of(wiring), list[Entry | None]()
    for finding in culprits_of(material):
        sha = material.graph.shas[finding.commits[-1]]
        name = culprit_mails.workload_of(material)
        key = Key(sha, name, "regression", MAINTAINERS)
        message, reasons = upstream_message(wiring, material, finding, settings)
        state: State = "draft" if reasons else "approved" if is_public(wiring, material.id) else "waiting"
        kept = outbox.find(key)
        if kept is None or kept.state == "draft":
            note = "; ".join(reasons)
            made.append(outbox.put(key, "mail", message, state, by=BY, note=note, bisection=material.id))
        if settings.lab:
            subject = culprit_mails.lab_subject(material, finding)
            text = culprit_mails.lab_text(material, report_link(wiring, material.id), state, reasons)
            lab = Message(settings.lab, subject, text)
            own = Key(sha, name, "regression", LAB)
            made.append(outbox.put(own, "mail", lab, "approved", by=BY, bisection=material.id))
    return [one for one in made if one is not None]


def upstream_message(
    wiring: Wiring, material: Material, finding: Finding, settings: MailSettings | None
) -> tuple[Message, list[str]]:
    """Return the mail to author, maintainers and lists, and why it must not be sent.

    settings: without them whoever sends it puts the sender in.
    """
    sha = material.graph.shas[finding.commits[-1]]
    repo = Path(str(material.request.get("repo") or wiring.repo))
    sender = settings.sender if settings is not None else wiring.settings.owner
    people = recipients(wiring, repo, sha)
    out = set() if settings is None else {address.lower() for address in settings.opt_out}
    chosen = [one for one in people.addresses if one.rpartition("<")[2].rstrip(">").lower() not in out]
    key = Key(sha, culprit_mails.workload_of(material), "regression", MAINTAINERS)
    link = f"{_ARCHIVE}/{message_id(key, sender).strip('<>')}/"
    if settings is not None and settings.web is not None:
        link = report_link(wiring, material.id)
    text = culprit_mails.upstream_text(material, finding, reporter=sender, link=link, notes=people.notes)
    reasons = may_send(
        material, finding, suspect=suspect_testbeds(wiring), fixed_by=(find_fix(repo, sha) or ("", ""))[0]
    )
    if not chosen:
        reasons.append("nobody is known who could get it")
    return Message(tuple(chosen), culprit_mails.upstream_subject(material, finding), text), reasons


def recipients(wiring: Wiring, repo: Path, sha: str) -> Recipients:
    """Return who a commit's report goes to; with a note where the repository cannot be asked."""
    from bisector.adapters.mail.maintainers import find_recipients

    sandbox = resource("playbooks") / "files" / "sandbox.sh"
    try:
        return find_recipients(repo.expanduser(), sha, sandbox.read_text(encoding="utf-8"))
    except PerfbisectError as error:
        return Recipients((), (f"Author and maintainers are not known: {error.message}.",))


def find_fix(repo: Path, sha: str) -> tuple[str, str] | None:
    """Return the commit that mends another in later history: id and subject; None, too, where git fails."""
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

    It is its owner that tells: alerts of a public series may share the bisection of another one.
    """
    public = wiring.settings.mail.public if wiring.settings.mail is not None else ()
    return wiring.store.load(bisection).owner in {owner_of(series) for series in public}


def report_link(wiring: Wiring, bisection: str) -> str:
    """Return the address of a report on the web server, else where it lies here."""
    settings = wiring.settings.mail
    if settings is not None and settings.web is not None:
        return f"{settings.web.rstrip('/')}/bisections/{bisection}"
    return str(wiring.bisection_folder(bisection) / "report.txt")

"""Notifications of one person: `start --notify mail:me@x|webhook:URL|command:PROGRAM`.

Mails and webhooks lie in the outbox from the start on, as drafts that wait for the end. Whoever executes
bisections sends them, whatever became of the process that began. A command is run by that process alone: it
is a program of the person's, and reaches it from the person's command line only.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bisector.adapters.mail.wire_form import identified
from bisector.app.load_report import load_material
from bisector.app.mail.culprit_offers import report_link
from bisector.app.mail.delivery import has_secret, outbox_of
from bisector.app.wiring import Wiring
from bisector.errors import NotFound, PerfbisectError, RequestError
from bisector.model.outbox import Key, Message, OutboxEntry
from bisector.model.printable import printable_line
from bisector.report import phrases, text
from bisector.report.mail.culprit_mails import size_in_words, whole_report, workload_of
from bisector.report.statements import headline, why_it_rests

if TYPE_CHECKING:
    from bisector.report.report_model import Material

ENDED = ("done", "cancelled", "failed")
"""Statuses that a person is notified of; whoever interrupts a bisection already knows."""
WAITING = "waits for the end of the bisection"
COMMAND_SECONDS = 60.0
"""How long a person's command may take: enough to send something, and `start` must not hang in it."""
_MAX_SHOWN = 200
"""Characters of a wrong notice that the error repeats: chosen, more than an address or URL usually has."""
_CURE = "write mail:me@example.org, webhook:https://HOST/PATH or command:PROGRAM"


@dataclass(frozen=True, slots=True)
class Notice:
    """Who gets it, and how. target: an address, a URL, or a command's words as a shell would write them."""

    kind: Literal["mail", "webhook", "command"]
    target: str


def read_notices(wiring: Wiring, texts: Sequence[str], *, waits: bool) -> list[Notice]:
    """Return what --notify means. waits: whether this process stays until the end.

    Raises RequestError: it cannot be understood, or could not be sent from here.
    """
    return [_read(wiring, one, waits=waits) for one in dict.fromkeys(texts)]


def _read(wiring: Wiring, text: str, *, waits: bool) -> Notice:
    import re

    from bisector.schemas.mail_settings import ADDRESS, SECRET_VARIABLE, webhook_url

    kind, _, target = text.partition(":")
    shown = printable_line(text)[:_MAX_SHOWN]
    if kind == "mail":
        if re.fullmatch(ADDRESS, target) is None:
            raise RequestError(f"--notify {shown}: that is no address", cure=_CURE)
        if wiring.settings.mail is None:
            raise RequestError(
                f"--notify {shown}: there is no mail server in perfbisect.toml",
                cure="docs/how-to/mail.md says what [mail] has",
            )
        return Notice("mail", target)
    if kind == "webhook":
        try:
            webhook_url(target)
        except ValueError as error:
            raise RequestError(f"--notify {shown}: the address {error}", cure=_CURE) from error
        if not has_secret(wiring.settings.webhook):
            raise RequestError(
                f"--notify {shown}: there is no secret to sign it with",
                cure=f"{SECRET_VARIABLE}, or 'secret_file' in [webhook] of perfbisect.toml",
            )
        return Notice("webhook", target)
    if kind == "command":
        if not waits:
            raise RequestError(
                f"--notify {shown}: with --detach nobody is there to run a command at the end",
                cure="leave out --detach, or use mail: or webhook:",
            )
        try:
            words = shlex.split(target)
        except ValueError as error:
            raise RequestError(f"--notify {shown}: {error}", cure=_CURE) from error
        if not words:
            raise RequestError(f"--notify {shown}: it names no program", cure=_CURE)
        return Notice("command", target)
    raise RequestError(f"--notify {shown}: that is not a way to tell somebody", cure=_CURE)


def promise(wiring: Wiring, bisection: str, workload: str, notices: Sequence[Notice]) -> None:
    """Keep drafts in the outbox for those who want to know of a bisection's end."""
    outbox = outbox_of(wiring)
    for one in notices:
        if one.kind != "command":
            key = Key(bisection, workload, "ended", one.target)
            message, by = Message((one.target,), "", ""), wiring.settings.owner
            outbox.put(key, one.kind, message, "draft", by=by, note=WAITING, bisection=bisection)


def tell_ended(wiring: Wiring) -> list[OutboxEntry]:
    """Approve the notices of bisections that have ended or failed, so that they are sent.

    A bisection that cannot be read now holds up no other and is looked at again; raises the first such error.
    """
    outbox, made = outbox_of(wiring), list[OutboxEntry | None]()
    wrong: list[PerfbisectError] = []
    for entry in outbox.entries(["draft"]):
        if entry.key.kind != "ended":
            continue
        try:
            status = wiring.store.status(entry.bisection)
            if status not in ENDED:
                continue
            key = entry.key
            if status == "failed":  # it may be resumed, and end later: the draft stays
                last, _ = wiring.store.trials(entry.bisection)
                key = Key(f"{entry.bisection} after event {last}", key.workload, "failed", key.audience)
            if outbox.find(key) not in (None, entry):
                continue  # before the costly load, since this runs again and again while the draft stays
            material = load_material(wiring, entry.bisection)
        except NotFound:  # it will never end
            outbox.stop(entry.number, "perfbisect", "the bisection was removed")
            continue
        except PerfbisectError as error:  # may be gone at the next look
            wrong.append(error)
            continue
        message = _message(wiring, material, entry)
        if entry.channel == "mail" and wiring.settings.mail is not None:
            message = identified(message, key, wiring.settings.mail.sender)
        made.append(
            outbox.put(key, entry.channel, message, "approved", by=entry.by, bisection=entry.bisection)
        )
    if wrong:
        raise wrong[0]
    return [one for one in made if one is not None]


def facts(material: Material) -> dict[str, object]:
    """Return the facts about an ending that a program is given.

    culprits: what is proven, each commit of a set that cannot be told apart with the effect of the set; none
    of a try, whose patched kernel is no commit that was searched for.
    """
    conclusion = material.conclusion
    found = conclusion.culprits if conclusion is not None and material.attempt is None else ()
    return {
        "event": "bisection.ended" if conclusion is not None else f"bisection.{material.status}",
        "bisection": material.id,
        "status": material.status,
        "ending": conclusion.ending.value if conclusion is not None else None,
        "summary": conclusion.summary if conclusion is not None else why_it_rests(material) or None,
        "workload": workload_of(material),
        "metric": material.goal.metric.name,
        "culprits": [
            {
                "commit": material.graph.shas[index],
                "subject": material.commit(index).subject,
                "effect": finding.effect.estimate,
                "words": size_in_words(material, finding),
            }
            for finding in found
            if finding.certified
            for index in finding.commits
        ],
    }


def _message(wiring: Wiring, material: Material, entry: OutboxEntry) -> Message:
    target = entry.key.audience
    if entry.channel == "webhook":
        told = facts(material)
        return Message((target,), str(told["event"]), json.dumps(told, ensure_ascii=False))
    link = report_link(wiring, material.id)
    lines = [*text.short(material).splitlines(), "", *whole_report(material, link)]
    return Message(
        (target,), f"{material.id}: {headline(material).removeprefix('Result: ')}", phrases.page(lines)
    )


def run_commands(wiring: Wiring, material: Material, notices: Sequence[Notice]) -> list[str]:
    """Run the commands of --notify; return what went wrong, in words.

    They get facts by variables and a JSON file; nothing that a bisection found becomes a word of a command.
    """
    from bisector.adapters.system.command import run_command
    from bisector.adapters.system.files import write_atomically

    wrong = []
    told = facts(material)
    folder = wiring.bisection_folder(material.id)
    for one in notices:
        if one.kind == "command":
            try:
                file = Path(folder) / "notice.json"
                write_atomically(file, json.dumps(told, indent=2) + "\n")
                run_command(shlex.split(one.target), env=_variables(told, file), timeout=COMMAND_SECONDS)
            except (PerfbisectError, OSError) as error:
                wrong.append(f"--notify command:{one.target}: {error}")
    return wrong


def _variables(told: dict[str, object], file: Path) -> dict[str, str]:
    culprits = told["culprits"]
    assert isinstance(culprits, list)
    return {
        "PERFBISECT_NOTICE_FILE": str(file),
        "PERFBISECT_NOTICE_BISECTION": str(told["bisection"]),
        "PERFBISECT_NOTICE_STATUS": str(told["status"]),
        "PERFBISECT_NOTICE_ENDING": str(told["ending"] or ""),
        "PERFBISECT_NOTICE_CULPRITS": " ".join(one["commit"] for one in culprits),
    }

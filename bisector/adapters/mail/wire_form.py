"""A mail as it goes over the wire: plain text in 8 bits, threading headers, names encoded."""

from __future__ import annotations

import email
import hashlib
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING

from bisector.adapters.mail.recipients import read_recipient
from bisector.errors import RequestError
from bisector.model.outbox import MAINTAINERS, Key, Message, OutboxEntry
from bisector.model.printable import printable, printable_header

if TYPE_CHECKING:
    import datetime

_POLICY = SMTP.clone(max_line_length=998)
"""RFC 5322, 2.1.1: no line is longer. A shorter limit would fold what git and people copy from headers."""
MAX_LINE_CHARACTERS = 240
"""Of the text: 998 octets even where every character takes four."""
_IDENTITY = "Message-ID"


def message_id(key: Key, sender: str) -> str:
    """Return a Message-ID for what a key names. Its domain is the sender's: `identified` keeps it."""
    same = "\0".join((key.about, key.workload, key.kind, key.audience))
    digest = hashlib.sha256(same.encode(errors="surrogatepass")).hexdigest()[:32]
    domain = parseaddr(sender)[1].rpartition("@")[2]
    return f"<perfbisect.{digest}@{domain if bare_address(f'x@{domain}') else 'localhost'}>"


def identified(message: Message, key: Key, sender: str) -> Message:
    """Return a message with a Message-ID among its headers; one that it has stays, whoever sends it now."""
    return replace(message, headers={_IDENTITY: message_id(key, sender), **message.headers})


def in_thread_of(entry: OutboxEntry, sender: str) -> dict[str, str]:
    """Return the headers of a mail that follows up another one.

    sender: of mails now. An entry that an older version has written does not say under which id it went out.
    """
    identity = identified(entry.message, entry.key, sender).headers[_IDENTITY]
    return {"In-Reply-To": identity, "References": identity}


def email_message(message: Message, sender: str, date: datetime.datetime | None = None) -> EmailMessage:
    """Return a mail.

    Recipients without an address that SMTP takes are left out: nobody could send it to them.
    """
    mail = EmailMessage(policy=_POLICY)
    mail["From"] = tuple(filter(None, [read_recipient(sender)]))
    if to := tuple(filter(None, map(read_recipient, message.recipients))):
        mail["To"] = to
    mail["Subject"] = printable_header(message.subject)
    if date is not None:
        mail["Date"] = format_datetime(date)
    for name, value in message.headers.items():
        mail[name] = printable_header(value)
    mail.set_content(_short_lines(printable(message.text)), cte="8bit")
    return mail


def mail_of(entry: OutboxEntry, sender: str, date: datetime.datetime | None = None) -> EmailMessage:
    """Return the mail of a message in the outbox.

    What no person has looked at says so, and nobody's absence is answered to it (RFC 3834, 5).
    """
    mail = email_message(identified(entry.message, entry.key, sender), sender, date)
    if entry.key.audience != MAINTAINERS:
        mail["Auto-Submitted"] = "auto-generated"
    return mail


def wire_bytes(mail: EmailMessage) -> bytes:
    """Return a mail with CRLF, as SMTP's DATA takes it but for the dots.

    Raises RequestError: who reads it would find other headers or another text than the mail has.
    `email_message` makes no such mail; this holds also for faults of the email package that nobody knows yet.
    """
    raw = mail.as_bytes(policy=_POLICY)
    head, _, text = raw.partition(b"\r\n\r\n")
    found = email.message_from_bytes(raw)  # a bare CR or LF ends a line here, as it does for many readers
    wanted = mail.get_payload(decode=True)
    sound = isinstance(wanted, bytes) and text == wanted.replace(b"\n", b"\r\n")
    sound = sound and found.keys() == mail.keys() and head.splitlines() == head.split(b"\r\n")
    if not sound or found.defects:
        raise RequestError(
            "a mail's subject, or a name in it, would be read as more headers or as text: "
            f"it would have {', '.join(found.keys())} instead of {', '.join(mail.keys())}",
            details=printable(head.decode("utf-8", "replace")),
            cure="change that subject or name: it may have no line breaks, encoded ones neither",
        )
    return raw


def bare_address(recipient: str) -> str:
    """Return the address of 'A Name <a@x>'; '' where it has none that SMTP takes without extensions."""
    found = read_recipient(recipient)
    return "" if found is None else found.addr_spec


def _short_lines(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    pieces = (
        line[at : at + MAX_LINE_CHARACTERS]
        for line in lines
        for at in range(0, max(len(line), 1), MAX_LINE_CHARACTERS)
    )
    return "\n".join(pieces) + "\n"

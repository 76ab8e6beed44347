"""A mail as it goes over the wire: plain text in 8 bits, threading headers, names encoded."""

from __future__ import annotations

import hashlib
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import TYPE_CHECKING

from bisector.adapters.mail.recipients import read_recipient
from bisector.model.outbox import Key, Message
from bisector.model.printable import printable, printable_line

if TYPE_CHECKING:
    import datetime

_POLICY = SMTP.clone(max_line_length=998)
"""RFC 5322, 2.1.1: no line is longer. A shorter limit would fold what git and people copy from headers."""
MAX_LINE_CHARACTERS = 240
"""Of the text: 998 octets even where every character takes four."""


def message_id(key: Key, sender: str) -> str:
    """Return the Message-ID of what a key names: the same at each attempt, so that threads hold together."""
    same = "\0".join((key.about, key.workload, key.kind, key.audience))
    digest = hashlib.sha256(same.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"<perfbisect.{digest}@{parseaddr(sender)[1].rpartition('@')[2] or 'localhost'}>"


def email_message(
    message: Message, sender: str, identity: str, date: datetime.datetime | None = None
) -> EmailMessage:
    """Return a mail. identity: its Message-ID, '' for a draft that gets one when it is sent.

    Recipients without an address that SMTP takes are left out: nobody could send it to them.
    """
    mail = EmailMessage(policy=_POLICY)
    mail["From"] = tuple(filter(None, [read_recipient(sender)]))
    if to := tuple(filter(None, map(read_recipient, message.recipients))):
        mail["To"] = to
    mail["Subject"] = printable_line(message.subject)
    if date is not None:
        mail["Date"] = format_datetime(date)
    if identity:
        mail["Message-ID"] = identity
    for name, value in message.headers.items():
        mail[name] = printable_line(value)
    mail.set_content(_short_lines(printable(message.text)), cte="8bit")
    return mail


def wire_bytes(mail: EmailMessage) -> bytes:
    """Return a mail with CRLF, as SMTP's DATA takes it but for the dots."""
    return mail.as_bytes(policy=_POLICY)


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

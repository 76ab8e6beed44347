"""The form of a mail on the wire, for names, subjects and texts of any kind."""

from __future__ import annotations

import base64
import email
import random
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from bisector.adapters.mail.wire_form import (
    bare_address,
    email_message,
    identified,
    in_thread_of,
    mail_of,
    message_id,
    wire_bytes,
)
from bisector.errors import RequestError
from bisector.model.outbox import LAB, MAINTAINERS, Key, Message, OutboxEntry

KEY = Key("c" * 40, "pipe-test", "regression", "lab")


def wire(text: str = "text\n", subject: str = "s", *to: str, **headers: str) -> bytes:
    return wire_bytes(email_message(Message(to or ("a@x.org",), subject, text, headers), "Lab <l@y.org>"))


def test_headers_are_ascii_and_the_text_is_utf8_of_8_bits() -> None:
    raw = wire("größer ± 2%\n", "größer", '"Müller, Zoë" <z@x.org>', "List <l@x.org>")
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.isascii() and body == "größer ± 2%\r\n".encode()
    assert b"Content-Transfer-Encoding: 8bit" in head and b'Content-Type: text/plain; charset="utf-8"' in head
    mail = email.message_from_bytes(raw, policy=SMTP)
    assert mail["Subject"] == "größer"
    assert [(a.display_name, a.addr_spec) for a in mail["To"].addresses] == [
        ("Müller, Zoë", "z@x.org"),
        ("List", "l@x.org"),
    ]


@pytest.mark.parametrize(("audience", "said"), [(LAB, True), ("ann@x.org", True), (MAINTAINERS, False)])
def test_mails_that_no_person_has_looked_at_say_so(audience: str, said: bool) -> None:
    key = Key("2026-W47", "", "weekly", audience)
    mail = mail_of(
        OutboxEntry(1, key, "mail", Message(("a@x.org",), "s", "t"), "sending", "", 0, 0, ""), "l@y.org"
    )
    assert mail["Message-ID"] == message_id(key, "l@y.org")
    assert mail["Auto-Submitted"] == ("auto-generated" if said else None)
    assert b"\r\nAuto-Submitted:" in wire_bytes(mail) or not said


def test_a_mail_keeps_its_message_id_and_its_thread_when_the_lab_moves() -> None:
    message = identified(Message(("a@x.org",), "s", "t"), KEY, "l@old.org")
    entry = OutboxEntry(1, KEY, "mail", message, "sent", "", 0, 0, "")
    identity = message_id(KEY, "l@old.org")
    assert mail_of(entry, "l@new.org")["Message-ID"] == identity
    assert in_thread_of(entry, "l@new.org") == {"In-Reply-To": identity, "References": identity}


def test_a_mail_of_an_older_version_has_the_message_id_that_it_had_there() -> None:
    entry = OutboxEntry(1, KEY, "mail", Message(("a@x.org",), "s", "t"), "sent", "", 0, 0, "")
    identity = message_id(KEY, "l@y.org")
    assert mail_of(entry, "l@y.org")["Message-ID"] == identity
    assert in_thread_of(entry, "l@y.org")["In-Reply-To"] == identity


def base64_word(text: str) -> str:
    return f"=?utf-8?b?{base64.b64encode(text.encode()).decode()}?="


ENCODED = [
    "=?utf-8?q?x=0D=0ABcc:_evil@x.org=0D=0A=0D=0Abody?=",
    "=?utf-8?q?x=0ABcc:evil@x.org=0A=0A?=",
    "=?us-ascii*en?Q?x=0DBcc:_evil@x.org?=",
    base64_word("x\r\nBcc: evil@x.org\r\n\r\nbody"),
    base64_word("x\nBcc: evil@x.org\n\n"),
]
"""RFC 2047: what these stand for has ends of lines, as it is written it has none."""


@pytest.mark.parametrize(
    "evil",
    ["x\r\nBcc: evil@x.org", "x\nBcc: evil@x.org", "x\x00\x1b[31m", "x\u2028Bcc: e@x", *ENCODED],
)
def test_no_text_from_elsewhere_makes_a_header(evil: str) -> None:
    raw = wire("t\n", evil, f'"{evil}" <a@x.org>', References=evil)
    mail = email.message_from_bytes(raw, policy=SMTP)
    assert mail["Bcc"] is None and mail.get_content() == "t\r\n"
    assert b"\x1b" not in raw and b"\x00" not in raw


@pytest.mark.parametrize("evil", [*ENCODED, "=?utf-8?q?a?="])
def test_an_encoded_word_is_shown_as_it_was_written(evil: str) -> None:
    mail = email.message_from_bytes(wire("t\n", evil, f"{evil} <a@x.org>"), policy=SMTP)
    shown = evil.replace("=?", "=\\x3f")
    assert mail["Subject"] == shown and mail["To"].addresses[0].display_name == shown


@pytest.mark.parametrize("header", ["Subject", "In-Reply-To", "X-Any", "From", "Cc"])
@pytest.mark.parametrize("evil", ENCODED)
def test_a_mail_that_would_be_read_otherwise_is_refused(header: str, evil: str) -> None:
    """Made without `email_message`: what the email package decodes is found after it has written it."""
    mail = EmailMessage(policy=SMTP.clone(max_line_length=998))
    mail[header] = (Address(evil, addr_spec="a@x.org"),) if header in ("From", "Cc") else evil
    mail.set_content("text\n", cte="8bit")
    with pytest.raises(RequestError, match=f"instead of {header}, "):
        wire_bytes(mail)


@pytest.mark.parametrize(
    "decoded", ["x\r\nBcc: evil@x.org", "x\n folded by a bare LF", "x\r\n\r\nbefore the text"]
)
def test_each_way_of_being_read_otherwise_is_found(decoded: str) -> None:
    """By its headers alone, by its ends of lines alone, by its text alone."""
    mail = EmailMessage(policy=SMTP.clone(max_line_length=998))
    mail.set_content("text\n", cte="8bit")
    mail["Subject"] = base64_word(decoded)
    with pytest.raises(RequestError, match="instead of Content-Type, "):
        wire_bytes(mail)


def test_lines_are_short_enough_for_any_server_and_blanks_at_their_ends_go() -> None:
    raw = wire("x" * 3000 + "\n" + "𝔵" * 600 + "\nend  \n")
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert b"\nend\r\n" in raw and "𝔵".encode() * 240 + b"\r\n" in raw
    long_subject = wire("t", "s" * 400)
    assert b"Subject: " + b"s" * 400 + b"\r\n" in long_subject, "not folded, for it is copied"


def test_a_key_has_one_message_id_and_no_other_has_it() -> None:
    keys = [KEY, Key("d", "pipe-test", "regression", "lab"), Key("c" * 40, "pipe-test", "fixed", "lab")]
    ids = [message_id(key, "Lab <l@y.org>") for key in keys]
    assert len(set(ids)) == 3 and ids[0] == message_id(KEY, "l@y.org") and ids[0].endswith("@y.org>")


@pytest.mark.parametrize(
    ("recipient", "address"),
    [
        ("A <a@x.org>", "a@x.org"),
        ("a@x.org", "a@x.org"),
        ("nobody", ""),
        ("ü@x.org", ""),
        ("a@x, b@x", ""),
        ("", ""),
        ("a b@x", ""),
        ("A, B <A@x.org>", "A@x.org"),
        ("B <.b@y.org>", ""),
        ("a..b@x.org", ""),
        ("a.@x.org", ""),
    ],
)
def test_addresses_that_smtp_takes(recipient: str, address: str) -> None:
    assert bare_address(recipient) == address


def test_no_recipient_makes_a_mail_fail() -> None:
    """Of pieces that addresses and headers are made of, put together in any order."""
    pieces = [*'a@.<>," ([\\\n\udc80', "x.org", "..", "ü", "=?utf-8?q?a?="]
    chosen = random.Random(1)
    for _ in range(300):
        text = "".join(chosen.choices(pieces, k=chosen.randint(0, 9)))
        for recipient in (text, f"{text} <a@x.org>", f"B <{text}>"):
            raw = wire("t", "s", recipient)
            mail = email.message_from_bytes(raw, policy=SMTP)
            shown = [one.addr_spec for one in mail["To"].addresses] if mail["To"] else []
            assert shown == [one for one in [bare_address(recipient)] if one], repr(recipient)


def test_no_piece_of_foreign_text_changes_the_headers_of_a_mail() -> None:
    """Encoded words in subject, names, sender, Cc and threading, between pieces that may complete them."""
    pieces = [*ENCODED, *'a@.<>," ([\\\n\r\udc80?=', "=?", "?=", "=0A", "=0D=0A", "ü" * 99, " ", "utf-8?q?"]
    chosen = random.Random(2)
    names = ["From", "To", "Subject", "Message-ID", "In-Reply-To", "X-Any", "Cc"]
    for _ in range(300):
        text, other = ("".join(chosen.choices(pieces, k=chosen.randint(0, 5))) for _ in range(2))
        more = {"In-Reply-To": f"<{other}>", "X-Any": text, "Cc": f'"A" <a@{chosen.choice(ENCODED)}>'}
        sender = chosen.choice([f"{other} <l@y.org>", f"{text}@y.org", f"l@{other}"])
        message = Message((f"{text} <a@x.org>",), other + text, "text\n", more)
        raw = wire_bytes(email_message(identified(message, KEY, sender), sender))
        mail = email.message_from_bytes(raw)
        assert mail.keys()[: len(names)] == names, (text, other)
        assert len(mail.keys()) == len(names) + 3 and mail.get_payload() == "text\r\n"
        assert "=?" not in bare_address(sender)

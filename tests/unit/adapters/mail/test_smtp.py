"""Mails through a real SMTP server on loopback, and through what goes wrong with one."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme

from bisector.adapters.mail import smtp, wire_form
from bisector.adapters.mail.smtp import SmtpDeliverer
from bisector.model.outbox import Delivery, Key, Message, OutboxEntry
from bisector.schemas.mail_settings import MailSettings
from tests.support.servers.mail_server import Sink, mail_server, text_of

KEY = Key("c" * 40, "pipe-test", "regression", "lab")
A, B = "Zoë Ångström <a@x.org>", "b@x.org"
ENTRY = OutboxEntry(
    1, KEY, "mail", Message((A, B), "schläft: slower", "Hallo Zoë,\n.\n..dots\n"), "sending", "", 0, 0, ""
)


@pytest.fixture
def sink() -> Iterator[Sink]:
    with mail_server() as server:
        yield server


def settings(port: int, **more: Any) -> MailSettings:
    values = {"host": "127.0.0.1", "port": port, "security": "none", "from": "Lab <lab@y.org>"}
    return MailSettings.model_validate(values | more)


def deliver(
    port: int,
    entry: OutboxEntry = ENTRY,
    *,
    password: str = "",
    seconds: float = 30.0,
    delivery_seconds: float = 300.0,
    **more: Any,
) -> Delivery:
    sender = SmtpDeliverer(
        settings(port, **more), lambda: password, answer_seconds=seconds, delivery_seconds=delivery_seconds
    )
    return sender.deliver(entry, lambda: True)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def server_tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))


def test_a_mail_arrives_as_it_was_written(sink: Sink) -> None:
    assert deliver(sink.port) == Delivery((A, B))
    (mail,) = sink.mails
    assert text_of(mail).replace("\r\n", "\n") == ENTRY.message.text
    assert (mail["From"], mail["To"]) == ("Lab <lab@y.org>", f"{A}, {B}")
    assert mail["Subject"] == "schläft: slower" and mail["Date"] and mail["Message-ID"].endswith("@y.org>")
    assert (mail.get_content_type(), mail["Content-Transfer-Encoding"]) == ("text/plain", "8bit")
    assert b"Hallo Zo\xc3\xab,\r\n" in sink.arrived[0] and "Zoë".encode() not in sink.arrived[0][:300]
    assert sink.recipients == [["a@x.org", "b@x.org"]]


def test_a_mail_with_other_headers_than_it_should_have_is_refused_for_good(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_form, "printable_header", str)
    evil = replace(ENTRY.message, subject="=?utf-8?q?a=0ABcc:_v@x.org?=")
    done = deliver(sink.port, replace(ENTRY, message=evil))
    assert set(done.refused) == {A, B} and "Bcc" in done.refused[A] and not sink.mails


def test_only_who_has_it_not_yet_gets_it(sink: Sink) -> None:
    entry = replace(ENTRY, accepted=(A,))
    assert deliver(sink.port, entry) == Delivery((B,))
    assert sink.recipients == [["b@x.org"]]


def test_who_opted_out_and_who_has_no_address_get_nothing(sink: Sink) -> None:
    entry = replace(ENTRY, message=replace(ENTRY.message, recipients=(A, B, "ü@x.org", "nobody")))
    done = deliver(sink.port, entry, opt_out=["B@x.org"])
    assert done.accepted == (A,)
    assert done.refused == {
        B: "has opted out",
        "ü@x.org": "no address that SMTP takes",
        "nobody": "no address that SMTP takes",
    }
    assert deliver(sink.port, replace(entry, accepted=(A,)), opt_out=["b@x.org"]).accepted == ()
    large = replace(ENTRY, message=replace(ENTRY.message, recipients=("Bob <B@X.org>",)))
    assert deliver(sink.port, large, opt_out=["b@x.org"]).refused == {"Bob <B@X.org>": "has opted out"}
    assert len(sink.arrived) == 1


@pytest.mark.parametrize("sloppy", ["B <.b@y.org>", "a..b@x.org", "a.@x.org", "=?utf-8?q?<?= <a@x..org>"])
def test_a_sloppy_address_keeps_the_mail_from_nobody_else(sink: Sink, sloppy: str) -> None:
    entry = replace(ENTRY, message=replace(ENTRY.message, recipients=(A, sloppy)))
    assert deliver(sink.port, entry) == Delivery((A,), {sloppy: "no address that SMTP takes"})
    assert sink.mails[0]["To"] == A


@pytest.mark.parametrize(
    ("step", "answer", "expected"),
    [
        ("RCPT b@x.org", "550 no such user", Delivery((A,), {B: "550 no such user"})),
        ("RCPT b@x.org", "450 greylisted", Delivery((A,), later="450 greylisted")),
        ("RCPT", "550 no", Delivery(refused={A: "550 no", B: "550 no"})),
        ("RCPT b@x.org", "421 closing", Delivery(later="421 closing")),
        ("MAIL", "451 try again", Delivery(later="451 try again")),
        ("DATA", "451 disk full", Delivery(later="451 disk full")),
        ("DATA", "554 no", Delivery(refused={A: "554 no", B: "554 no"})),
        ("TEXT", "451 disk full", Delivery(later="451 disk full")),
        ("TEXT", "421 closing", Delivery(later="421 closing")),
        ("TEXT", "554 spam", Delivery(refused={A: "554 spam", B: "554 spam"})),
    ],
)
def test_what_a_server_answers_decides(sink: Sink, step: str, answer: str, expected: Delivery) -> None:
    sink.at[step] = lambda: answer
    assert deliver(sink.port) == expected
    assert len(sink.arrived) == bool(expected.accepted)


@pytest.mark.parametrize(
    ("step", "arrives", "unsure"),
    [
        ("EHLO", 0, False),
        ("MAIL", 0, False),
        ("RCPT", 0, False),
        ("DATA", 0, False),
        ("TEXT", 0, True),
        ("AFTER", 1, True),
    ],
)
def test_a_server_that_dies(sink: Sink, step: str, arrives: int, unsure: bool) -> None:
    def die() -> str | None:
        sink.hang_up()
        return "451 gone" if step == "TEXT" else None

    sink.at[step] = die
    done = deliver(sink.port)
    assert bool(done.unsure) is unsure and bool(done.later) is not unsure
    assert (done.accepted, done.refused, len(sink.arrived)) == ((), {}, arrives)


def test_a_server_that_is_down_or_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = deliver(port)
    assert "refused" in done.later and not done.unsure
    assert "not known" in deliver(25, host="nowhere.invalid").later


@pytest.mark.parametrize("drip", [False, True])
def test_a_server_that_hangs_is_waited_for_with_a_limit(drip: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            peer, _ = listening.accept()
            with peer:
                while drip:
                    try:
                        peer.sendall(b"2")
                    except OSError:
                        return
                    time.sleep(0.1)
                peer.recv(1)

        threading.Thread(target=talk, daemon=True).start()
        began = time.monotonic()
        done = deliver(listening.getsockname()[1], seconds=0.5)
        assert done == Delivery(later="the mail server does not answer")
        assert time.monotonic() - began < 60


def test_a_server_that_takes_its_time_for_each_answer_is_waited_for_with_a_limit(sink: Sink) -> None:
    sink.at["EHLO"] = lambda: time.sleep(0.5)
    done = deliver(sink.port, delivery_seconds=0.4)
    assert done == Delivery(later="the mail server does not answer") and sink.arrived == []


def test_the_answer_to_the_text_is_waited_for_however_long_all_before_took(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off then, somebody would have to find out whether the mail has arrived."""
    hundreds = itertools.count(step=100)
    monkeypatch.setattr(smtp, "time", SimpleNamespace(monotonic=lambda: next(hundreds)))
    assert deliver(sink.port, delivery_seconds=650.0).accepted == (A, B)
    assert next(hundreds) > 650


def test_an_answer_without_an_end_is_not_read_until_the_time_is_over() -> None:
    """All its lines were kept meanwhile: gigabytes of a server that is quick."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            peer, _ = listening.accept()
            with peer, contextlib.suppress(OSError):
                while True:
                    peer.sendall(b"220-" + 500 * b"x" + b"\r\n")

        threading.Thread(target=talk, daemon=True).start()
        done = deliver(listening.getsockname()[1])
        assert done == Delivery(later="the mail server's answer has no end")


def test_a_server_that_hangs_after_the_text(sink: Sink) -> None:
    sink.at["AFTER"] = lambda: time.sleep(1.5)
    assert "does not answer" in deliver(sink.port, seconds=0.5).unsure
    assert len(sink.arrived) == 1


def test_an_answer_that_breaks_off_is_none() -> None:
    """The first bytes of an answer to the text: what would have followed is not known."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def talk() -> None:
            peer, _ = listening.accept()
            with peer, peer.makefile("rb") as said:
                peer.sendall(b"220 here\r\n")
                for line in said:
                    peer.sendall(b"354 go on\r\n" if line == b"DATA\r\n" else b"250 yes\r\n")
                    if line == b"DATA\r\n":
                        break
                while said.readline() != b".\r\n":
                    pass
                peer.sendall(b"250")

        threading.Thread(target=talk, daemon=True).start()
        assert deliver(listening.getsockname()[1]).unsure


def test_nothing_is_handed_over_that_another_process_has_taken(sink: Sink) -> None:
    sender = SmtpDeliverer(settings(sink.port), lambda: "")
    assert sender.deliver(ENTRY, lambda: False) == Delivery(later="another process sends it")
    assert sink.arrived == []


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_login_over_tls(authority: trustme.CA, trusted: None, security: str) -> None:
    tls = server_tls(authority, "localhost")
    with mail_server(tls=tls, implicit=security == "tls", login=("lab", "password")) as sink:
        more: dict[str, Any] = {"host": "localhost", "security": security, "user": "lab"}
        assert deliver(sink.port, password="password", **more) == Delivery((A, B))
        wrong = deliver(sink.port, password="topsecret", **more)
        assert wrong == Delivery(later="the mail server refuses user or password (535)")
        assert len(sink.arrived) == 1


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_of_another_name_or_authority(
    authority: trustme.CA, security: str, trusted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server(tls=server_tls(authority, "other.example"), implicit=security == "tls") as sink:
        done = deliver(sink.port, host="localhost", security=security)
        assert "certificate is not valid" in done.later and "localhost" in done.later
    monkeypatch.delenv("SSL_CERT_FILE")
    with mail_server(tls=server_tls(authority, "localhost"), implicit=security == "tls") as sink:
        assert "certificate is not valid" in deliver(sink.port, host="localhost", security=security).later
        assert sink.arrived == []


def test_a_server_without_tls_gets_no_mail_where_tls_is_asked_for(sink: Sink) -> None:
    done = deliver(sink.port, password="topsecret", security="starttls", user="lab")
    assert "STARTTLS" in done.later and sink.arrived == []

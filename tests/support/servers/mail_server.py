"""A real SMTP server on loopback that keeps what it gets, and fails where a test says."""

from __future__ import annotations

import asyncio
import email
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage, Message
from email.policy import SMTP as SMTP_POLICY
from typing import Any, cast

from aiosmtpd.smtp import SMTP as SmtpProtocol
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session


@dataclass
class Sink:
    """port; arrived: each mail as bytes; at: step -> what is answered in place of the usual (or done before).

    Steps: EHLO, MAIL, RCPT (also 'RCPT a@x' for one), DATA (before the text), TEXT (instead of accepting it).
    recipients: of each mail.
    """

    port: int = 0
    arrived: list[bytes] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    at: dict[str, Callable[[], str | None]] = field(default_factory=dict)
    protocol: Any = None

    @property
    def mails(self) -> list[EmailMessage]:
        return [email.message_from_bytes(one, policy=SMTP_POLICY) for one in self.arrived]

    def does(self, *steps: str) -> str | None:
        for step in steps:
            if step in self.at and (answer := self.at[step]()) is not None:
                return answer
        return None

    def hang_up(self) -> None:
        """Break all connections, as a server that dies."""
        self.protocol.transport.abort()


class _Handler:
    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    async def handle_EHLO(
        self, server: Any, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        answer = self.sink.does("EHLO")
        return responses if answer is None else [answer]

    async def handle_MAIL(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.sink.does("MAIL")
        if answer is None:
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return answer or "250 OK"

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        answer = self.sink.does(f"RCPT {address}", "RCPT")
        if answer is None:
            envelope.rcpt_tos.append(address)
        return answer or "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        answer = self.sink.does("TEXT")
        if answer is not None and not answer.startswith("2"):
            return answer
        self.sink.arrived.append(cast(bytes, envelope.original_content))
        self.sink.recipients.append(list(envelope.rcpt_tos))
        return self.sink.does("AFTER") or answer or "250 OK"


class _Protocol(SmtpProtocol):
    """aiosmtpd's, which may fail at DATA before it asks for the text."""

    sink: Sink

    async def smtp_DATA(self, arg: str) -> None:
        answer = self.sink.does("DATA")
        if answer is None:
            await super().smtp_DATA(arg)
        else:
            await self.push(answer)


@contextmanager
def mail_server(
    *,
    tls: ssl.SSLContext | None = None,
    implicit: bool = False,
    login: tuple[str, str] | None = None,
) -> Iterator[Sink]:
    """Run one. tls: with STARTTLS required, or from the first byte on; login: what alone is let in."""
    sink = Sink()

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        if not isinstance(data, LoginPassword) or login is None:
            return AuthResult(success=False, handled=False)
        same = (data.login.decode(), data.password.decode()) == login
        return AuthResult(success=same, handled=False)

    options: dict[str, Any] = {"decode_data": False}
    if login is not None:
        options |= {
            "authenticator": authenticate,
            "auth_required": True,
            "auth_require_tls": tls is not None and not implicit,
        }
    if tls is not None and not implicit:
        options |= {"tls_context": tls, "require_starttls": True}

    loop = asyncio.new_event_loop()

    def protocol() -> SmtpProtocol:
        made = _Protocol(_Handler(sink), loop=loop, **options)
        made.sink = sink
        sink.protocol = made
        return made

    serving = loop.run_until_complete(
        loop.create_server(protocol, "127.0.0.1", 0, ssl=tls if implicit else None)
    )
    sink.port = serving.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        loop.call_soon_threadsafe(serving.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def text_of(mail: Message) -> str:
    """Return the text of a mail."""
    return cast(str, cast(EmailMessage, mail).get_content())

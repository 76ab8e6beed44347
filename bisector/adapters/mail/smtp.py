"""Hands mails to a server, and knows of each failure whether the mail may have arrived.

Until the server has asked for the text, nothing was sent. From then on only its answer tells: without one,
nobody knows.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
import smtplib
import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

from bisector.adapters.mail.time_limit import ANSWER_SECONDS, DELIVERY_SECONDS, time_limit
from bisector.adapters.mail.wire_form import bare_address, mail_of, wire_bytes
from bisector.errors import PerfbisectError
from bisector.model.outbox import Delivery, OutboxEntry
from bisector.model.printable import printable_line
from bisector.schemas.mail_settings import MailSettings

_MAX_WORDS = 300
"""Characters of a server's answer that an error quotes: chosen, some lines."""
_FAILURES = (OSError, smtplib.SMTPException, ValueError)
"""Errors of the network, TLS and the protocol; ValueError: of an answer that cannot be read."""


_MOST_BYTES = 1 << 20
"""Of all answers over one connection: one for each recipient, of a line or some."""


class _Answers:
    """What a server answers. smtplib would keep every line of an answer that has no end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, _MOST_BYTES

    def readline(self, size: int) -> bytes:
        """Return the next line, b'' where it has no end. Raises ValueError: there were too many."""
        line = self._file.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise ValueError("the mail server's answer has no end")
        return line if line.endswith(b"\n") or len(line) == size else b""

    def close(self) -> None:
        self._file.close()


class _Client(smtplib.SMTP):
    """smtplib's, that reads no more than _MOST_BYTES, and waits for no answer beyond a limit.

    timeout: of one answer from its first byte to its last, where smtplib's own is that of a byte; ends:
    monotonic time after which nothing is asked any more.
    """

    ends: float

    def getreply(self) -> tuple[int, bytes]:
        """Return the next answer. Raises TimeoutError: it is not there in time."""
        if self.file is None and self.sock is not None:  # smtplib's own way to open it
            self.file = _Answers(self.sock.makefile("rb"))
        seconds = min(self.timeout, max(self.ends - time.monotonic(), 0.0))
        try:
            with time_limit(lambda: self.sock, seconds):
                return super().getreply()
        except smtplib.SMTPServerDisconnected as error:
            if isinstance(error.__context__, TimeoutError):  # smtplib keeps its words alone
                raise error.__context__ from error
            raise


class _TlsClient(_Client, smtplib.SMTP_SSL):
    """The same, encrypted from the beginning."""


class SmtpDeliverer:
    """mail_ports.Deliverer by the server of the settings."""

    def __init__(
        self,
        settings: MailSettings,
        password: Callable[[], str],
        *,
        answer_seconds: float = ANSWER_SECONDS,
        delivery_seconds: float = DELIVERY_SECONDS,
    ) -> None:
        """password: read when it is needed, and not kept."""
        self._settings, self._password = settings, password
        self._answer_seconds, self._delivery_seconds = answer_seconds, delivery_seconds
        self._context = ssl.create_default_context()  # the authorities that this machine trusts

    def deliver(self, entry: OutboxEntry, may_hand_over: Callable[[], bool]) -> Delivery:
        """Send a mail to its pending recipients. Never raises for what the network does."""
        out = {address.lower() for address in self._settings.opt_out}
        addresses = {one: bare_address(one) for one in entry.pending}
        refused = {one: "no address that SMTP takes" for one, address in addresses.items() if not address}
        refused |= {one: "has opted out" for one, address in addresses.items() if address.lower() in out}
        wanted = {one: address for one, address in addresses.items() if one not in refused}
        if not wanted:
            return Delivery(refused=refused)
        shown = tuple(one for one in entry.message.recipients if one not in refused)
        sent = replace(entry, message=replace(entry.message, recipients=shown))
        mail = mail_of(sent, self._settings.sender, datetime.datetime.now(datetime.UTC))
        try:
            text = wire_bytes(mail)
        except PerfbisectError as error:  # another attempt would make the same
            return Delivery(refused=refused | dict.fromkeys(wanted, error.message))
        server = self._client()
        try:
            self._greet(server)
            return _hand_over(server, self._settings.sender, wanted, refused, text, may_hand_over)
        except PerfbisectError as error:  # the password cannot be read
            return Delivery(refused=refused, later=error.message)
        except _FAILURES as error:
            return Delivery(refused=refused, later=_words(error))
        finally:
            server.close()

    def _client(self) -> _Client:
        if self._settings.security == "tls":
            client: _Client = _TlsClient(timeout=self._answer_seconds, context=self._context)
        else:
            client = _Client(timeout=self._answer_seconds)
        client.ends = time.monotonic() + self._delivery_seconds
        return client

    def _greet(self, server: smtplib.SMTP) -> None:
        """Connect, encrypt, log in. Raises one of _FAILURES."""
        settings = self._settings
        # smtplib verifies the certificate against the name that its constructor would have been given.
        server._host = settings.host.strip("[]")  # type: ignore[attr-defined]
        code, words = server.connect(settings.host.strip("[]"), settings.used_port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, words)
        if settings.security == "starttls":
            server.ehlo_or_helo_if_needed()
            server.starttls(context=self._context)
        server.ehlo_or_helo_if_needed()
        if settings.user is not None:
            server.login(settings.user, self._password())


def _hand_over(
    server: _Client,
    sender: str,
    wanted: dict[str, str],
    refused: dict[str, str],
    text: bytes,
    may_hand_over: Callable[[], bool],
) -> Delivery:
    """Send a mail over a connection that is ready. wanted: recipient -> address; refused: those before."""
    refused, takers, later = dict(refused), [], ""
    try:
        options = ["BODY=8BITMIME"] if server.has_extn("8bitmime") and not text.isascii() else []
        code, words = server.mail(bare_address(sender), options)
        if code != 250:
            return Delivery(refused=refused, later=_answer(code, words))
        for recipient, address in wanted.items():
            code, words = server.rcpt(address)
            if code in (250, 251, 252):
                takers.append(recipient)
            elif code >= 500:
                refused[recipient] = _answer(code, words)
            else:
                later = _answer(code, words)
            if code == 421:  # the server closes the connection
                return Delivery(refused=refused, later=later)
        if not takers or not may_hand_over():
            return Delivery(refused=refused, later=later or ("another process sends it" if takers else ""))
        code, words = server.docmd("DATA")
        if code != 354:
            if code >= 500:
                return Delivery(refused=refused | dict.fromkeys(takers, _answer(code, words)), later=later)
            return Delivery(refused=refused, later=_answer(code, words))
    except _FAILURES as error:
        return Delivery(refused=refused, later=_words(error))
    server.ends = math.inf  # from here on an answer that comes late is better than none
    try:
        server.send(re.sub(rb"(?m)^\.", b"..", text) + b".\r\n")
        code, words = server.getreply()
    except _FAILURES as error:
        return Delivery(
            refused=refused, unsure=f"the connection was lost after the text was sent: {_words(error)}"
        )
    if 200 <= code < 300:
        with contextlib.suppress(*_FAILURES):
            server.quit()
        return Delivery(tuple(takers), refused, later=later)
    if code >= 500:
        refused |= dict.fromkeys(takers, _answer(code, words))
        return Delivery(refused=refused, later=later)
    if code >= 400:
        return Delivery(refused=refused, later=_answer(code, words))
    return Delivery(
        refused=refused, unsure=f"the server's answer to the text is none: {_answer(code, words)}"
    )


def _answer(code: int, words: bytes) -> str:
    return printable_line(f"{code} {words.decode('utf-8', 'replace')}")[:_MAX_WORDS]


def _words(error: Exception) -> str:
    """Return what went wrong in words, without what was sent: it may be a password."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the mail server refuses user or password ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPResponseException):
        raw = error.smtp_error
        return _answer(error.smtp_code, raw if isinstance(raw, bytes) else str(raw).encode())
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the mail server's certificate is not valid: {error.verify_message}"
    if isinstance(error, UnicodeError):
        return "user and password must be ASCII: the login of SMTP takes nothing else"
    if isinstance(error, TimeoutError):
        return "the mail server does not answer"
    return printable_line(str(error) or type(error).__name__)[:_MAX_WORDS]

"""The chore that sends: whatever is approved in the outbox and due, by any of several processes."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from bisector.errors import RequestError
from bisector.mail_ports import Deliverer, Outbox
from bisector.model.outbox import Channel, OutboxEntry
from bisector.schemas.mail_settings import PASSWORD_VARIABLE, SECRET_VARIABLE, WebhookSettings

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.schemas.mail_settings import MailSettings

SEND_SECONDS = 20.0
"""How soon an executor sends what was approved."""


def outbox_of(wiring: Wiring) -> Outbox:
    """Return the outbox in the database of the bisections."""
    from bisector.adapters.store.outbox.sql_outbox import SqlOutbox

    return SqlOutbox(wiring.database)


def send_approved(wiring: Wiring) -> None:
    """Send what is due, as far as the settings of this host say how."""
    deliverers = deliverers_of(wiring)
    if deliverers:
        mail = wiring.settings.mail
        limit = mail.daily_limit if mail is not None else 0
        send_due(outbox_of(wiring), deliverers, limit, wiring.stop.is_set)


def send_due(
    outbox: Outbox,
    deliverers: Mapping[Channel, Deliverer],
    daily_limit: int,
    stop: Callable[[], bool] = lambda: False,
) -> list[OutboxEntry]:
    """Send all that is due; return what became of each message."""
    sender = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    outbox.abandon()
    sent: list[OutboxEntry] = []
    while not stop() and (entry := outbox.claim(sender, daily_limit, tuple(deliverers))) is not None:
        ours = partial(outbox.still_ours, entry.number, sender)
        done = deliverers[entry.channel].deliver(entry, ours)
        sent.append(outbox.finish(entry.number, sender, done) or outbox.entry(entry.number))
    return sent


def deliverers_of(wiring: Wiring) -> dict[Channel, Deliverer]:
    """Return what delivers here, by channel: those that the settings describe."""
    from bisector.adapters.mail.smtp import SmtpDeliverer
    from bisector.adapters.mail.webhook import WebhookDeliverer

    settings, found = wiring.settings, dict[Channel, Deliverer]()
    if (mail := settings.mail) is not None:
        found["mail"] = SmtpDeliverer(mail, lambda: _password(mail))
    if has_secret(settings.webhook):
        hook = settings.webhook or WebhookSettings()
        found["webhook"] = WebhookDeliverer(lambda: webhook_secret(hook), hook.trusted_hosts)
    return found


def _password(mail: MailSettings) -> str:
    """Return the account's password. Raises RequestError: there is none."""
    from bisector.adapters.system.secret_file import read_secret

    password, _ = read_secret(PASSWORD_VARIABLE, mail.password_file, "mail.password_file")
    if not password:
        raise RequestError(
            f"there is no password of '{mail.user}' at the mail server {mail.host}",
            cure=f"{PASSWORD_VARIABLE}, or a file of mode 600 that 'password_file' names",
        )
    return password


def has_secret(webhook: WebhookSettings | None) -> bool:
    """Return whether this host knows where to find the secret that signs webhooks."""
    return bool(os.environ.get(SECRET_VARIABLE)) or (webhook is not None and webhook.secret_file is not None)


def webhook_secret(webhook: WebhookSettings) -> str:
    """Return the secret of signatures. Raises RequestError: there is none."""
    from bisector.adapters.system.secret_file import read_secret

    secret, _ = read_secret(SECRET_VARIABLE, webhook.secret_file, "webhook.secret_file")
    if not secret:
        raise RequestError(
            "there is no secret for the signatures of webhooks",
            cure=f"{SECRET_VARIABLE}, or a file of mode 600 that 'secret_file' in [webhook] names",
        )
    return secret

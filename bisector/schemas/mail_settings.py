"""Mail: recipients, server and the lab's webhook; `[mail]` and `[webhook]` of perfbisect.toml."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from bisector.schemas.documents.document import expand_user
from bisector.schemas.loading import Argument, Distinct, Spec, matching
from bisector.schemas.ranges import Port, Whole
from bisector.schemas.refusal import WrongKeyError
from bisector.schemas.web_settings import HostName, Name, ServerUrl

PASSWORD_VARIABLE = "PERFBISECT_MAIL_PASSWORD"  # noqa: S105 - its name
SECRET_VARIABLE = "PERFBISECT_WEBHOOK_SECRET"  # noqa: S105 - its name
"""The secrets themselves are no settings: no command shows them."""

MAX_MAILS_A_DAY = 1000
"""Largest daily limit that can be set: chosen, so that no mistake makes a lab a mass mailer."""
_MAX_ADDRESS_CHARACTERS = 320
"""RFC 5321: 64 before the @, 255 behind it."""
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL_PART = rf"(?=[^@]{{1,64}}@){_ATOM}(?:\.{_ATOM})*"
_DOMAIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
ADDRESS = rf"{_LOCAL_PART}@{_DOMAIN}"
"""As SMTP takes it without extensions, and as nothing takes it for an option or a header."""

BareAddress = Annotated[str, matching(ADDRESS, "an address: name@example.org")]

_WITH_NAME = rf'(?:"[^"<>\\]*"|[^"<>\\,;:@]*) ?<{ADDRESS}>|{ADDRESS}'
"""One address, with or without a name; a name with other characters stands in quotes."""


def _with_name(value: str) -> str:
    if len(value) > _MAX_ADDRESS_CHARACTERS or not value.isprintable() or not re.fullmatch(_WITH_NAME, value):
        raise ValueError("must be an address: name@example.org, or 'A Name <name@example.org>'")
    return value


Address = Annotated[str, AfterValidator(_with_name)]


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address, as it is written, can only be this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def webhook_url(value: str) -> str:
    """Check the address of a webhook. Raises ValueError."""
    wrong = "must be https://HOST/PATH; http:// only to this machine, and no password in it"
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise ValueError(wrong) from error
    host = parts.hostname or ""
    if (
        len(value) > 1000
        or not (value.isascii() and value.isprintable())
        or " " in value
        or parts.scheme not in ("https", "http")
        or not host
        or "@" in parts.netloc
        or parts.fragment
        or (parts.scheme == "http" and not is_loopback(host))
    ):
        raise ValueError(wrong)
    return value


def foreign_webhook_url(value: str) -> str:
    """Check the address of a webhook that somebody elsewhere gave. Raises ValueError.

    What answers on this machine alone trusts who is on it. A name that leads here is found when it is asked.
    """
    wrong = "must be https://HOST/PATH with a HOST elsewhere: a server tells nobody on itself"
    parts = urlsplit(webhook_url(value))
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme != "https" or is_loopback(host) or host.endswith(".localhost"):
        raise ValueError(wrong)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return value
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        raise ValueError(wrong)
    return value


WebhookUrl = Annotated[Argument, AfterValidator(webhook_url)]


def secret_path(path: Path) -> Path:
    """Check the path of a file. Raises ValueError."""
    if "\0" in str(path) or not expand_user(path).is_absolute():
        raise ValueError("must be an absolute path")
    return expand_user(path)


SecretPath = Annotated[Path, AfterValidator(secret_path)]


class MailSettings(Spec):
    """The mail server, the lab's recipients, and limits."""

    described_in = "docs/how-to/mail.md"
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    host: HostName = Field(description="the mail server (SMTP)")
    port: Port | None = Field(default=None, description="unset: 587 for starttls, 465 for tls, 25 for none")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="the server's certificate is verified; none: no password is sent"
    )
    sender: Address = Field(alias="from", description="who the mails are from: 'A Lab <lab@example.org>'")
    lab: Distinct[Address] = Field(default=(), description="who gets reports and weekly summaries")
    user: Argument | None = Field(default=None, description="the account at the mail server")
    password_file: SecretPath | None = Field(
        default=None, description="a file of mode 600 with its password; or PERFBISECT_MAIL_PASSWORD"
    )
    daily_limit: Annotated[Whole, Field(ge=1, le=MAX_MAILS_A_DAY)] = Field(
        default=20, description="mails within 24 hours; others wait"
    )
    opt_out: Distinct[BareAddress] = Field(default=(), description="who gets nothing, whatever names them")
    public: Distinct[Name] = Field(
        default=(), description="series whose reports go to maintainers without anybody's approval"
    )
    web: ServerUrl | None = Field(
        default=None, description="https://HOST of the 'perfbisect web' that reports link to"
    )
    weekly: bool = Field(default=True, description="whether the lab gets a summary each Monday")

    @model_validator(mode="after")
    def _consistent(self) -> MailSettings:
        if self.user is not None and self.security == "none" and not is_loopback(self.host):
            raise WrongKeyError("a password must not cross a network without TLS", "security")
        if self.user is None and self.password_file is not None:
            raise WrongKeyError("is of no use without 'user'", "password_file")
        return self

    @property
    def used_port(self) -> int:
        """The port of the settings, else the usual one."""
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]


class WebhookSettings(Spec):
    """The lab's webhook: one signed POST for each event."""

    described_in = "docs/how-to/mail.md"

    url: WebhookUrl | None = Field(
        default=None,
        repr=False,  # it may hold a password, which is refused
        description="https://HOST/PATH that receives every event",
    )
    secret_file: SecretPath | None = Field(
        default=None,
        description="a file of mode 600 with the secret of signatures; or PERFBISECT_WEBHOOK_SECRET",
    )
    private_hosts: Distinct[HostName] = Field(
        default=(), description="hosts with private addresses that webhooks may have, beside that of 'url'"
    )

    @property
    def trusted_hosts(self) -> frozenset[str]:
        """The hosts that the settings name: their addresses may be private."""
        own = (urlsplit(self.url).hostname or "",) if self.url is not None else ()
        return frozenset((*own, *(host.strip("[]").lower() for host in self.private_hosts)))

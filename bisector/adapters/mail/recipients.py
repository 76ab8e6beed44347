"""The recipients of a report about a commit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import unquote

from bisector.model.printable import printable_header

MAX_RECIPIENTS = 15
"""Most recipients of one mail: more look like a mass mailing, to servers as to people."""
KERNEL_LIST = "linux-kernel@vger.kernel.org"
REGRESSIONS_LIST = "regressions@lists.linux.dev"
"""Gets each report of a regression that goes to a list of the kernel, and is where regzbot looks for its
commands (Documentation/process/handling-regressions.rst). MAINTAINERS names it for no file."""
_MAX_LOCAL, _MAX_DOMAIN = 64, 255
"""Characters before and behind the @: RFC 5321, 4.5.3.1."""


@dataclass(frozen=True, slots=True)
class Recipients:
    """addresses: 'A Name <a@x>' or 'a@x', the author first. notes: who is missing, and why."""

    addresses: tuple[str, ...]
    notes: tuple[str, ...] = ()


def choose(
    people: Sequence[str], keepers: Sequence[str], ignored: Collection[str], notes: Iterable[str] = ()
) -> Recipients:
    """Return at most MAX_RECIPIENTS of author and sign-offs (people), then maintainers and lists (keepers).

    ignored: bare addresses that get nothing. Nobody is there twice. Of too many, people are left out before
    lists, whose archive 'Closes:' leads to: those of the keepers that have no name.
    """
    if any(bare_of(one) == KERNEL_LIST for one in keepers):
        keepers = (*keepers, REGRESSIONS_LIST)
    out = {address.lower() for address in ignored}
    found: dict[str, str] = {}
    unusable = {one for one in (*people, *keepers) if not bare_of(one)}
    for one in (*people, *keepers):
        bare = bare_of(one)
        if bare and bare not in out:
            found.setdefault(bare, one)
    lists = [one for one in found.values() if one in keepers and "<" not in one]
    chosen = [one for one in found.values() if one not in lists][: max(MAX_RECIPIENTS - len(lists), 1)]
    chosen += lists[: MAX_RECIPIENTS - len(chosen)]
    left = len(found) - len(chosen)
    explanation = (
        *notes,
        *([f"Left out, for want of an address that mail takes: {len(unusable)}."] if unusable else []),
        *([f"{left} more are left out: {MAX_RECIPIENTS} get a mail at most."] if left > 0 else []),
    )
    return Recipients(tuple(chosen), explanation)


def bare_of(recipient: str) -> str:
    """Return the address of 'A Name <a@x>' in small letters; '' where there is none that a mail can have."""
    found = read_recipient(recipient)
    return "" if found is None else found.addr_spec.lower()


def read_recipient(recipient: str) -> Address | None:
    """Return name and address of 'A Name <a@x>'; None: no address that SMTP takes without extensions.

    What one line of a commit names is one recipient, whatever its name has.
    """
    name, text = "", recipient.strip()
    if text.endswith(">"):
        name, _, text = text[:-1].rpartition("<")
    name, text = name.strip(), text.strip()
    local, _, domain = text.rpartition("@")
    sound = text.isascii() and text.isprintable() and not set(text) & set(' \t<>,;:()[]\\"')
    sound = sound and "=?" not in text  # the email package decodes encoded words also in addresses
    if not (sound and 0 < len(local) <= _MAX_LOCAL and 0 < len(domain) <= _MAX_DOMAIN):
        return None
    try:
        address = Address(printable_header(unquote(name)), addr_spec=text)
    except (ValueError, MessageError, IndexError):  # of email, for what is no address: 'a..b@x', '.b@x'
        return None
    return address if address.addr_spec == text else None

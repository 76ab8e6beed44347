"""Who a commit's report goes to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

MAX_RECIPIENTS = 15
"""Of one mail: more look like a mass mailing, to servers as to people."""


@dataclass(frozen=True, slots=True)
class Recipients:
    """addresses: 'A Name <a@x>' or 'a@x', the author first. notes: who is missing, and why."""

    addresses: tuple[str, ...]
    notes: tuple[str, ...] = ()


def choose(
    people: Sequence[str], keepers: Sequence[str], ignored: Collection[str], notes: Iterable[str] = ()
) -> Recipients:
    """Return at most MAX_RECIPIENTS of author and sign-offs (people), then maintainers and lists (keepers).

    ignored: bare addresses that get nothing. Nobody is there twice.
    """
    out = {address.lower() for address in ignored}
    found: dict[str, str] = {}
    for one in (*people, *keepers):
        bare = bare_of(one)
        if bare and bare not in out:
            found.setdefault(bare, one)
    chosen, left = list(found.values())[:MAX_RECIPIENTS], len(found) - MAX_RECIPIENTS
    said = (
        *notes,
        *([f"{left} more are left out: {MAX_RECIPIENTS} get a mail at most."] if left > 0 else []),
    )
    return Recipients(tuple(chosen), said)


def bare_of(recipient: str) -> str:
    """Return the address of 'A Name <a@x>' in small letters; '' where there is none."""
    text = recipient.strip()
    if text.endswith(">"):
        text = text[:-1].rpartition("<")[2]
    local, at, domain = text.strip().rpartition("@")
    plain = local and at and domain and not set(text) & set(' \t<>,;:()[]\\"')
    return text.strip().lower() if plain and text.isascii() and text.isprintable() else ""

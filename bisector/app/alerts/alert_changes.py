"""Changes of alerts by people: find one, set its state, assign it, write notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bisector.errors import RequestError, nearest
from bisector.model.alerts import (
    MAX_ENTRIES,
    MAX_NAME_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    NOTE,
    STATES,
    Alert,
    AlertFilter,
    HistoryEntry,
    State,
    Triage,
    why_not,
)

if TYPE_CHECKING:
    from bisector.alert_ports import AlertStore

_MAX_NAMED = 20
"""Ids in a message: chosen, so that it fits on a screen."""
_ATTEMPTS = 20
"""Tries of a change while others change the same alert: chosen, as hardly ever two do so at once."""


@dataclass(frozen=True, slots=True)
class AlertChange:
    """A change of an alert by a person; a field that is None or empty stays as it is.

    state: their word; assignee: '' for nobody; note: why, or whatever others should know; duplicate_of: an
    alert, or the beginning of its id. revision: the one that the person has seen, None for whichever it is.
    """

    state: Triage | None = None
    assignee: str | None = None
    note: str = ""
    duplicate_of: str = ""
    revision: int | None = None


def find_alert(alerts: AlertStore, identity: str) -> Alert:
    """Return an alert by its id or the unique beginning of it. Raises RequestError."""
    matching = alerts.find(AlertFilter(beginning=identity), limit=_MAX_NAMED) if identity else ()
    if not matching:
        return alerts.load(identity)  # raises what names the nearest one
    if len(matching) > 1:
        raise RequestError(
            f"'{identity}' is the beginning of several alerts",
            details="\n".join(alert.id for alert in matching),
            cure="write more of the id",
        )
    return matching[0]


def read_states(words: Iterable[str]) -> tuple[State, ...]:
    """Return the states that words name. Raises RequestError."""
    named = [word.strip() for word in words]
    for word in named:
        if word not in STATES:
            raise RequestError(
                f"'{word}' is not a state of an alert{nearest(word, STATES)}",
                cure=f"one of: {', '.join(STATES)}",
            )
    return tuple(state for state in STATES if state in named)


def set_alert(alerts: AlertStore, identity: str, change: AlertChange, who: str) -> Alert:
    """Change an alert as a person wants it; return it. Raises RequestError, and nothing is changed."""
    _check(change)
    for _ in range(_ATTEMPTS):
        alert = find_alert(alerts, identity)
        if change.revision is not None and change.revision != alert.revision:
            raise _changed_by_others(alert)
        new, entries = _apply(alerts, alert, change, who)
        if not entries:
            return alert
        if len(alerts.history(alert.id)) + len(entries) > MAX_ENTRIES:
            raise RequestError(
                f"the alert '{alert.id}' has {MAX_ENTRIES:,} entries, as many as are kept of one",
                cure="keep further notes in a bug tracker",
            )
        if (kept := alerts.change(new, entries)) is not None:
            return kept
    raise _changed_by_others(alert)


def _check(change: AlertChange) -> None:
    """Refuse a change that means nothing, or that says too much."""
    if change.state is None and change.assignee is None and not change.note and not change.duplicate_of:
        raise RequestError(
            "nothing is said that should change",
            cure="give a state, a person, a note or the alert that it repeats: "
            "--state, --assign, --note or --duplicate-of",
        )
    if change.duplicate_of and change.state not in (None, "duplicate"):
        raise RequestError(
            f"a duplicate is not '{change.state}' as well", cure="give --state or --duplicate-of, not both"
        )
    if change.state == "duplicate" and not change.duplicate_of:
        raise RequestError("of which alert is it a duplicate?", cure="name it: --duplicate-of ID")
    limits = (
        (change.note, MAX_NOTE_CHARACTERS, "note"),
        (change.assignee or "", MAX_NAME_CHARACTERS, "name"),
    )
    for text, most, what in limits:
        if len(text) > most:
            raise RequestError(
                f"the {what} has {len(text):,} characters; at most {most:,} are kept",
                cure="say less here, and give the address of what says more",
            )
        if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
            raise RequestError(f"the {what} is not text in UTF-8", cure="leave out what is no character")
    if change.note and not change.note.strip():
        raise RequestError("the note is empty", cure="write what others should know, or leave it out")
    if change.assignee is not None and change.assignee != "" and not change.assignee.strip():
        raise RequestError("the name is empty", cure="name a person, or give --unassign")
    if change.assignee is not None and not change.assignee.isprintable():
        raise RequestError(
            "the name has a line break or another character that is not printed",
            cure="write it in one line, without tabs",
        )


def _apply(
    alerts: AlertStore, alert: Alert, change: AlertChange, who: str
) -> tuple[Alert, Sequence[HistoryEntry]]:
    """Return an alert as it is after a change, and the entry of its history about that."""
    state: Triage | None = "duplicate" if change.duplicate_of else change.state
    entries: list[HistoryEntry] = []
    if state is not None:
        if (refusal := why_not(alert, state, "person")) is not None:
            raise RequestError(
                f"the alert '{alert.id}' cannot be '{state}': {refusal}",
                cure=f"'perfbisect alert show {alert.id}' tells what became of it",
            )
        what: str = state
        if state == "duplicate":
            other = _original(alerts, alert, change.duplicate_of)
            alert, what = replace(alert, group=other.group, duplicate_of=other.id), f"duplicate of {other.id}"
        elif alert.duplicate_of:  # taken back: they share no cause any more
            alert = replace(alert, group=alert.id, duplicate_of="")
        alert = replace(alert, triage=state)
        entries.append(HistoryEntry(who, what, change.note))
    if change.assignee is not None and change.assignee != alert.assignee:
        what = f"assigned to {change.assignee}" if change.assignee else "assigned to nobody"
        alert = replace(alert, assignee=change.assignee)
        entries.append(HistoryEntry(who, what, "" if entries else change.note))
    if change.note and not entries:
        entries.append(HistoryEntry(who, NOTE, change.note))
    return alert, entries


def _original(alerts: AlertStore, alert: Alert, identity: str) -> Alert:
    """Return the alert that one is a duplicate of. Raises RequestError: itself, or another duplicate."""
    other = find_alert(alerts, identity)
    if other.id == alert.id:
        raise RequestError(f"the alert '{alert.id}' cannot be a duplicate of itself", cure="name another one")
    if other.triage == "duplicate":
        raise RequestError(
            f"the alert '{other.id}' is itself a duplicate, of '{other.duplicate_of}'",
            cure=f"give --duplicate-of {other.duplicate_of}",
        )
    return other


def _changed_by_others(alert: Alert) -> RequestError:
    return RequestError(
        f"the alert '{alert.id}' was changed meanwhile (it has revision {alert.revision} now)",
        cure=f"look at it again: perfbisect alert show {alert.id}",
    )

"""`perfbisect mail`: the outbox, where a person decides what leaves the lab."""

from __future__ import annotations

from typing import Annotated

import typer

from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion, number_options

_PAGE = 50
"""Lines of a list: what a tall terminal shows."""
_MOST = 1_000_000_000

Number = Annotated[
    int,
    number_options.whole_argument(
        1, _MOST, "Of a message, as 'perfbisect mail list' shows it.", completion.messages
    ),
]


def list_(
    everything: Annotated[bool, typer.Option("--all", help=f"All of them, not the latest {_PAGE}.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the messages of the outbox, the latest first, and what became of each.

    Examples:

      perfbisect mail list

      perfbisect mail list --all --json
    """
    from bisector.app.mail import outbox_view
    from bisector.app.mail.delivery import outbox_of
    from bisector.report import phrases

    wiring = options.make_wiring()
    entries = outbox_of(wiring).entries(limit=None if everything else _PAGE) if wiring.has_store else []
    rows = [outbox_view.row(entry) for entry in entries]
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        print("No message yet.")
        return
    header = ("NUMBER", "STATE", "TO", "CHANGED", "SUBJECT", "NOTE")
    cells = [
        (
            str(r["number"]),
            r["state"],
            r["to"],
            phrases.date(r["changed"]),
            r["subject"],
            "; ".join([*filter(None, [r["note"]]), *(f"{who}: {why}" for who, why in r["refused"].items())]),
        )
        for r in rows
    ]
    print(output.table(header, cells, wrapped=["SUBJECT", "NOTE"], dropped=["CHANGED"]))


def preview(number: Number, as_json: options.Json = False) -> None:
    """Print a message as it would go out.

    Example:

      perfbisect mail preview 12
    """
    from bisector.app.mail import outbox_view
    from bisector.app.mail.delivery import outbox_of

    wiring = options.make_wiring()
    entry = outbox_of(wiring).entry(number)
    text = outbox_view.whole(wiring, entry)
    if as_json:
        output.print_json({**outbox_view.row(entry), "text": text})
        return
    print(text, end="")
    output.print_note(f"message {number} is {entry.state}{f': {entry.note}' if entry.note else ''}")


def approve(number: Number, as_json: options.Json = False) -> None:
    """Let a message be sent; once more, where nobody knows whether it has arrived or somebody refused it.

    Example:

      perfbisect mail approve 12
    """
    from bisector.app.mail import outbox_view
    from bisector.app.mail.delivery import outbox_of

    wiring = options.make_wiring()
    entry = outbox_of(wiring).approve(number, wiring.settings.owner)
    if as_json:
        output.print_json(outbox_view.row(entry))
    else:
        who = "whoever executes bisections sends it: 'perfbisect worker', or the next 'start'"
        output.print_note(f"message {number} to {', '.join(entry.pending)} is approved; {who}")


def stop(number: Number, reason: options.Reason = "", as_json: options.Json = False) -> None:
    """Let a message be sent no more.

    Example:

      perfbisect mail stop 12 --reason 'known already'
    """
    from bisector.app.mail import outbox_view
    from bisector.app.mail.delivery import outbox_of

    wiring = options.make_wiring()
    entry = outbox_of(wiring).stop(number, wiring.settings.owner, reason)
    if as_json:
        output.print_json(outbox_view.row(entry))
    else:
        output.print_note(f"message {number} is stopped")

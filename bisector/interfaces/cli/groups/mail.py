"""`perfbisect mail`: the outbox, where a person decides what leaves the lab."""

from __future__ import annotations

from typing import Annotated

import typer

from bisector.interfaces.cli import ask, options, output
from bisector.interfaces.cli.arguments import completion, number_options, text_options

_MOST = 1_000_000_000
"""Largest number of a message that is looked up: far above any outbox."""

_MEANING = "Of a message, as 'perfbisect mail list' shows it."

Number = Annotated[int, number_options.whole_argument(1, _MOST, _MEANING, completion.messages)]
Approvable = Annotated[int, number_options.whole_argument(1, _MOST, _MEANING, completion.approvable_messages)]


def list_(
    everything: Annotated[
        bool, typer.Option("--all", help=f"All of them, not the latest {number_options.DEFAULT_LIMIT}.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List the messages of the outbox, the latest first, and what became of each.

    Behind the latest come those before them that wait for approval, or were not delivered.

    Examples:

      perfbisect mail list

      perfbisect mail list --all --json
    """
    from bisector.report import phrases

    rows = ask.operations().messages(None if everything else number_options.DEFAULT_LIMIT)
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
    found = ask.operations().message(number)
    if as_json:
        output.print_json(found)
        return
    print(found["text"], end="")
    note = f": {found['note']}" if found["note"] else ""
    if found["state"] == "waiting":
        note = f" for approval{note}; 'perfbisect mail approve {number}' sends it"
    state = "a draft" if found["state"] == "draft" else found["state"]
    output.print_note(f"message {number} is {state}{note}")


def approve(number: Approvable, as_json: options.Json = False) -> None:
    """Let a message be sent; once more where it may not have arrived, or was refused.

    Example:

      perfbisect mail approve 12
    """
    row = ask.operations().approve_message(number)
    if as_json:
        output.print_json(row)
    else:
        who = "whoever executes bisections sends it: 'perfbisect worker', or the next 'start'"
        pending = ", ".join(one for one in row["recipients"] if one not in row["accepted"])
        output.print_note(f"message {number} to {pending} is approved; {who}")


def stop(number: Number, reason: text_options.Reason = "", as_json: options.Json = False) -> None:
    """Stop a message: it is not sent any more.

    Example:

      perfbisect mail stop 12 --reason 'known already'
    """
    row = ask.operations().stop_message(number, reason)
    if as_json:
        output.print_json(row)
    else:
        output.print_note(f"message {number} is stopped")

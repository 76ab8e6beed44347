"""`perfbisect token`: who may use the web server of this database, and as what."""

from __future__ import annotations

from typing import Annotated

import typer

from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import ages, completion, number_options
from bisector.model.access import Role

_MOST_DAYS = 3650
"""Ten years, chosen: a token that is to last longer gets no end at all."""

_MEANING = "Of the person or program that has it."

Name = Annotated[str, typer.Argument(metavar="NAME", help=_MEANING)]
Known = Annotated[str, typer.Argument(metavar="NAME", help=_MEANING, autocompletion=completion.tokens)]


def add(
    name: Name,
    role: Annotated[
        Role,
        typer.Option(
            help="read: sees everything; operate: also starts, stops and marks; admin: also removes, and "
            "manages tokens; worker: none of these, only the artefacts that workers share."
        ),
    ] = "read",
    days: Annotated[
        int | None, number_options.whole(1, _MOST_DAYS, "Valid for so many days. [default: until revoked]")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Make a token and print it, once: the database keeps only its SHA-256.

    Clients read it from PERFBISECT_TOKEN, or from a file of mode 600 that 'token_file' in perfbisect.toml
    names.

    Examples:

      perfbisect token add ann --role operate

      perfbisect token add prometheus --role read --days 365
    """
    from bisector.app.upkeep import tokens

    wiring = options.make_wiring()
    made, secret = tokens.add(wiring, name, role, days, wiring.settings.owner)
    if as_json:
        output.print_json({**tokens.row(made, made.created), "token": secret})
        return
    print(secret)
    output.print_note(f"the token of '{made.name}' ({made.role}); it is not shown again")


def list_(as_json: options.Json = False) -> None:
    """List the tokens with their roles, and when each was used last.

    Example:

      perfbisect token list
    """
    from bisector.app.upkeep import tokens

    wiring = options.make_wiring()
    now = wiring.coordinator.now()
    rows = [tokens.row(token, now) for token in tokens.access_of(wiring).tokens()]
    if as_json:
        output.print_json(rows)
        return
    if not rows:
        print("No token yet.")
        return
    header = ("NAME", "ROLE", "STATE", "CREATED", "EXPIRES", "LAST USED")
    cells = [
        (r["name"], r["role"], r["state"], _day(r["created"]), _day(r["expires"]), _day(r["last_used"]))
        for r in rows
    ]
    print(output.table(header, cells, dropped=["CREATED", "EXPIRES"]))


def revoke(name: Known, as_json: options.Json = False) -> None:
    """Let a token be valid no longer, from the next request on.

    Example:

      perfbisect token revoke ann
    """
    from bisector.app.upkeep import tokens

    wiring = options.make_wiring()
    revoked = tokens.revoke(wiring, name, wiring.settings.owner)
    if as_json:
        output.print_json(tokens.row(revoked, revoked.created))
    else:
        output.print_note(f"the token of '{revoked.name}' is revoked")


def _day(seconds: float | None) -> str:
    return "" if seconds is None else ages.day(seconds)

"""Priorities on the command line: a word, or a number from 1 (served first) on."""

from __future__ import annotations

from typing import Any

import typer

from bisector.interfaces.cli.arguments import completion
from bisector.model.stored_bisection import FIRST_PRIORITY, LAST_PRIORITY, PRIORITIES

WORDS = "high, normal or low, or a number from 1 (served first) to 9"


def read_priority(text: str | int) -> int:
    """Return the number of a priority; a default is one already. Raises ValueError: what it must be."""
    if isinstance(text, int):
        return text
    if text in PRIORITIES:
        return PRIORITIES[text]
    if (
        text.isascii()
        and text.isdecimal()
        and len(text) == 1
        and FIRST_PRIORITY <= int(text) <= LAST_PRIORITY
    ):
        return int(text)
    raise ValueError(f"'{text[:40]}' is not a priority: {WORDS}")


def option() -> Any:  # noqa: ANN401 - as typer.Option
    """Return the option of a new bisection."""
    numbers = ", ".join(f"{word} is {number}" for word, number in PRIORITIES.items())
    meaning = f"Served before or after others: {WORDS}; {numbers}. [default: normal]"
    return typer.Option(
        "--priority",
        parser=read_priority,
        metavar="<priority>",
        help=meaning,
        autocompletion=completion.priorities,
    )


def argument() -> Any:  # noqa: ANN401 - as typer.Argument
    """Return the argument of a change."""
    return typer.Argument(
        parser=read_priority,
        metavar="PRIORITY",
        help=f"{WORDS.capitalize()}.",
        autocompletion=completion.priorities,
    )

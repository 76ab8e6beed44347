"""The one exit of text into HTML and SVG: everything that is not markup of ours is escaped here.

Commit subjects, logs, consoles and names of workloads are foreign text. Templates escape by themselves and
send what they print through `text`; drawings are made of `element` only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup, escape

from bisector.model.printable import printable

_OPENS = re.compile(r"<t[rhd]\b")
"""A row or a cell of a table. Foreign text has no '<' left that could open one."""


def text(value: object) -> Markup:
    """Return a value as HTML text: unprintable characters as escapes, then escaped; markup stays as it is."""
    if isinstance(value, Markup):
        return value
    return escape(printable("" if value is None else str(value)))


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element. Attributes: `class_` and the like lose the last underscore; None leaves one out.

    Names of elements and attributes come from our code, never from data.
    """
    out = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            shown = f"{value:.5g}" if isinstance(value, float) else text(value)
            out.append(f' {key.rstrip("_").replace("_", "-")}="{shown}"')
    if not children:
        return Markup("".join(out) + "/>")  # noqa: S704 - values were escaped above
    return Markup("".join([*out, ">", *(text(child) for child in children), f"</{name}>"]))  # noqa: S704


def labelled_cells(rows: Markup, head: Sequence[str]) -> Markup:
    """Return rows of a table with the head of its column in each cell, for screens too narrow for columns.

    head: of each column, with a '#' before that of numbers.
    """
    place = 0

    def opened(found: re.Match[str]) -> str:
        nonlocal place
        if found[0] == "<tr":
            place = 0
            return found[0]
        place += 1
        return f'{found[0]} data-label="{text(head[place - 1].removeprefix("#"))}"'

    return Markup(_OPENS.sub(opened, rows))  # noqa: S704 - it was markup

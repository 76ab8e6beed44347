"""Options of text that others read: the reason of a change, and notes of a report."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from bisector.errors import RequestError
from bisector.schemas.documents.document import shortened
from bisector.schemas.web_settings import TEXT, TEXT_MEANING


def option(meaning: str, *names: str) -> Any:  # noqa: ANN401 - as typer.Option
    """Return an option for a line of text, by the rule that a server keeps. meaning: its help."""
    return typer.Option(*names, callback=_require_a_line, help=meaning)


def _require_a_line(parameter: typer.CallbackParam, value: str) -> str:
    """Return the text. Raises RequestError: others would see it as lines that the program prints."""
    if re.fullmatch(TEXT, value) is None:
        raise RequestError(
            f"{parameter.opts[0]}: must be {TEXT_MEANING} (got '{shortened(value)}')",
            cure="write it in one line, and leave a longer text where others find it",
        )
    return value


Reason = Annotated[str, option("Why, for others who look at it.", "--reason")]
Note = Annotated[str, option("The reason, for the report.")]

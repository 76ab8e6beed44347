"""Numbers in options: each has a range, which its help shows and its type keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from bisector.errors import RequestError
from bisector.model.format import plain
from bisector.model.goal import LEAST_ALPHA

_LONGEST_SHOWN = 40
"""Characters of a wrong value that a message repeats."""


@dataclass(frozen=True)
class Range:
    """Numbers from `least` to `most`, without these ends themselves where `above` and `below` say so."""

    kind: type[int] | type[float]
    least: float
    most: float
    above: bool = False
    below: bool = False

    def __str__(self) -> str:
        """Return the range as help texts show it: '0<x<=100'."""
        low, high = "<" if self.above else "<=", "<" if self.below else "<="
        return f"{plain(self.least)}{low}x{high}{plain(self.most)}"

    def read(self, text: str | int | float) -> int | float:
        """Return the number that a text is; a default is one already. Raises ValueError: what it must be."""
        if not isinstance(text, str):
            return text
        try:
            value = self.kind(text)  # int refuses more than 4,300 digits, whose reading takes quadratic time
        except ValueError as error:
            raise self._refusal(text) from error
        low = self.least < value if self.above else self.least <= value
        high = value < self.most if self.below else value <= self.most
        if not (low and high):  # false for NaN, too
            raise self._refusal(text)
        return value

    def read_share(self, text: str | float) -> float:
        """Return a probability or share, '0.1' or '10%', as `read` does."""
        try:
            if isinstance(text, str) and text.endswith("%"):
                text = str(float(text[:-1]) / 100)
            return float(self.read(text))
        except ValueError as error:
            raise ValueError(f"{self._refusal(str(text))}, such as 0.1 or 10%") from error

    def _refusal(self, text: str) -> ValueError:
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
        low = f"{'above' if self.above else 'from'} {plain(self.least)}"
        high = f"{'and below' if self.below else 'and up to' if self.above else 'to'} {plain(self.most)}"
        return ValueError(f"'{shown}' is not a {'whole ' * (self.kind is int)}number {low} {high}")


def range_of(kind: type[int] | type[float], metadata: Iterable[object]) -> Range:
    """Return the range that pydantic keeps for a field; each of its numbers has two ends."""
    ends = {
        name: end
        for one in metadata
        for name in ("ge", "gt", "le", "lt")
        if (end := getattr(one, name, None)) is not None
    }
    least, most = ends.get("ge", ends.get("gt", -math.inf)), ends.get("le", ends.get("lt", math.inf))
    return Range(kind, float(least), float(most), above="gt" in ends, below="lt" in ends)


def option(limits: Range, meaning: str, *names: str) -> Any:  # noqa: ANN401 - as typer.Option
    """Return an option for a number. meaning: its help, to which the range is added."""
    metavar = f"<{limits.kind.__name__}>"
    return typer.Option(*names, parser=limits.read, metavar=metavar, help=f"{meaning} [{limits}]")


def whole(least: int, most: int, meaning: str) -> Any:  # noqa: ANN401 - as typer.Option
    """Return an option for a whole number, both ends included."""
    return option(Range(int, least, most), meaning)


def whole_argument(
    least: int,
    most: int,
    meaning: str,
    complete: Callable[..., list[str]],
) -> Any:  # noqa: ANN401 - as typer.Argument
    """Return an argument that is a whole number, both ends included. complete: what a shell offers."""
    limits = Range(int, least, most)
    return typer.Argument(
        parser=limits.read, metavar="NUMBER", help=meaning, autocompletion=complete, show_default=False
    )


def real(least: float, most: float, meaning: str, *, above: bool = False) -> Any:  # noqa: ANN401 - the same
    """Return an option for a number. above: `least` itself is not allowed."""
    return option(Range(float, least, most, above), meaning)


def share(meaning: str) -> Any:  # noqa: ANN401 - the same
    """Return an option for a probability, as a number or in percent."""
    limits = Range(float, 0, 1)
    return typer.Option(parser=limits.read_share, metavar="<float>", help=f"{meaning} [{limits}, or in %]")


def parse_percentage(option: str, text: str) -> float:
    """Return '5%' as 0.05. Raises RequestError naming the option."""
    number = text.removesuffix("%")
    try:
        value = float(number) / 100
    except ValueError as error:
        raise RequestError(f"{option}: '{text}' is not a number", cure="write for example '5%'") from error
    if not math.isfinite(value):
        raise RequestError(f"{option}: '{text}' is not a finite number", cure="write for example '5%'")
    if number == text:
        raise RequestError(f"{option}: '{text}' has no unit", cure=f"write '{text}%'")
    return value


DEFAULT_LIMIT = 50
"""Lines of a list: what a tall terminal shows."""
Limit = Annotated[
    int | None, whole(1, 1_000_000, f"Only so many. [default: {DEFAULT_LIMIT}; with --json all]")
]

ALPHA = Range(float, LEAST_ALPHA, 0.5, below=True)
"""Accepted shares of wrong answers; half is no test at all."""

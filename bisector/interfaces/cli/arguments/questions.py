"""Questions on a terminal: what options did not say is asked, or has its default."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer

from bisector.errors import PerfbisectError, RequestError
from bisector.interfaces.cli.output import end_question

T = TypeVar("T")

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. Needed where there is no terminal.")]


def is_answered() -> bool:
    """Return whether somebody can answer: the input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def require_agreement(question: str, refusal: str) -> None:
    """Go on if a person agrees. Raises RequestError if not, or without a terminal; Abort at Ctrl-C.

    refusal: what did not happen then, 'nothing was removed'.
    """
    if not is_answered():
        raise RequestError(f"{refusal}: nobody can be asked here", cure="say --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        raise typer.Abort from None
    if not answer.endswith("\n"):  # Ctrl-D
        end_question()
    if answer.strip().lower() not in ("y", "yes"):
        raise RequestError(refusal, cure="answer y, or say --yes")


class Questions:
    """Asks, or does not (`--yes`): then options and defaults are all there is."""

    def __init__(self, *, asks: bool) -> None:
        self.asks = asks

    def require_terminal(self, command: str, options: str) -> None:
        """Raise RequestError where there is no terminal to answer questions."""
        if self.asks and not is_answered():
            raise RequestError(
                f"{command} asks questions, and its input is no terminal",
                cure=f"add --yes, and {options} for what differs from the defaults",
            )

    def ask(
        self,
        option: str,
        given: object,
        question: str,
        default: object,
        read: Callable[[str], T],
        *,
        missing: RequestError | None = None,
    ) -> T:
        """Return what was given, or is answered, or the default. A wrong answer is asked for again.

        missing: raised where nothing was given, nobody is asked and there is no default.
        """
        if given is not None or not self.asks:
            if given is None and default is None and missing is not None:
                raise missing
            value = default if given is None else given
            try:
                return read("" if value is None else str(value))
            except RequestError as error:
                raise RequestError(
                    f"{option}: {error.message}", details=error.details, cure=error.cure
                ) from error

        def read_answer(text: str) -> T:
            try:
                return read(text.strip())
            except PerfbisectError as error:
                raise typer.BadParameter(f"{error.message} ({error.cure})") from error

        shown = str(default) if default is not None else None if missing is not None else ""
        answer: T = typer.prompt(
            question, default=shown, show_default=bool(shown), value_proc=read_answer, err=True
        )
        return answer


def choice(known: Sequence[T]) -> Callable[[str], T]:
    """Return what reads one of a few words."""

    def read(text: str) -> T:
        for one in known:
            if one == text:
                return one
        raise RequestError(f"unknown value '{text[:40]}'", cure=f"write one of {', '.join(map(str, known))}")

    return read

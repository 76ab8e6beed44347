"""What the measuring agent answers: one line of JSON each, checked here and nowhere else.

A malformed line means that the testbed failed, not the workload. See the head of the agent's source for the
commands that these lines answer.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError

from bisector.errors import InfrastructureError

PROTOCOL = 1

_SHOWN_CHARACTERS = 500
"""Characters of an invalid line that an error quotes."""


class AnswerError(InfrastructureError):
    """A line that is none of the agent's answers; `details` shows what is wrong with it, and the line."""


Count = Annotated[int, Field(ge=0)]


class _Answer(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, val_json_bytes="base64"
    )


class Greeting(_Answer):
    """The first line of `agent serve`."""

    hello: str
    protocol: int


class Paused(_Answer):
    """The end of a pause."""

    paused: Literal[1]


class StartError(_Answer):
    """The command could not be executed. error: what was tried; reason: strerror() of it."""

    error: str
    reason: str


class FilePiece(_Answer):
    """A piece of a file that a monitor left; pieces of one file come in order. cut: the rest is not sent.

    The name is below the monitor's folder: nothing that leads out of it.
    """

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$", max_length=255)]
    data: bytes
    cut: int


class Finished(_Answer):
    """One finished run of the workload, with a monitor or without.

    code: exit code, -1 if it has none; signal: that ended it, 0 for none.
    seconds: CLOCK_MONOTONIC; raw_seconds: CLOCK_MONOTONIC_RAW, 0 before 2.6.28.
    ticks: of the time stamp counter, on arm64 nanoseconds of the counter; user, sys: CPU seconds.
    out, err: what it printed, without the first out_cut and err_cut bytes.
    kernel: what the kernel logged, warnings and worse; tainted: /proc/sys/kernel/tainted.
    """

    monitor: str = ""
    code: int
    signal: Count
    killed: Literal[0, 1]
    seconds: float
    raw_seconds: float
    ticks: Count
    user: float
    sys: float
    minor_faults: int
    major_faults: int
    switches: int
    preempted: int
    out: bytes
    out_cut: Count
    err: bytes
    err_cut: Count
    kernel: list[str]
    tainted: Count


Answer = Greeting | Paused | StartError | FilePiece | Finished


def _tag(value: object) -> str:
    """Return the key that tells the kinds of answers apart; 'code' for what is none of them."""
    keys = value if isinstance(value, dict) else {}
    return next((key for key in ("hello", "paused", "error", "file") if key in keys), "code")


_ANSWER: TypeAdapter[Answer] = TypeAdapter(
    Annotated[
        Annotated[Greeting, Tag("hello")]
        | Annotated[Paused, Tag("paused")]
        | Annotated[StartError, Tag("error")]
        | Annotated[FilePiece, Tag("file")]
        | Annotated[Finished, Tag("code")],
        Discriminator(_tag),
    ]
)
_FACTS = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))


def parse_answer(line: str) -> Answer:
    """Return the answer that a line holds. Raises AnswerError."""
    try:
        return _ANSWER.validate_json(line)
    except ValidationError as error:
        raise AnswerError(
            "the measuring agent's answer is garbled", details=f"{_reasons(error)}\n{_shown(line)}"
        ) from error


def parse_greeting(line: str) -> Greeting:
    """Return the first answer of `agent serve`. Raises AnswerError for any other, and another protocol."""
    answer = parse_answer(line)
    if not isinstance(answer, Greeting):
        raise unexpected(answer)
    if answer.protocol != PROTOCOL:
        raise AnswerError("the measuring agent speaks another protocol", details=_shown(line))
    return answer


def parse_facts(text: str) -> dict[str, str]:
    """Return what `agent prepare` says of the system: the last line of its output that is a JSON object.

    Raises AnswerError if there is none, a value is no text, or the kernel's taint flags are no number.
    """
    line = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "")
    try:
        facts = _FACTS.validate_json(line)
    except ValidationError as error:
        raise AnswerError(
            "the testbed told no facts after the deployment", details=f"{_reasons(error)}\n{text[-2000:]}"
        ) from error
    if not re.fullmatch("[0-9]{0,20}", facts.get("tainted", "")):
        raise AnswerError("the testbed's facts are garbled", details=f"tainted: {_shown(facts['tainted'])}")
    return facts


def unexpected(answer: Answer) -> AnswerError:
    """Return the error for a proper answer to something that was not asked."""
    shown = _shown(repr(answer))
    return AnswerError("the measuring agent answered what was not asked", details=shown)


def _reasons(error: ValidationError) -> str:
    """Return the first three reasons, each with the key that it is about."""
    found = error.errors(include_url=False, include_input=False)
    return "\n".join(f"{'.'.join(str(part) for part in one['loc'][1:])}: {one['msg']}" for one in found[:3])


def _shown(line: str) -> str:
    return line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."

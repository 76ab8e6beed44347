"""What the measuring agent answers: one line of JSON each, checked here and nowhere else.

A malformed line means that the testbed failed, not the workload. See the head of the agent's source for the
commands that these lines answer.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from bisector.errors import InfrastructureError
from bisector.model.printable import printable

PROTOCOL = 1

MAX_OUTPUT_BYTES = 1 << 20
"""OUTPUT_MAX of agent.c."""

_MAX_PIECE_BYTES = 3 << 18
"""CHUNK of observe.c."""

_MAX_FACTS_CHARACTERS = 1 << 20
"""Some hundred facts, the longest of which are command lines and lists of mitigations: 20 KB in all."""

_SHOWN_CHARACTERS = 500
"""Characters of an invalid line that an error quotes."""

_SHOWN_VALUE = 40
"""Characters of an invalid value that an error quotes."""


class AnswerError(InfrastructureError):
    """A line that is none of the agent's answers; `details` shows what is wrong with it, and the line."""


Count = Annotated[int, Field(ge=0, lt=1 << 64)]
Seconds = Annotated[float, Field(ge=0, le=1e8)]
"""Three years. No job has a timeout that long."""

Size = Annotated[int, Field(ge=0, le=1 << 50)]
"""Bytes; a petabyte is more than any testbed's disk."""

Text = Annotated[str, Field(max_length=4096)]
Output = Annotated[bytes, Field(max_length=MAX_OUTPUT_BYTES)]


class _Answer(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, val_json_bytes="base64"
    )


class Greeting(_Answer):
    """The first line of `agent serve`."""

    hello: Text
    protocol: int


class Paused(_Answer):
    """The end of a pause."""

    paused: Literal[1]


class StartError(_Answer):
    """The command could not be executed. error: what was tried; reason: strerror() of it."""

    error: Text
    reason: Text


class FilePiece(_Answer):
    """A piece of a file that a monitor left; pieces of one file come in order. cut: the rest is not sent.

    The name is below the monitor's folder: nothing that leads out of it.
    """

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]*$", max_length=255)]
    data: Annotated[bytes, Field(max_length=_MAX_PIECE_BYTES)]
    cut: Literal[0, 1]


class Finished(_Answer):
    """One finished run of the workload, with a monitor or without.

    code: exit code, -1 if it has none; signal: that ended it, 0 for none.
    seconds: CLOCK_MONOTONIC; raw_seconds: CLOCK_MONOTONIC_RAW, 0 before 2.6.28.
    ticks: of the time stamp counter, on arm64 nanoseconds of the counter; user, sys: CPU seconds.
    out, err: what it printed, without the first out_cut and err_cut bytes.
    kernel: what the kernel logged, warnings and worse; tainted: /proc/sys/kernel/tainted.
    """

    monitor: Annotated[str, Field(max_length=64)] = ""
    code: Annotated[int, Field(ge=-1, le=255)]
    signal: Annotated[int, Field(ge=0, le=127)]
    killed: Literal[0, 1]
    seconds: Seconds
    raw_seconds: Seconds
    ticks: Count
    user: Seconds
    sys: Seconds
    minor_faults: Count
    major_faults: Count
    switches: Count
    preempted: Count
    out: Output
    out_cut: Size
    err: Output
    err_cut: Size
    kernel: Annotated[list[Annotated[str, Field(max_length=8192)]], Field(max_length=64)]
    tainted: Count

    @model_validator(mode="after")
    def _ended_in_one_way(self) -> Finished:
        if (self.code == -1) != (self.signal > 0):
            raise ValueError("a run ends with a code or by a signal")
        return self


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

    Raises AnswerError if there is none, a value is no text, the kernel's taint flags are no number, or it is
    more than facts can be.
    """
    line = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "")
    try:
        facts = _FACTS.validate_json(line)
    except ValidationError as error:
        raise AnswerError(
            "the testbed told no facts after the deployment", details=f"{_reasons(error)}\n{text[-2000:]}"
        ) from error
    if len(line) > _MAX_FACTS_CHARACTERS:
        raise AnswerError("the testbed tells too many facts", details=_shown(line))
    if not re.fullmatch("[0-9]{0,20}", facts.get("tainted", "")):
        raise AnswerError("the testbed's facts are garbled", details=f"tainted: {_shown(facts['tainted'])}")
    return facts


def unexpected(answer: Answer) -> AnswerError:
    """Return the error for a proper answer to something that was not asked."""
    shown = _shown(repr(answer))
    return AnswerError("the measuring agent answered what was not asked", details=shown)


_REASONS = {
    "missing": "is missing",
    "extra_forbidden": "is no key of this answer",
    "json_invalid": "the line is no JSON",
    "model_type": "the line is no JSON object",
    "dict_type": "the line is no JSON object",
}
"""pydantic's type of an error -> our words; all others mean that the value cannot be."""


def _reasons(error: ValidationError) -> str:
    """Return the first three reasons, each with the key that it is about."""
    reasons = []
    for one in error.errors(include_url=False)[:3]:
        keys = [str(part) for part in one["loc"][1:]]  # the first is the kind of answer
        value = repr(one["input"])
        shown = value if len(value) <= _SHOWN_VALUE else f"{value[:_SHOWN_VALUE]}..."
        what = _REASONS.get(one["type"], f"cannot be {shown}")
        if one["type"] == "value_error":
            what = str(one["ctx"]["error"])
        reasons.append(f"{'.'.join(keys)}: {what}".removeprefix(": "))
    return "\n".join(reasons)


def _shown(line: str) -> str:
    shown = line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."
    return f"{printable(shown)} ({len(line)} characters)"

"""The measuring agent's answers: one line of JSON each, checked here and nowhere else.

A malformed line means that the testbed failed, not the workload. See the head of the agent's source for the
commands that these lines answer.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
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

from bisector.errors import InfrastructureError, RequestError
from bisector.model.printable import printable
from bisector.schemas.documents.json_reader import check_unique_keys
from bisector.schemas.refusal import describe_problems

PROTOCOL_VERSION = 1

MAX_OUTPUT_BYTES = 1 << 20
"""OUTPUT_MAX of agent.c."""

_MAX_PIECE_BYTES = 3 << 18
"""CHUNK of observe.c."""

_MAX_SYMBOLS_BYTES = 4 << 20
"""SYMBOLS_MAX of symbols.c."""

_MAX_FACTS_CHARACTERS = 1 << 20
"""Far above some hundred facts, of which command lines and lists of mitigations are longest: 20 KB in all."""

_SHOWN_CHARACTERS = 500
"""Characters of an invalid line that an error quotes."""


class AnswerError(InfrastructureError):
    """A line that is no valid answer of the agent; `details` shows what is wrong with it, and the line."""

    usual_cure = "look what else writes to that line of the testbed; then give the same command again"


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


class Cleaned(_Answer):
    """The end of the cleanup. cleaned: 0, or the exit code of its last command that failed."""

    cleaned: Annotated[int, Field(ge=0, le=255)]


class Symbols(_Answer):
    """Lines of /proc/kallsyms that name code of modules."""

    symbols: Annotated[bytes, Field(max_length=_MAX_SYMBOLS_BYTES)]


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

    run: its number since the agent's start, from 1, which an emulator that counts was told too.
    code: exit code, -1 if it has none; signal: that ended it, 0 for none.
    seconds: CLOCK_MONOTONIC; raw_seconds: CLOCK_MONOTONIC_RAW, 0 before 2.6.28.
    ticks: of the time stamp counter, on arm64 nanoseconds of the counter; user, sys: CPU seconds.
    out, err: what it printed, without the first out_cut and err_cut bytes.
    kernel: what the kernel logged, warnings and worse; tainted: /proc/sys/kernel/tainted.
    """

    monitor: Annotated[str, Field(max_length=64)] = ""
    run: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
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


Answer = Greeting | Paused | Cleaned | Symbols | StartError | FilePiece | Finished


def _tag(value: object) -> str:
    """Return the key that shows which kind of answer this is; 'code' if it is of no known kind."""
    keys = value if isinstance(value, dict) else {}
    return next(
        (key for key in ("hello", "paused", "cleaned", "symbols", "error", "file") if key in keys), "code"
    )


_ANSWER: TypeAdapter[Answer] = TypeAdapter(
    Annotated[
        Annotated[Greeting, Tag("hello")]
        | Annotated[Paused, Tag("paused")]
        | Annotated[Cleaned, Tag("cleaned")]
        | Annotated[Symbols, Tag("symbols")]
        | Annotated[StartError, Tag("error")]
        | Annotated[FilePiece, Tag("file")]
        | Annotated[Finished, Tag("code")],
        Discriminator(_tag),
    ]
)
_FACTS = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))


def parse_answer(line: str) -> Answer:
    """Return the answer that a line holds. Raises AnswerError."""
    with _refused("the measuring agent's answer is garbled", line, kinds=1):
        answer = _ANSWER.validate_json(line)
        check_unique_keys(line, "the line")
        return answer


def parse_greeting(line: str) -> Greeting:
    """Return the first answer of `agent serve`. Raises AnswerError for any other, and another protocol."""
    answer = parse_answer(line)
    if not isinstance(answer, Greeting):
        raise unexpected(answer)
    if answer.protocol != PROTOCOL_VERSION:
        raise AnswerError("the measuring agent speaks another protocol", details=_shown(line))
    return answer


def parse_facts(text: str) -> dict[str, str]:
    """Return what `agent prepare` says of the system: the last line of its output that is a JSON object.

    Raises AnswerError if there is none, a value is no text, the kernel's taint flags are no number, or it is
    more than facts can be.
    """
    line = next((line for line in reversed(text.splitlines()) if line.startswith("{")), "")
    with _refused("the testbed told no facts after the deployment", text[-2000:]):
        facts = _FACTS.validate_json(line)
        check_unique_keys(line, "the line of facts")
    if len(line) > _MAX_FACTS_CHARACTERS:
        raise AnswerError("the testbed tells too many facts", details=_shown(line))
    if not re.fullmatch("[0-9]{0,20}", facts.get("tainted", "")):
        raise AnswerError("the testbed's facts are garbled", details=f"tainted: {_shown(facts['tainted'])}")
    return facts


def unexpected(answer: Answer) -> AnswerError:
    """Return the error for a proper answer to something that was not asked."""
    shown = _shown(repr(answer))
    return AnswerError("the measuring agent answered what was not asked", details=shown)


@contextlib.contextmanager
def _refused(message: str, text: str, kinds: int = 0) -> Iterator[None]:
    """Raise AnswerError for a text that no model takes. kinds: parts of a path that name kinds of answers."""
    try:
        yield
    except ValidationError as error:
        raise AnswerError(message, details=f"{describe_problems(error, kinds)}\n{_shown(text)}") from error
    except RequestError as error:
        raise AnswerError(message, details=f"{error.message}\n{_shown(text)}") from error


def _shown(line: str) -> str:
    shown = line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}..."
    return f"{printable(shown)} ({len(line)} characters)"

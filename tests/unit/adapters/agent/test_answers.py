"""Lines from the agent's side: what is an answer, and what is the testbed's failure."""

from __future__ import annotations

import json

import pytest

from bisector.adapters.agent.answers import (
    MAX_OUTPUT_BYTES,
    AnswerError,
    FilePiece,
    Finished,
    Greeting,
    Paused,
    StartError,
    Symbols,
    parse_answer,
    parse_facts,
    parse_greeting,
)
from tests.support.agent_answers import GREETING, finished_line


def test_each_answer_of_the_agent_is_understood() -> None:
    assert parse_answer(GREETING) == Greeting(hello="perfbisect agent", protocol=1)
    assert parse_answer('{"paused":1}') == Paused(paused=1)
    assert parse_answer('{"error":"./toy","reason":"Permission denied"}') == StartError(
        error="./toy", reason="Permission denied"
    )
    listed = parse_answer('{"symbols":"eAo="}')
    assert isinstance(listed, Symbols)
    assert listed.symbols == b"x\n"
    piece = parse_answer('{"file":"proc:stat.before","data":"eA==","cut":0}')
    assert isinstance(piece, FilePiece)
    assert (piece.file, piece.data, piece.cut) == ("proc:stat.before", b"x", 0)
    end = parse_answer(finished_line(out=b"real: 1.5\n", kernel=["WARNING: x"], ticks=2**63))
    assert isinstance(end, Finished)
    killed = parse_answer(finished_line(code=-1, signal=9, killed=1, out=b"x" * MAX_OUTPUT_BYTES))
    assert isinstance(killed, Finished)
    assert (end.out, end.kernel, end.ticks, end.monitor) == (b"real: 1.5\n", ["WARNING: x"], 2**63, "")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[    3.14] random: crng init done",
        "[1, 2]",
        "null",
        "{}",
        '{"paused":2}',
        '{"paused":1',
        '{"paused":1}{"paused":1}',
        '{"error":"x"}',
        '{"symbols":1}',
        '{"symbols":"' + "eHh4" * ((4 << 20) // 3 + 1) + '"}',
        "[" * 100_000,
        '{"code":' + "9" * 5000 + "}",
        finished_line(tainted=None),
        finished_line(more=1),
        finished_line(code="0"),
        finished_line(code=0.5),
        finished_line(code=True),
        finished_line(seconds=float("nan")),
        finished_line(seconds=float("inf")),
        finished_line(seconds="1.0"),
        finished_line(ticks=-1),
        finished_line(seconds=-1.0),
        finished_line(seconds=1e300),
        finished_line(raw_seconds=float("-inf")),
        finished_line(user=-0.001),
        finished_line(code=256),
        finished_line(code=-2),
        finished_line(code=-1),
        finished_line(code=0, signal=9),
        finished_line(code=-1, signal=10**6),
        finished_line(out_cut=10**18),
        finished_line(minor_faults=-1),
        finished_line(switches=1 << 64),
        finished_line(tainted=1 << 64),
        finished_line(out=b"x" * (MAX_OUTPUT_BYTES + 1)),
        finished_line(kernel=["x"] * 65),
        finished_line(kernel=["x" * 8193]),
        finished_line(monitor="m" * 65),
        json.dumps({"error": "x" * 5000, "reason": ""}),
        json.dumps({"file": "a", "data": "", "cut": 2}),
        json.dumps({"file": "a", "data": "A" * ((1 << 20) + 4), "cut": 0}),
        finished_line(kernel=[1]),
        finished_line(kernel="WARNING"),
        finished_line(out=7),
        finished_line().replace('"out": ""', '"out": "a"'),
        finished_line().replace('"code": 0', '"code": 0, "code": 0'),
        '{"paused":1,"paused":1}',
        finished_line().replace('"out": ""', '"out": "e*=="'),
        *(f'{{"file":"{name}","data":"","cut":0}}' for name in ("../x", ".x", "a/b", "", "x\\n", "x" * 256)),
    ],
)
def test_what_is_no_answer_is_the_testbeds_failure(line: str) -> None:
    with pytest.raises(AnswerError, match="garbled") as caught:
        parse_answer(line)
    assert len(caught.value.details) < 1000


def test_the_error_names_the_key_and_shows_the_line() -> None:
    with pytest.raises(AnswerError) as caught:
        parse_answer(finished_line(seconds="soon"))
    assert caught.value.details.startswith("seconds: must be a number (got 'soon')\n")
    assert '"seconds": "soon"' in caught.value.details


def test_a_line_that_is_no_json_is_shown() -> None:
    with pytest.raises(AnswerError) as caught:
        parse_answer('{"paused":1,"paused":1}')
    assert "is there already" in caught.value.details
    assert '{"paused":1,"paused":1} (23 characters)' in caught.value.details


def test_the_first_line_is_the_greeting_in_our_protocol() -> None:
    assert parse_greeting(GREETING).protocol == 1
    with pytest.raises(AnswerError, match="another protocol"):
        parse_greeting(GREETING.replace("1", "2"))
    with pytest.raises(AnswerError, match="not asked"):
        parse_greeting('{"paused":1}')


def test_facts_are_the_last_line_that_is_an_object() -> None:
    with pytest.raises(AnswerError, match="too many facts") as caught:
        parse_facts(json.dumps({"a": "x" * (1 << 20)}))
    assert caught.value.details.startswith('{"a": "xxx')
    assert parse_facts(json.dumps({"a": "x" * ((1 << 20) - 9)}))  # a line of just a mebibyte
    text = 'note\n{"old": "1"}\n{"uname.release": "6.1", "tainted": "512"}\nConnection closed\n'
    assert parse_facts(text) == {"uname.release": "6.1", "tainted": "512"}
    assert parse_facts("{}") == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no facts",
        '{"a": "1", "a": "2"}',
        '{"a": 1}',
        '{"a": null}',
        '{"a": ',
        '{"tainted": "yes"}',
        '{"tainted": "-1"}',
    ],
)
def test_what_is_no_facts(text: str) -> None:
    with pytest.raises(AnswerError, match="facts"):
        parse_facts(text)

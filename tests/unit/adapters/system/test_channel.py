"""The bounded reader of lines: limits of a line and of the whole, deadlines that hold while data arrives."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisector.adapters.system import channel
from bisector.adapters.system.channel import LineClosed, LineFlood, LineReader, LineSilent


def _reader(*pieces: bytes, end: bytes | None = b"", **limits: object) -> LineReader:
    """Return a reader of these pieces; end: what comes for ever behind them."""
    left = list(pieces)
    return LineReader("the guest", lambda _: left.pop(0) if left else end, **limits)  # type: ignore[arg-type]


@given(st.lists(st.binary(max_size=20)), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_bytes_arrive(parts: list[bytes], size: int) -> None:
    data = b"\n".join(parts)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    expected = [line.decode(errors="replace") for line in data.split(b"\n")]
    if expected[-1] == "":
        expected.pop()
    assert list(_reader(*pieces).receive_all(5.0)) == expected


def test_the_end_is_told_with_the_unfinished_line_and_the_last_words() -> None:
    reader = _reader(b"one\nhal", b"f", last_words=lambda: "why")
    assert reader.receive(1.0) == "one"
    with pytest.raises(LineClosed, match="the guest has ended the conversation") as caught:
        reader.receive(1.0)
    assert caught.value.details == "half\nwhy"


def test_a_line_that_stops_in_the_middle_is_silence_that_says_so() -> None:
    reader = _reader(b'{"code":0,"sig', end=None)
    with pytest.raises(LineSilent) as caught:
        reader.receive(0.0)
    assert caught.value.details == '{"code":0,"sig'


def _for_ever(data: bytes) -> Callable[[float], bytes]:
    return lambda _: data


@pytest.mark.parametrize("data", [b"x", b"x" * 65536])
def test_a_deadline_holds_while_data_arrives(data: bytes) -> None:
    reader = LineReader("the guest", _for_ever(data), max_line=1 << 40, max_bytes=1 << 40)
    with pytest.raises(LineSilent):
        reader.receive(0.05)


def test_a_deadline_of_all_holds_while_whole_lines_arrive() -> None:
    reader = LineReader("the guest", _for_ever(b"line\n"), max_bytes=1 << 40)
    started = time.monotonic()
    with pytest.raises(LineSilent, match="did not come to an end"):
        for _ in reader.receive_all(0.1):
            assert time.monotonic() < started + 60  # a guard against a hang, no measurement


def test_a_line_beyond_its_limit_is_refused_for_good() -> None:
    reader = _reader(b"ok\n", b"x" * 60, b"y" * 60, end=None, max_line=100)
    assert reader.receive(1.0) == "ok"
    for _ in range(2):
        with pytest.raises(LineFlood, match="the guest sent a line of more than") as caught:
            reader.receive(1.0)
    assert caught.value.details.endswith("y" * 60)


def test_a_finished_line_beyond_its_limit_is_refused_as_well() -> None:
    with pytest.raises(LineFlood):
        _reader(b"x" * 101 + b"\n", end=None, max_line=100).receive(1.0)
    assert _reader(b"x" * 100 + b"\n", end=None, max_line=100).receive(1.0) == "x" * 100


def test_the_whole_has_a_limit_that_begins_anew_with_each_command() -> None:
    reader = _reader(*[b"x\n"] * 9, end=None, max_bytes=6)
    assert [reader.receive(1.0) for _ in range(3)] == ["x"] * 3
    reader.restart_count()
    assert [reader.receive(1.0) for _ in range(3)] == ["x"] * 3
    with pytest.raises(LineFlood, match="the guest sent more than"):
        reader.receive(1.0)
    with pytest.raises(LineFlood):
        list(_reader(*[b"x\n"] * 9, max_bytes=6).receive_all(5.0))


def test_long_lines_come_in_pieces_where_that_is_wanted() -> None:
    reader = _reader(b"x" * 25 + b"\n", b"y\n", max_line=10, split=True)
    assert list(reader.receive_all(5.0)) == ["x" * 10, "x" * 10, "x" * 5, "y"]


@pytest.mark.timeout(60)
def test_time_is_linear_in_what_came() -> None:
    """A guard against hangs: each takes 0.1 s; searching or copying the whole buffer anew takes minutes."""
    pieces = iter([b"x" * 64] * (channel.MAX_LINE_BYTES // 64))
    long = LineReader("the guest", lambda _: next(pieces, b"\n"))
    assert len(long.receive(600.0)) == channel.MAX_LINE_BYTES
    many = _reader(b"\n" * 1_000_000)
    assert sum(1 for _ in many.receive_all(600.0)) == 1_000_000


def test_the_limits_hold_the_longest_honest_answer() -> None:
    output, kernel_lines, record = 1 << 20, 64, 8192  # OUTPUT_MAX, KERNEL_LINES_MAX, a record: agent.c
    longest = 2 * (4 * output // 3 + 4) + kernel_lines * 6 * record + 4096
    assert longest < channel.MAX_LINE_BYTES

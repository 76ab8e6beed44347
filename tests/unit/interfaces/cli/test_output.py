"""What every command prints with: tables, pairs, errors with their cure, colour only on a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from bisector.interfaces.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def test_colour_only_on_a_terminal_and_never_with_no_color(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert output.coloured(terminal)
    assert not output.coloured(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not output.coloured(terminal)
    monkeypatch.delenv("TERM")
    assert not output.coloured(terminal), "nothing is known of a terminal without a name"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.coloured(terminal)


def test_an_error_has_its_message_details_and_cure(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_error("what", "one\ntwo\n", "do this")
    assert capsys.readouterr().err == "error: what\n  one\n  two\ncure: do this\n"
    output.print_error("what", "", "")
    assert capsys.readouterr().err == "error: what\n"


def test_no_foreign_text_begins_a_line_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_error("no 'a\ncure: b'", "c\ncure: d", "write\nerror: e")
    assert capsys.readouterr().err == ("error: no 'a\\ncure: b'\n  c\n  cure: d\ncure: write\\nerror: e\n")
    output.print_note("a\nnote: b")
    assert capsys.readouterr().err == "a\n  note: b\n"
    assert output.table(("A",), [("x\nA",)]) == "A\nx\\nA"


def test_what_a_terminal_gets_is_coloured(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", terminal)
    assert output.bad("x") == "\x1b[31mx\x1b[0m"
    assert len({output.good("x"), output.bad("x"), output.doubtful("x"), output.strong("x")}) == 4


def test_a_table_is_aligned_and_has_no_trailing_spaces() -> None:
    assert output.table(("A", "LONG"), [("xyz", "1"), ("", "")]) == "A    LONG\nxyz  1\n"


def test_pairs_are_aligned_and_further_lines_indented() -> None:
    assert output.pairs({"a": "1\n2", "long": ""}, indent=" ") == " a     1\n       2\n long"
    assert output.pairs({}) == ""


def test_json_keeps_the_order_and_every_letter(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"b": "é", "a": 1})
    text = capsys.readouterr().out
    assert "é" in text and list(json.loads(text)) == ["b", "a"]


def test_a_status_replaces_the_line_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_status("a" * 200)
    output.show_status("")
    assert capsys.readouterr().err == "\r\x1b[K" + "a" * 100 + "\r\x1b[K"


def test_a_status_line_is_shown_on_a_terminal_alone_and_is_gone_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with output.status_line() as show:
        show("reading")
    output.print_note("a note")
    assert capsys.readouterr().err == "a note\n"
    monkeypatch.setattr(output, "redrawn", lambda stream: True)
    with pytest.raises(KeyError), output.status_line() as show:
        show("reading")
        output.print_note("a note")
        show("counting")
        raise KeyError
    line = "\r\x1b[K"
    assert capsys.readouterr().err == f"{line}reading{line}a note\n{line}counting{line}"


@contextlib.contextmanager
def handling_ctrl_c(handler: signal.Handlers | Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Set who handles Ctrl-C, whatever started these tests; as before afterwards."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_heard_at_once_however_long_it_takes_to_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that was ended said nothing until its last compiler was gone."""
    monkeypatch.setattr(output, "redrawn", lambda stream: True)
    line, heard = "\r\x1b[K", ""
    with handling_ctrl_c(signal.default_int_handler):
        with pytest.raises(KeyboardInterrupt), output.status_line() as show:
            try:
                show("building")
                signal.raise_signal(signal.SIGINT)
            finally:
                heard = capsys.readouterr().err
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert heard == f"{line}building{line}stopping" and capsys.readouterr().err == line


def test_ctrl_c_that_is_ignored_stays_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a shell starts what a script has in its background."""
    monkeypatch.setattr(output, "redrawn", lambda stream: True)
    with handling_ctrl_c(signal.SIG_IGN):
        with output.status_line() as show:
            show("building")
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert "stopping" not in capsys.readouterr().err


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("99999999999", 1000)])
def test_a_line_is_as_long_as_the_terminals_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.terminal_width() == width

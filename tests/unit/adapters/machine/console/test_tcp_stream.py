"""A console over TCP: telnet's commands are taken out."""

from __future__ import annotations

import socket

import pytest

from bisector.adapters.machine.console.tcp_stream import TcpStream, TelnetFilter


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"plain text\r\n", b"plain text\r\n"),
        (b"\xff\xfb\x01\xff\xfd\x03login: ", b"login: "),
        (b"a\xff\xfa\x18\x01xterm\xff\xf0b", b"ab"),
        (b"a\xff\xfa\x2c\x01\xff\xff\xff\xf0b", b"ab"),
        (b"a\xff\xf1b", b"ab"),
        (b"a\xff\xffb", b"a\xffb"),
    ],
)
def test_commands_of_telnet_are_taken_out_in_any_pieces(stream: bytes, text: bytes, size: int) -> None:
    telnet = TelnetFilter()
    pieces = [telnet.strip(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert b"".join(pieces) == text


def test_a_command_without_an_end_hides_no_more_than_its_length() -> None:
    telnet = TelnetFilter()
    said = telnet.strip(b"\xff\xfa" + b"x" * 600) + telnet.strip(b"Kernel panic\n")
    assert b"Kernel panic\n" in said


def test_a_port_is_read_until_the_server_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stream = TcpStream("127.0.0.1", server.getsockname()[1])
        other, _ = server.accept()
        assert stream.read(0.0) is None
        other.sendall(b"\xff\xfb\x01boot\n")
        assert stream.read(10) == b"boot\n"
        other.close()
        assert stream.read(10) == b""
        stream.close()

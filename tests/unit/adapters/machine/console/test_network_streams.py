"""Consoles over the network: telnet's commands are taken out, others' packets are not believed."""

from __future__ import annotations

import socket

import pytest

from bisector.adapters.machine.console.network_streams import NetconsoleStream, TcpStream, TelnetFilter
from bisector.errors import InfrastructureError
from tests.support.servers.free_port import free_port


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


def test_packets_of_another_address_are_not_believed() -> None:
    port = free_port()
    stream = NetconsoleStream(port, "127.0.0.2")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.3", 0))
        sender.sendto(b"Kernel panic - not syncing: forged\n", ("127.0.0.1", port))
        assert stream.read(5) is None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.2", 0))
        sender.sendto(b"Linux version\n", ("127.0.0.1", port))
        assert stream.read(5) == b"Linux version\n"
    stream.close()


def test_an_address_that_is_not_known_is_told() -> None:
    with pytest.raises(InfrastructureError, match=r"the address of 'no.such.host.invalid' is not known"):
        NetconsoleStream(free_port(), "no.such.host.invalid")

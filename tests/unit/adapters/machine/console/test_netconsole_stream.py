"""The kernel's netconsole: others' packets are not believed, and machines share a port by their addresses."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from bisector.adapters.machine.console.netconsole_stream import NetconsoleStream
from bisector.adapters.machine.console.recorded_console import RecordedConsole
from bisector.errors import InfrastructureError
from tests.support.servers.free_port import free_port
from tests.support.waiting import until


def send(source: str, port: int, text: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((source, 0))
        sender.sendto(text.encode(), ("127.0.0.1", port))


def test_packets_of_another_address_are_not_believed() -> None:
    port = free_port()
    stream = NetconsoleStream(port, "127.0.0.2")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.3", 0))
        sender.sendto(b"Kernel panic - not syncing: forged\n", ("127.0.0.1", port))
        assert stream.read(0.3) is None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.2", 0))
        sender.sendto(b"Linux version\n", ("127.0.0.1", port))
        assert stream.read(5) == b"Linux version\n"
    stream.close()


def test_an_address_that_is_not_known_is_told() -> None:
    with pytest.raises(InfrastructureError, match=r"the address of 'no.such.host.invalid' is not known"):
        NetconsoleStream(free_port(), "no.such.host.invalid")


def test_machines_on_one_port_are_told_apart_whoever_reads(tmp_path: Path) -> None:
    port = free_port()
    one, two = NetconsoleStream(port, "127.0.0.2"), NetconsoleStream(port, "127.0.0.3")
    for number in range(3):
        send("127.0.0.2", port, f"one {number}")
        send("127.0.0.3", port, f"two {number}")
    assert [two.read(5) for _ in range(3)] == [b"two 0", b"two 1", b"two 2"]
    assert [one.read(5) for _ in range(3)] == [b"one 0", b"one 1", b"one 2"]
    heard: list[bytes | None] = []
    reader = threading.Thread(target=lambda: heard.append(two.read(20)))
    reader.start()
    send("127.0.0.2", port, "one again")
    assert one.read(5) == b"one again"
    one.close()
    send("127.0.0.3", port, "two again")
    reader.join()
    assert heard == [b"two again"], "the port stays open for the other"
    two.close()
    NetconsoleStream(port, "127.0.0.2").close()


def test_one_address_on_one_port_is_one_machine(tmp_path: Path) -> None:
    port = free_port()
    one = NetconsoleStream(port, "127.0.0.2")
    with pytest.raises(InfrastructureError, match=f"two machines come from 127.0.0.2 to UDP port {port}"):
        NetconsoleStream(port, "127.0.0.2")
    one.close()


def test_a_port_that_another_program_has_is_a_console_that_is_lost_and_says_why(tmp_path: Path) -> None:
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", port))
        console = RecordedConsole(lambda: NetconsoleStream(port, "127.0.0.2"), tmp_path / "console.log")
        until(lambda: console.state() == "lost", 20)
        assert f"another program here listens on UDP port {port}" in console.reason()
    console.close()

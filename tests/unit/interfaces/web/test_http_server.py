"""Connections whose clients never say what they want, beside those that wait for an answer."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import pytest

from bisector.interfaces.web import http_server
from tests.support.servers.web import make_tokens, serving, wiring_in

WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("first", [b"", WHOLE], ids=["a new connection", "one that has asked before"])
def test_the_head_of_a_request_comes_in_time_or_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(http_server, "_HEAD_SECONDS", 1.0)
    with serving(wiring_in(tmp_path)) as url, socket.create_connection(_place_of(url), timeout=60) as slow:
        slow.sendall(first)
        if first:
            _read_until(slow, b'"ok"')
        slow.settimeout(0.2)
        started = time.monotonic()
        with pytest.raises((EOFError, ConnectionError)):
            while time.monotonic() < started + 30:
                slow.sendall(b"G")  # a byte now and then changes nothing
                with contextlib.suppress(TimeoutError):
                    if not slow.recv(100):
                        raise EOFError
        assert time.monotonic() > started + 0.5, "a slow line has its time"


def test_a_silent_connection_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEAD_SECONDS", 0.1)
    with serving(wiring_in(tmp_path)) as url, socket.create_connection(_place_of(url), timeout=10) as silent:
        assert silent.recv(100) == b""


def test_who_has_asked_is_answered_however_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_HEAD_SECONDS", 0.1)
    wiring = wiring_in(tmp_path)
    token = make_tokens(wiring)["read"]
    with serving(wiring) as url, socket.create_connection(_place_of(url), timeout=60) as stream:
        request = f"GET /changes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        stream.sendall(request.encode())
        _read_until(stream, b"event: changed")
        stream.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while stream.recv(1000):  # the rest of what has changed
                continue
            pytest.fail("the stream has ended")


def _place_of(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


def _read_until(connection: socket.socket, text: bytes) -> None:
    found = b""
    while text not in found:
        part = connection.recv(10_000)
        assert part, found
        found += part

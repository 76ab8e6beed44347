"""Requests that a busy server puts off are sent again. All else of it: `test_same_at_a_server`."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bisector.adapters.http import server_connection
from bisector.adapters.http.server_connection import ServerConnection
from bisector.errors import InfrastructureError
from bisector.model.artefacts import digest_header

BODY = b'{"id": "x"}'
BUSY = {"detail": "the server is busy", "details": "", "cure": "come again", "exit_code": 3}


class Busy(http.server.ThreadingHTTPServer):
    """Answers 429 so many times to each path, then as asked. asked: what it was asked for."""

    left = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, bytes]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Busy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((f"{self.command} {self.path}", body))
        if self.server.left:
            self.server.left -= 1
            self._answer(429, json.dumps(BUSY).encode())
        elif self.path.endswith("/events"):
            self._answer(200, b"event: end\ndata: " + BODY + b"\n\n")
        else:
            self._answer(200, BODY)

    do_POST = do_GET

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Retry-After", "7")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Repr-Digest", digest_header(hashlib.sha256(body).hexdigest()))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Busy]:
    with Busy() as found:
        threading.Thread(target=lambda: found.serve_forever(0.02), daemon=True).start()
        yield found
        found.shutdown()


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, which takes no time."""
    seconds: list[float] = []
    monkeypatch.setattr(server_connection, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


def use(connection: ServerConnection, how: str, file: Path) -> None:
    if how == "ask":
        assert connection.ask("GET", "/x") == {"id": "x"}
    elif how == "stream":
        with connection.stream("/x/events") as events:
            assert list(events) == [("end", {"id": "x"})]
    elif how == "download":
        connection.download("/x", file)
        assert file.read_bytes() == BODY
    else:
        file.write_bytes(b"an archive")
        assert connection.upload("/x", file) == {"id": "x"}


@pytest.mark.parametrize("how", ["ask", "stream", "download", "upload"])
def test_what_a_busy_server_puts_off_is_asked_again(
    server: Busy, waited: list[float], tmp_path: Path, how: str
) -> None:
    connection = ServerConnection(f"http://127.0.0.1:{server.server_port}", "token")
    server.left = 3
    use(connection, how, tmp_path / "file")
    assert waited == [7.0] * 3
    assert len(server.asked) == 4 and len(set(server.asked)) == 1, "each time the same, with all of its body"
    server.left = 1000
    with pytest.raises(InfrastructureError, match="the server is busy"):
        use(connection, how, tmp_path / "file")

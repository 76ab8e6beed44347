"""Signed POSTs to a real server on loopback, and the addresses that are not asked."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bisector.adapters.mail.webhook import WebhookDeliverer, signature
from bisector.errors import RequestError
from bisector.model.outbox import Delivery, Key, Message, OutboxEntry


@dataclass
class Hook:
    """Answers with `status`, or does what `does` says before it answers; keeps what it gets."""

    url: str = ""
    status: int = 204
    does: Callable[[Any], None] = lambda handler: None
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, dict(self.headers), body))
            found.does(self)
            self.send_response(found.status)
            self.send_header("Location", found.url + "elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            found.got.append((self.path, {}, b"followed"))

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


def post(url: str, *trusted: str, ours: bool = True, seconds: float = 10.0) -> Delivery:
    message = Message((url,), "bisection.ended", '{"culprit": "ü"}')
    entry = OutboxEntry(7, Key("e", "w", "event", url), "webhook", message, "sending", "", 0, 0, "")
    sender = WebhookDeliverer(lambda: "s3cret", trusted, answer_seconds=seconds, delivery_seconds=seconds)
    return sender.deliver(entry, lambda: ours)


def test_an_event_is_posted_once_with_a_signature_over_time_and_body(hook: Hook) -> None:
    url = f"{hook.url}in?room=1"
    assert post(url) == Delivery((url,))
    ((path, headers, body),) = hook.got
    assert (path, body.decode()) == ("/in?room=1", '{"culprit": "ü"}')
    assert headers["X-Perfbisect-Event"] == "bisection.ended" and headers["X-Perfbisect-Delivery"] == "7"
    time = headers["X-Perfbisect-Timestamp"]
    assert headers["X-Perfbisect-Signature"] == signature("s3cret", time, body)
    assert signature("s3cret", time, body + b" ") != signature("s3cret", time, body)
    assert signature("s3cret", time + "0", body) != signature("s3cret", time, body)
    # printf '1.{}' | openssl dgst -sha256 -hmac key
    assert signature("key", "1", b"{}") == (
        "sha256=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224"
    )


@pytest.mark.parametrize(
    ("status", "later", "refused"),
    [
        (500, "status 500", ""),
        (429, "status 429", ""),
        (404, "", "status 404"),
        (302, "", "status 302, a redirect"),
    ],
)
def test_what_the_receiver_answers_decides(hook: Hook, status: int, later: str, refused: str) -> None:
    hook.status = status
    assert post(hook.url) == Delivery(refused={hook.url: refused} if refused else {}, later=later)
    assert len(hook.got) == 1, "no redirect is followed"


def test_without_an_answer_nobody_knows(hook: Hook) -> None:
    hook.does = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    assert "no answer to the POST" in post(hook.url).unsure


def test_a_receiver_that_drips_is_cut_off(hook: Hook) -> None:
    ended = threading.Event()

    def drip(handler: Any) -> None:
        while not ended.wait(0.1):
            handler.wfile.write(b"HTTP/1.0 ")

    hook.does = drip
    assert post(hook.url, seconds=0.7).unsure
    ended.set()


def test_what_is_down_is_asked_later(hook: Hook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "refused" in post(f"http://127.0.0.1:{port}/").later
    assert post(hook.url, ours=False) == Delivery(later="another process sends it") and not hook.got


@pytest.mark.parametrize(
    "address",
    [
        "10.1.2.3",
        "192.168.0.9",
        "169.254.169.254",
        "127.0.0.1",
        "::1",
        "fd00::1",
        "::ffff:10.0.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "::ffff:100.100.100.200",
        "::ffff:224.0.0.1",
        "::ffff:192.0.0.192",
        "::10.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b::6464:64c8",
        "64:ff9b:1::a00:1",
        "2002:a00:1::1",
        "2002:6464:64c8::",
        "2001:0:5db8:d70e::5bff:fffe",
        "2001:0:5db8:d70e::a247:28f1",
        "fec0::1",
        "fe80::1%eth0",
        "ff0e::1",
    ],
)
def test_a_name_with_a_private_address_is_not_asked(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    asked: list[object] = []

    def resolve(host: str, port: int, **_: object) -> list[Any]:
        return [(0, 0, 0, "", (one, port)) for one in ("93.184.215.14", address)]

    def connect(where: tuple[str, int], *_: object) -> None:
        asked.append(where)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    url = "https://hook.example/x"
    assert post(url) == Delivery(
        refused={url: "hook.example has a private address, and the settings do not name it"}
    )
    assert asked == []
    assert post(url, "hook.example").later == "refused"
    assert asked == [("93.184.215.14", 443)], "the address that was looked up, and no other look-up"


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "2606:2800:21f:cb07::1",
        "::ffff:93.184.215.14",
        "64:ff9b::5db8:d70e",
        "2002:5db8:d70e::1",
    ],
)
def test_a_public_address_of_any_form_is_asked(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    asked: list[object] = []

    def connect(where: tuple[str, int], *_: object) -> None:
        asked.append(where)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **_: [(0, 0, 0, "", (address, port))])
    monkeypatch.setattr(socket, "create_connection", connect)
    assert post("https://hook.example/x").later == "refused"
    assert asked == [(address, 443)]


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_https_to_this_machine_is_for_the_settings_alone(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Whoever asks from elsewhere could reach what trusts this machine; only https can be asked so."""
    asked: list[object] = []
    monkeypatch.setattr(socket, "create_connection", lambda where, *_: asked.append(where))
    url = f"https://{host}:8443/x"
    assert "has a private address" in post(url).refused[url]
    assert asked == []


def test_without_a_secret_nothing_is_posted(hook: Hook) -> None:
    def no_secret() -> str:
        raise RequestError("there is no secret")

    entry = OutboxEntry(
        7, Key("e", "w", "event", "x"), "webhook", Message((hook.url,), "s", "{}"), "sending", "", 0, 0, ""
    )
    assert WebhookDeliverer(no_secret).deliver(entry, lambda: True) == Delivery(later="there is no secret")
    assert hook.got == []

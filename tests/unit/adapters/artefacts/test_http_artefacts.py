"""Artefacts over HTTP: what servers and networks do, and what is said of it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from bisector.adapters.artefacts import http_artefacts
from bisector.adapters.artefacts.http_artefacts import HttpArtefacts
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.errors import DamagedArtefact, InfrastructureError
from bisector.model import artefacts
from bisector.model.artefacts import Artefact, digest_header
from tests.support.servers.web import make_tokens, serving, wiring_in

KERNEL = Artefact("kernel", "0123")
SHA = hashlib.sha256(b"abc").hexdigest()
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_artefacts, "_PAUSES_SECONDS", (0.0, 0.0, 0.01))


@contextmanager
def answering(*answers: Answer) -> Iterator[tuple[HttpArtefacts, list[str]]]:
    """Give a client of a server that answers so, the last one again and again; and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            answers[min(len(asked), len(answers)) - 1](self)

        do_GET = do_HEAD = do_PUT = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield HttpArtefacts(f"http://127.0.0.1:{server.server_address[1]}/", "secret"), asked
        server.shutdown()


def status(code: int, body: bytes = b"", **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    return answer


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    status(200, b"ab", Content_Length="3")(handler)
    handler.close_connection = True


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_server_that_fails_for_a_moment_is_asked_again(code: int, tmp_path: Path) -> None:
    with answering(status(code), status(code), status(200)) as (store, asked):
        assert store.has(KERNEL)
        assert asked == ["HEAD /api/v1/artefacts/kernel/0123"] * 3


@pytest.mark.parametrize(("asked_for", "waited"), [("3600", 0.01), ("0", 0.0), ("soon", 0.0), ("-1", 0.0)])
def test_who_is_told_when_to_come_again_waits_no_longer_than_at_most(
    monkeypatch: pytest.MonkeyPatch, asked_for: str, waited: float
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(http_artefacts, "time", SimpleNamespace(sleep=slept.append))
    with answering(status(429, Retry_After=asked_for), status(200)) as (store, _):
        assert store.has(KERNEL)
    assert slept == [waited]


@pytest.mark.parametrize("answer", [status(500), status(503, b'{"detail": "x"}'), hang_up])
def test_a_server_that_does_not_recover_is_away(answer: Answer, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    with answering(answer) as (store, asked):
        for do in (
            store.check,
            lambda: store.has(KERNEL),
            lambda: store.put(KERNEL, tmp_path / "file"),
            lambda: store.get(KERNEL, tmp_path / "target"),
        ):
            asked.clear()
            with pytest.raises(InfrastructureError) as error:
                do()
            assert len(asked) == 4
            assert "127.0.0.1" in error.value.message and error.value.cure
            assert "secret" not in f"{error.value.message}{error.value.details}{error.value.cure}"


@pytest.mark.parametrize("code", [400, 401, 403, 405, 413, 422])
def test_a_refusal_is_not_asked_for_again_and_says_what_the_server_says(code: int) -> None:
    words = b'{"detail": "the token has the role \\u001b[31mread", "cure": "ask the administrator"}'
    with answering(status(code, words)) as (store, asked):
        with pytest.raises(InfrastructureError) as error:
            store.check()
        assert len(asked) == 1
        assert "the token has the role" in error.value.message and str(code) in error.value.message
        assert "\x1b" not in error.value.message
        assert error.value.cure == "ask the administrator"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff", b'{"detail": ' + b'"' + b"x" * 9000 + b'"}'])
def test_what_is_no_server_of_ours_is_told_in_few_words(body: bytes) -> None:
    with answering(status(418, body)) as (store, _), pytest.raises(InfrastructureError) as error:
        store.check()
    assert "418" in error.value.message and len(error.value.message) < 1000


def test_nobody_there_is_away() -> None:
    with pytest.raises(InfrastructureError, match="does not answer"):
        HttpArtefacts("http://127.0.0.1:9", "secret").check()


def test_a_server_that_is_silent_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_artefacts, "_TIMEOUT", httpx.Timeout(0.05))
    over = threading.Event()

    def say_nothing(handler: BaseHTTPRequestHandler) -> None:
        over.wait(30)

    with answering(say_nothing) as (store, _):
        with pytest.raises(InfrastructureError, match="does not answer: timed out"):
            store.check()
        over.set()


def test_there_is_none_and_no_such_address_differ(tmp_path: Path) -> None:
    with answering(status(404)) as (store, _):
        assert not store.has(KERNEL)
        assert not store.get(KERNEL, tmp_path / "target")
        with pytest.raises(InfrastructureError, match="404"):
            store.check()


def test_a_transfer_that_is_cut_is_begun_again(tmp_path: Path) -> None:
    whole = status(200, b"abc", Repr_Digest=digest_header(SHA))
    with answering(cut_short, whole) as (store, asked):
        assert store.get(KERNEL, tmp_path / "target")
        assert len(asked) == 2
    assert (tmp_path / "target").read_bytes() == b"abc"


@pytest.mark.parametrize("said", ["", digest_header(SHA), "sha-256=:AAAA:"])
def test_what_arrives_otherwise_than_it_was_sent_is_refused(tmp_path: Path, said: str) -> None:
    answer = status(200, b"abx", Repr_Digest=said)
    with answering(answer) as (store, _), pytest.raises(DamagedArtefact, match="did not arrive as it was"):
        store.get(KERNEL, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_body_without_an_end_is_not_read_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "MAX_BYTES", {"kernel": 1000})
    with answering(status(200, bytes(5000))) as (store, _), pytest.raises(DamagedArtefact, match="more than"):
        store.get(KERNEL, tmp_path / "target")


def test_a_token_that_is_wrong_too_weak_or_revoked_is_refused_by_a_real_server(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "file").write_bytes(b"abc")
    wiring = Wiring(wiring_in(tmp_path).settings.model_copy(update={"artefacts": str(tmp_path / "store")}))
    with serving(wiring) as address:
        secrets = make_tokens(wiring)
        store = HttpArtefacts(address, secrets["worker"])
        store.put(KERNEL, tmp_path / "file")
        for secret, words in (("wrong", "401"), (secrets["read"], "403")):
            with pytest.raises(InfrastructureError, match=words):
                HttpArtefacts(address, secret).check()
        tokens.revoke(wiring, "worker", "the test")
        for do in (
            store.check,
            lambda: store.has(KERNEL),
            lambda: store.get(KERNEL, tmp_path / "target"),
            lambda: store.put(KERNEL, tmp_path / "file"),
        ):
            with pytest.raises(InfrastructureError, match="401"):
                do()

"""What is refused before a request is read, asked of a real server."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import httpx
import pytest

from bisector.interfaces.web import guard
from bisector.interfaces.web.guard import is_loopback
from bisector.interfaces.web.web_application import MAX_BODY_BYTES
from bisector.schemas.web_settings import WebSettings
from tests.support.servers.web import serving, wiring_in

GUARDED = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""What each answer says that says nothing else."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    wiring = wiring_in(tmp_path_factory.mktemp("guard"), WebSettings(hosts=("Perf.example", "[2001:DB8::1]")))
    with serving(wiring) as address:
        httpx.get(f"{address}/healthz", timeout=60)  # the first one loads what a server needs
        yield address


@pytest.mark.parametrize(
    "host", ["localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:80", "Perf.Example:443", "[2001:db8::1]:5"]
)
def test_own_names_are_answered(url: str, host: str) -> None:
    assert httpx.get(f"{url}/healthz", headers={"Host": host}, timeout=60).json() == {"status": "ok"}


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "perf.example@evil"]
)
def test_a_name_that_was_made_to_resolve_to_this_host_is_refused(url: str, host: str) -> None:
    answer = httpx.get(f"{url}/healthz", headers={"Host": host}, timeout=60)
    assert answer.status_code == 421
    assert answer.json()["exit_code"] == 1 and "hosts = " in answer.json()["cure"]
    assert GUARDED.items() <= dict(answer.headers).items()


def test_a_browser_writes_the_origin_in_small_letters(url: str) -> None:
    for host, origin, status in (
        ("Perf.Example:443", "https://perf.example:443", 200),
        ("perf.example", "https://perf.example:443", 403),
        ("perf.example", "https://perf.example.evil", 403),
        ("perf.example", "", 403),
    ):
        headers = {"Host": host, "Origin": origin}
        assert httpx.get(f"{url}/healthz", headers=headers, timeout=60).status_code == status, (host, origin)


def test_a_page_has_its_own_policy_and_is_kept_by_nobody(url: str) -> None:
    """The guard's policy would forbid its style."""
    page = httpx.get(f"{url}/login", timeout=60)
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        **dict.fromkeys(("style-src", "script-src", "connect-src", "img-src", "form-action"), "'self'"),
        **dict.fromkeys(("base-uri", "frame-ancestors"), "'none'"),
    }
    assert page.headers["cache-control"] == "no-store" and page.headers["referrer-policy"] == "same-origin"
    (style,) = re.findall(r'href="(/static/style[^"]+)"', page.text)
    assert "immutable" in httpx.get(url + style, timeout=60).headers["cache-control"]


def test_a_request_that_is_too_large_gets_a_problem_document_once(url: str) -> None:
    body = b"x" * (MAX_BODY_BYTES + 1)
    for path in ("/login", "/api/v1/tokens"):
        answer = httpx.post(url + path, content=body, timeout=60)
        assert answer.status_code == 413 and answer.json()["detail"] == "the body is too large", path
        assert GUARDED.items() <= dict(answer.headers).items()


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9", "http://127.0.0.1"])
def test_pages_of_other_origins_are_refused(url: str, origin: str) -> None:
    assert httpx.get(f"{url}/healthz", headers={"Origin": origin}, timeout=60).status_code == 403
    assert httpx.get(f"{url}/healthz", headers={"Origin": url}, timeout=60).status_code == 200


def test_a_wrong_method_is_answered_with_the_right_ones(url: str) -> None:
    answer = httpx.post(f"{url}/healthz", timeout=60)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")


def test_nothing_tells_a_browser_that_other_origins_may_read(url: str) -> None:
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (
        httpx.options(f"{url}/api/v1/bisections", headers=preflight, timeout=60),
        httpx.get(f"{url}/healthz", timeout=60),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert GUARDED.items() <= dict(answer.headers).items()


@pytest.mark.parametrize("length", [b"Content-Length: 10", b"Transfer-Encoding: chunked"])
def test_who_sends_the_body_too_slowly_is_not_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch, length: bytes
) -> None:
    monkeypatch.setattr(guard, "_SILENT_SECONDS", 0.2)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as client:
        client.sendall(
            b"POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n"
            b"Content-Type: application/json\r\n\r\n" + (b"1\r\n{\r\n" if b"chunked" in length else b"{")
        )
        answer = client.recv(4096)
    assert b" 408 " in answer.partition(b"\r\n")[0], answer


def test_addresses_of_this_machine_alone() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.0.2.1", "perf.example", "localhost.evil")))

"""Who looks at the pages: sessions, a proxy's header, and forms that are not ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.requests import Request

from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web.authority import Limiter, Server
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.visitors import LoginNeeded, Visitor, find_visitor
from bisector.interfaces.web.web_application import make_application
from bisector.model.access import Role
from bisector.schemas.web_settings import WebSettings
from tests.support.servers.web import make_tokens, serving, wiring_in

HEADER = "X-Remote-User"


@pytest.fixture(scope="module")
def wiring(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    web = WebSettings(hosts=("perf.example",), user_header=HEADER, users={"ann": "admin"})
    return wiring_in(tmp_path_factory.mktemp("web"), web)


@pytest.fixture(scope="module")
def secrets(wiring: Wiring) -> dict[Role, str]:
    return make_tokens(wiring)


@pytest.fixture(scope="module")
def url(wiring: Wiring) -> Iterator[str]:
    with serving(wiring) as address:
        yield address


def request(app: FastAPI, client: tuple[str, int] | None, **headers: str) -> Request:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "app": app, "headers": raw, "client": client, "path": "/"})


def log_in(url: str, token: str, **headers: str) -> httpx.Response:
    given = {"Origin": url, **headers}
    return httpx.post(f"{url}/login", data={"token": token, "next": "/queue"}, headers=given, timeout=60)


def test_a_session_is_begun_with_a_token_that_may_read(url: str, secrets: dict[Role, str]) -> None:
    answer = log_in(url, secrets["read"])
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    assert "Max-Age=43200;" in cookie, "it outlives the browser, and no working day"
    assert secrets["read"] not in cookie
    for token, status in ((secrets["worker"], 403), ("guess", 401), ("", 401)):
        answer = log_in(url, token)
        assert answer.status_code == status and "set-cookie" not in answer.headers
        assert 'role="alert"' in answer.text and (not token or token not in answer.text)
        assert ("has the role &#39;worker&#39;" in answer.text) == (status == 403)


def test_behind_a_proxy_the_cookie_is_for_tls_and_this_host_alone(url: str, secrets: dict[Role, str]) -> None:
    answer = log_in(url, secrets["read"], Host="perf.example", Origin="https://perf.example")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-perfbisect-session=") and "Secure" in cookie and "Path=/" in cookie
    assert "domain" not in cookie.lower()


def test_a_session_ends_with_its_token(url: str, wiring: Wiring) -> None:
    _, secret = tokens.add(wiring, "leaving", "read", None, "root")
    with httpx.Client(base_url=url, cookies=log_in(url, secret).cookies, timeout=60) as client:
        assert client.get("/queue.json").status_code == 200
        tokens.revoke(wiring, "leaving", "root")
        assert client.get("/queue.json").status_code == 401


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://localhost:1"])
@pytest.mark.parametrize("path", ["/login", "/logout", "/bisections/x/pause"])
def test_a_form_that_is_not_of_our_pages_is_refused(
    url: str, secrets: dict[Role, str], origin: str | None, path: str
) -> None:
    cookies = log_in(url, secrets["operate"]).cookies
    headers = {} if origin is None else {"Origin": origin}
    answer = httpx.post(
        url + path, data={"token": secrets["operate"]}, headers=headers, cookies=cookies, timeout=60
    )
    assert answer.status_code == 403 and "set-cookie" not in answer.headers
    assert httpx.get(f"{url}/queue.json", cookies=cookies, timeout=60).status_code == 200


def test_a_form_needs_the_role(url: str, secrets: dict[Role, str]) -> None:
    cookies = log_in(url, secrets["read"]).cookies
    answer = httpx.post(
        f"{url}/bisections/x/pause", data={}, headers={"Origin": url}, cookies=cookies, timeout=60
    )
    assert answer.status_code == 403 and "this needs 'operate'" in answer.json()["detail"]
    cookies = log_in(url, secrets["operate"]).cookies
    answer = httpx.post(
        f"{url}/bisections/x/pause", data={}, headers={"Origin": url}, cookies=cookies, timeout=60
    )
    assert answer.status_code == 404


def test_the_api_takes_no_session(url: str, secrets: dict[Role, str]) -> None:
    cookies = log_in(url, secrets["admin"]).cookies
    assert httpx.get(f"{url}/api/v1/queue", cookies=cookies, timeout=60).status_code == 401


@pytest.mark.parametrize(
    ("name", "role"),
    [("ann", "admin"), ("bob@lab.example", "read"), ("", None), ("a b", None), ("<x>", None)],
)
@pytest.mark.parametrize("forwarded", [False, True])
def test_a_proxy_on_this_host_says_who_it_is(url: str, name: str, role: str | None, forwarded: bool) -> None:
    headers = {HEADER: name, "Accept": "text/html"}
    if forwarded:
        headers["X-Forwarded-For"] = "203.0.113.7"
    answer = httpx.get(f"{url}/queue", headers=headers, timeout=60)
    if role is None:
        assert answer.status_code == 403
    else:
        assert answer.status_code == 200 and f'<span class="status">{role}</span>' in answer.text
        assert "Log out" not in answer.text


def test_two_names_are_none(url: str) -> None:
    answer = httpx.get(f"{url}/queue.json", headers=[(HEADER, "bob"), (HEADER, "ann")], timeout=60)
    assert answer.status_code == 403


def test_no_other_host_says_who_it_is(wiring: Wiring, secrets: dict[Role, str]) -> None:
    app = make_application(wiring)
    assert isinstance(app.state.server, Server)

    def named(client: tuple[str, int] | None) -> Request:
        return request(app, client, host="perf.example", **{HEADER: "ann"})

    assert find_visitor(named(("127.0.0.1", 5000))).user.name == "ann"
    assert find_visitor(named(("203.0.113.7", 0))).user.role == "admin"
    for elsewhere in (("203.0.113.7", 5000), None):
        with pytest.raises(LoginNeeded):
            find_visitor(named(elsewhere))


def test_whom_a_proxy_names_may_send_so_much_and_who_guesses_sessions_less(wiring: Wiring) -> None:
    app = make_application(wiring)
    app.state.server.users, app.state.server.strangers = Limiter(0.001, 2.0), Limiter(0.001, 1.0)
    local = "127.0.0.1", 5000
    for _ in range(2):
        find_visitor(request(app, local, host="localhost", **{HEADER: "ann"}))
    with pytest.raises(Refused) as refused:
        find_visitor(request(app, local, host="localhost", **{HEADER: "ann"}))
    assert refused.value.status == 429
    assert find_visitor(request(app, local, host="localhost", **{HEADER: "bob"})).user.name == "bob"
    for _ in range(2):
        with pytest.raises(LoginNeeded):  # who has no session yet guesses nothing
            find_visitor(request(app, ("203.0.113.7", 5000), host="localhost"))
    guess = request(app, ("203.0.113.7", 5000), host="localhost", cookie="perfbisect-session=guess")
    with pytest.raises(LoginNeeded):
        find_visitor(guess)
    with pytest.raises(Refused) as refused:
        find_visitor(guess)
    assert refused.value.status == 429


def test_a_program_with_a_token_needs_no_session(wiring: Wiring, secrets: dict[Role, str]) -> None:
    app = make_application(wiring)

    def user(given: str) -> str:
        elsewhere = ("203.0.113.7", 5000)
        return find_visitor(request(app, elsewhere, host="localhost", authorization=given)).user.name

    assert [user(f"{scheme}{secrets['read']}") for scheme in ("Bearer ", "bearer ", "BEARER  ")] == [
        "read"
    ] * 3
    for wrong in (f"Basic {secrets['read']}", secrets["read"]):
        with pytest.raises(LoginNeeded):
            user(wrong)
    with pytest.raises(Refused, match="no valid token"):
        user("Bearer guess")


def test_behind_a_proxy_a_logout_forgets_the_cookie_of_this_host(url: str, secrets: dict[Role, str]) -> None:
    """A browser replaces '__Host-' cookies by secure ones alone (RFC 6265bis)."""
    ours = {"Host": "perf.example", "Origin": "https://perf.example"}
    answer = httpx.post(f"{url}/logout", headers=ours, timeout=60)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith('__Host-perfbisect-session=""') and "Max-Age=0" in cookie
    assert "Secure" in cookie and "Path=/" in cookie


def test_a_session_may_send_as_much_as_its_token(wiring: Wiring, secrets: dict[Role, str]) -> None:
    app = make_application(wiring)
    app.state.server.users = Limiter(0.001, 1.0)
    session = tokens.log_in(wiring, secrets["read"])
    asked = request(app, ("203.0.113.7", 5000), host="localhost", cookie=f"perfbisect-session={session}")
    assert find_visitor(asked).user.name == "read"
    with pytest.raises(Refused) as refused:
        find_visitor(asked)
    assert refused.value.status == 429


def test_who_logs_out_leaves_no_session_behind(url: str, secrets: dict[Role, str]) -> None:
    """Whoever has a copy of the cookie would go on."""
    cookies = log_in(url, secrets["read"]).cookies
    answer = httpx.post(f"{url}/logout", headers={"Origin": url}, cookies=cookies, timeout=60)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in answer.headers["set-cookie"] and "Secure" not in answer.headers["set-cookie"]
    assert httpx.get(f"{url}/queue.json", cookies=cookies, timeout=60).status_code == 401


def test_whom_a_proxy_names_stays_valid_without_a_token_and_a_revoked_token_does_not(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    user, _ = tokens.add(wiring, "ann", "read", None, "root")
    server = Server(wiring)
    tokens.revoke(wiring, "ann", "root")
    Visitor(user, server, named_by_proxy=True).require_valid()
    with pytest.raises(Refused, match="'ann' was revoked"):
        Visitor(user, server).require_valid()
    with pytest.raises(LoginNeeded):
        Visitor(user, server, session="ended").require_valid()


def test_without_the_setting_the_header_says_nothing(tmp_path: Path) -> None:
    with serving(wiring_in(tmp_path)) as url:
        assert httpx.get(f"{url}/queue.json", headers={HEADER: "ann"}, timeout=60).status_code == 401

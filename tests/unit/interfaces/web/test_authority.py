"""Whose requests are carried out: valid tokens of a role that suffices, and not too many requests."""

from __future__ import annotations

import re
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from bisector.adapters.store.web.sql_access import SqlAccess
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web import authority
from bisector.interfaces.web.authority import Limiter, Server
from bisector.interfaces.web.problems import Refused
from bisector.interfaces.web.web_application import API, PAGES
from tests.support.servers.web import make_tokens, serving, wiring_in


def test_only_a_valid_token_passes(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    server = Server(wiring)
    _, secret = tokens.add(wiring, "ann", "operate", 1.0, "root")
    assert server.authenticate(secret, "::1").name == "ann"
    for wrong in (
        None,
        "",
        secret[:-1],
        secret.upper(),
        secret + "x",
        tokens.PREFIX + "x" * 43,
        "'; DROP TABLE",
    ):
        with pytest.raises(Refused) as refused:
            server.authenticate(wrong, "::1")
        assert refused.value.status == 401 and secret not in str(refused.value.__dict__)
    tokens.revoke(wiring, "ann", "root")
    with pytest.raises(Refused):
        server.authenticate(secret, "::1")


@pytest.mark.parametrize(
    "secret",
    [
        None,
        "",
        "guess",
        tokens.PREFIX,
        "x" * 47,
        "pbt_" + "x" * 42,
        "pbt_" + "x" * 44,
        "pbt_" + "x" * 42 + "\n",
    ],
)
def test_what_has_not_the_form_of_a_token_costs_the_database_nothing(
    tmp_path: Path, secret: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqlAccess, "find", lambda access, secret: pytest.fail("the database was asked"))
    server = Server(wiring_in(tmp_path), strangers=Limiter(0.001, 1.0))
    seen = []
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            server.authenticate(secret, "192.0.2.1")
        seen.append(int(refused.value.status))
    assert seen == [401, 429]


def test_a_guess_costs_nobody_else_a_request(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    server = Server(wiring, strangers=Limiter(0.001, 1.0), users=Limiter(0.001, 1.0))
    for address in ("192.0.2.1", "192.0.2.2"):
        with pytest.raises(Refused, match="no valid token") as refused:
            server.authenticate("guess", address)
        assert refused.value.headers == {"WWW-Authenticate": "Bearer"}
    with pytest.raises(Refused, match="the request has no token"):
        server.authenticate(None, "192.0.2.3")
    for name in ("ann", "bob"):
        _, secret = tokens.add(wiring, name, "read", None, "root")
        assert server.authenticate(secret, "192.0.2.1").name == name
        with pytest.raises(Refused, match="too many requests"):
            server.authenticate(secret, "192.0.2.9")


def test_a_stranger_is_counted_by_the_address_that_the_request_comes_from(tmp_path: Path) -> None:
    with serving(wiring_in(tmp_path)) as url, pytest.MonkeyPatch.context() as patch:
        asked: list[str] = []

        def wait(limiter: Limiter, key: str) -> float:
            asked.append(key)
            return 0.0

        patch.setattr(Limiter, "wait", wait)
        for sender in ({}, {"X-Forwarded-For": "192.0.2.7"}):
            headers = {"Authorization": "Bearer guess", **sender}
            assert httpx.get(f"{url}/queue.json", headers=headers, timeout=60).status_code == 401
        assert asked == ["127.0.0.1", "192.0.2.7"]


def test_what_is_done_is_done_in_the_name_of_the_sender_on_the_database_of_the_server(tmp_path: Path) -> None:
    settings = wiring_in(tmp_path).settings
    wiring = Wiring(settings.model_copy(update={"owner": "root", "server": "https://elsewhere.example"}))
    server = Server(wiring)
    user, _ = tokens.add(wiring, "ann", "operate", None, "root")
    own = server.wiring_for(user)
    assert (own.settings.owner, own.settings.server) == ("ann", None)
    assert own.database is wiring.database and own is not wiring
    server.record(user, "cancel", "b-1", "no need")
    (last,) = tokens.access_of(wiring).changes(1)
    assert (last.who, last.what, last.target, last.details) == ("ann", "cancel", "b-1", "no need")


def test_an_expired_token_does_not_pass(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    _, secret = tokens.add(wiring, "ann", "read", 1.0, "root")
    with sqlite3.connect(tmp_path / "state" / "perfbisect.sqlite") as connection:
        connection.execute("update tokens set expires = 5.0")
    with pytest.raises(Refused, match="no valid token"):
        Server(wiring).authenticate(secret, "::1")


def test_who_sends_too_much_is_told_when_to_come_back() -> None:
    now = [100.0]
    limiter = Limiter(rate=2.0, burst=3.0, clock=lambda: now[0])
    assert [limiter.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert limiter.wait("b") == 0.0  # others are not kept waiting
    now[0] += 0.5
    assert [limiter.wait("a"), limiter.wait("a")] == [0.0, 0.5]
    now[0] += 3600.0
    assert [limiter.wait("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]  # no more than the burst is saved


def test_guesses_do_not_use_up_what_a_token_may_send(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    server = Server(wiring, strangers=Limiter(0.3, 2.0, clock=lambda: 0.0))
    _, secret = tokens.add(wiring, "ann", "read", None, "root")
    seen = []
    for _ in range(3):
        with pytest.raises(Refused) as refused:
            server.authenticate("guess", "192.0.2.1")
        seen.append(int(refused.value.status))
    assert seen == [401, 401, 429] and int(refused.value.exit_code) == 3
    assert refused.value.headers == {"Retry-After": "4"}, "after three seconds it would be refused again"
    assert refused.value.cure == "wait 4 s before the next one"
    assert server.authenticate(secret, "192.0.2.1").name == "ann"


def test_only_so_many_senders_are_counted_and_the_one_that_was_silent_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authority, "_MOST_KEYS", 2)
    limiter = Limiter(rate=1.0, burst=1.0, clock=lambda: 0.0)
    assert [limiter.wait(name) for name in ("a", "b", "a", "c")] == [0.0, 0.0, 1.0, 0.0]
    assert limiter.wait("b") == 0.0, "it was silent longest, and has all of its burst again"
    assert limiter.wait("c") == 1.0


@pytest.mark.parametrize("of", ["drawings", "streams", "downloads", "uploads"])
def test_one_user_leaves_room_for_others(tmp_path: Path, of: str) -> None:
    slots = getattr(Server(wiring_in(tmp_path)), of)
    with ExitStack() as taken:
        with pytest.raises(Refused):
            while True:
                taken.enter_context(slots.one("ann"))
        taken.enter_context(slots.one("bob"))


WORKERS_ALONE = {
    "GET /artefacts",
    "HEAD /artefacts/{kind}/{key}",
    "GET /artefacts/{kind}/{key}",
    "PUT /artefacts/{kind}/{key}",
    "DELETE /artefacts/{kind}/{key}",
}
ADMINISTRATORS_ALONE = {
    "GET /tokens",
    "POST /tokens",
    "DELETE /tokens/{name}",
    "GET /changes",
    "POST /removals",
    "DELETE /series/{name}",
}
FOR_READERS_TOO = {"POST /plans"}
"""What changes nothing, though it has a body."""


def test_each_address_of_the_api_wants_the_role_that_it_needs(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    secrets = make_tokens(wiring)
    with serving(wiring) as url, httpx.Client(base_url=url + API, timeout=60) as client:
        described = client.get("/openapi.json").json()["paths"]
        addresses = {
            (f"{method.upper()} {path.removeprefix(API)}", method, re.sub(r"{\w+}", "x", url + path))
            for path, methods in described.items()
            for method in methods
        }
        refused = {
            role: {
                name
                for name, method, address in addresses
                if client.request(
                    method, address, headers={"Authorization": f"Bearer {secrets[role]}"}
                ).status_code
                == 403
            }
            for role in ("read", "operate")
        }
    changing = {name for name, method, _ in addresses if method not in ("get", "head")}
    assert len(changing) > 20
    assert refused["operate"] == ADMINISTRATORS_ALONE | WORKERS_ALONE
    assert refused["read"] == refused["operate"] | (changing - FOR_READERS_TOO)


def test_who_may_only_read_changes_nothing_by_the_forms_of_pages(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    secret = make_tokens(wiring)["read"]
    forms = {
        route.path
        for page in PAGES
        for route in page.router.routes
        if isinstance(route, APIRoute) and "POST" in (route.methods or ())
    }
    assert len(forms) > 10
    with serving(wiring) as url:
        headers = {"Authorization": f"Bearer {secret}", "Origin": url}
        taken = {
            path
            for path in forms
            if httpx.post(url + re.sub(r"{\w+}", "1", path), headers=headers, timeout=60).status_code != 403
        }
    assert taken == {"/login", "/logout"}

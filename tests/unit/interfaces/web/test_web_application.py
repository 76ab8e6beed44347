"""The application as a client sees it: a real server on loopback, each address with each role.

With it `administration` and `problems`, the form of all errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from bisector.adapters.store.web.sql_access import SqlAccess
from bisector.app.execution import current_status
from bisector.app.mail.delivery import outbox_of
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web import authority
from bisector.interfaces.web.api import bisection_routes
from bisector.interfaces.web.pages import changed_lists
from bisector.interfaces.web.sent_events import SentEvents
from bisector.interfaces.web.web_application import API, MAX_BODY_BYTES
from bisector.model.access import ROLES, Role
from bisector.model.outbox import Delivery, Key, Message
from tests.support.fake_bisection import store_bisections
from tests.support.servers.web import make_tokens, serving, wiring_in
from tests.support.waiting import until


@pytest.fixture(scope="module")
def wiring(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    return wiring_in(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="module")
def secrets(wiring: Wiring) -> dict[Role, str]:
    return make_tokens(wiring)


@pytest.fixture(scope="module")
def url(wiring: Wiring) -> Iterator[str]:
    with serving(wiring) as address:
        yield address


@pytest.fixture(scope="module")
def admin(url: str, secrets: dict[Role, str]) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=url + API, headers={"Authorization": f"Bearer {secrets['admin']}"}, timeout=60
    ) as client:
        yield client


def test_tokens_are_made_used_and_revoked_from_elsewhere(url: str, admin: httpx.Client) -> None:
    made = admin.post("/tokens", json={"name": "bob", "role": "admin", "days": 2})
    assert made.status_code == 201
    own = {"Authorization": f"Bearer {made.json()['token']}"}
    (row,) = [
        one for one in httpx.get(f"{url}{API}/tokens", headers=own, timeout=60).json() if one["name"] == "bob"
    ]
    assert row["state"] == "valid" and "token" not in row
    assert row["expires"] == pytest.approx(row["created"] + 2 * 86400, abs=1)
    assert admin.delete("/tokens/bob").json()["state"] == "revoked"
    assert httpx.get(f"{url}{API}/tokens", headers=own, timeout=60).status_code == 401
    changes = admin.get("/changes", params={"limit": 2}).json()
    latest = [(c["who"], c["what"], c["target"], c["details"]) for c in changes]
    assert latest == [("admin", "token revoke", "bob", ""), ("admin", "token add", "bob", "admin")]


def test_every_address_but_health_and_the_description_needs_a_token(url: str) -> None:
    described = httpx.get(f"{url}{API}/openapi.json", timeout=60).json()
    assert described["info"]["title"] == "perfbisect"
    requests = [(method, path) for path, methods in described["paths"].items() for method in methods]
    assert len(requests) > 20
    for number, (method, path) in enumerate(requests):
        address = url + re.sub(r"\{\w+\}", "x", path)
        sender = {"X-Forwarded-For": f"192.0.2.{number}"}  # one sender would soon be told to wait
        status = httpx.request(method, address, headers=sender, timeout=60).status_code
        assert status == (200 if path == "/healthz" else 401), (method, path)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"name": "' + b"x" * MAX_BODY_BYTES + b'"}', 413),
        (b"[" * 50_000, 400),
        (b'{"name": ' * 5000 + b"1" + b"}" * 5000, 400),
        (b"\xff\xfe{", 400),
        (b"{", 422),
        (b'{"name": "ann", "name": "bob", "role": NaN}', 422),
        (b"", 422),
        (b"[]", 422),
        (b'{"name": "../../etc/passwd"}', 422),
        (b'{"name": "--upload-pack=sh"}', 422),
        (b'{"name": "a\\u202eb"}', 422),
        (b'{"name": "a\\u0000b"}', 422),
        (b'{"name": "x", "role": "root"}', 422),
        (b'{"name": "x", "days": 1e999}', 422),
        (b'{"name": "x", "shell": "sh"}', 422),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_hostile_body_is_refused_in_words(admin: httpx.Client, body: bytes, status: int) -> None:
    answer = admin.post("/tokens", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == {422: 400}.get(status, status), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["exit_code"] == 1 and problem["detail"] and problem["cure"]
    assert len(answer.content) < 2000 and "pydantic" not in answer.text


def test_where_a_body_is_no_json_is_told(admin: httpx.Client) -> None:
    answer = admin.post("/tokens", content=b'{"name": x}', headers={"Content-Type": "application/json"})
    assert answer.json()["detail"] == "the body is no JSON from character 10 on"


def test_json_that_is_sent_as_a_form_is_told_how_to_be_sent(admin: httpx.Client) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}  # what `curl --data` says
    refused = admin.post("/removals", content=b'{"ids": ["x"]}', headers=form)
    assert refused.status_code == 400
    assert (
        refused.json()["detail"] == "the body must be JSON, with the header 'Content-Type: application/json'"
    )


def test_a_body_of_unknown_length_is_cut_off(admin: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 65536

    answer = admin.post("/tokens", content=endless(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_a_worker_may_only_use_artefacts(url: str, secrets: dict[Role, str]) -> None:
    described = httpx.get(f"{url}{API}/openapi.json", timeout=60).json()["paths"]
    requests = [(method, path) for path, methods in described.items() for method in methods]
    headers = {"Authorization": f"Bearer {secrets['worker']}"}
    allowed = set()
    for method, path in requests:
        if (
            httpx.request(
                method, url + re.sub(r"\{\w+\}", "x", path), headers=headers, timeout=60
            ).status_code
            != 403
        ):
            allowed.add(path)
    assert allowed == {"/healthz", f"{API}/artefacts", f"{API}/artefacts/{{kind}}/{{key}}"}


@pytest.mark.parametrize("role", [role for role in ROLES if role != "admin"])
def test_a_lower_role_is_told_what_it_lacks(url: str, secrets: dict[Role, str], role: Role) -> None:
    answer = httpx.get(f"{url}{API}/tokens", headers={"Authorization": f"Bearer {secrets[role]}"}, timeout=60)
    assert answer.status_code == 403
    assert answer.json()["detail"] == f"the token '{role}' has the role '{role}'; this needs 'admin'"


@pytest.mark.parametrize("how", ["revoked", "expired"])
@pytest.mark.parametrize(
    "events", [f"{API}/bisections/fake-new/events", "/bisections/fake-new/events", "/changes"]
)
def test_who_watches_sees_nothing_more_once_the_token_is_no_longer_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, events: str
) -> None:
    for module in (bisection_routes, changed_lists):
        monkeypatch.setattr(module, "_POLL_SECONDS", 0.01)
    store_bisections(tmp_path, monkeypatch).set_status("fake-new", "queued")
    wiring = wiring_in(tmp_path)
    _, secret = tokens.add(wiring, "ann", "read", 1.0, "root")
    headers = {"Authorization": f"Bearer {secret}"}
    with serving(wiring) as url, httpx.stream("GET", url + events, headers=headers, timeout=30) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        comments = (line for line in lines if line.startswith(":"))
        assert next(comments) and next(comments)  # it was looked at the token before, and went on
        if how == "revoked":
            tokens.revoke(wiring, "ann", "root")
            tokens.add(wiring, "ann", "read", None, "root")  # another one of that name does not count
        else:
            wiring.database.execute("UPDATE tokens SET expires = 5.0")
        said = "\n".join(islice(lines, 60))  # no more than some seconds of it
    assert "event: problem" in said and "the token 'ann' was revoked, or has expired" in said


def test_a_defect_is_told_without_its_inside(
    url: str, admin: httpx.Client, wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqlAccess, "tokens", lambda access: 1 / 0)
    answer = admin.get("/tokens")
    assert (answer.status_code, answer.json()["exit_code"]) == (500, 3)
    assert "division" not in answer.text


LOADED = "reports"
READ = (
    ("/api/v1/bisections/fake-new/report", LOADED),
    ("/api/v1/bisections/fake-new/report.txt", LOADED),
    ("/api/v1/bisections/fake-new/report.html", LOADED),
    ("/api/v1/bisections/fake-new/trials", LOADED),
    ("/api/v1/bisections/fake-new/log", LOADED),
    ("/bisections/fake-new", LOADED),
    ("/bisections/fake-new.json", LOADED),
    ("/bisections/fake-new.csv", LOADED),
    ("/bisections/fake-new/report.txt", LOADED),
    ("/bisections/fake-new/report.html", LOADED),
    ("/bisections/fake-new/log.txt", LOADED),
    ("/costs", LOADED),
    ("/compare?a=fake-new&b=fake-old", LOADED),
    ("/compare?a=fake-new:good&b=fake-new:bad", "plans and files"),
    ("/bisections/fake-new/events", "streams"),
    ("/api/v1/bisections/fake-new/events", "streams"),
    ("/changes", "streams"),
)


def test_nobody_who_may_only_look_takes_the_whole_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_bisections(tmp_path, monkeypatch).set_status("fake-new", "queued")
    for name in ("AT_ONCE", "DRAWINGS", "STREAMS"):
        monkeypatch.setattr(authority, name, 0)
    wiring = wiring_in(tmp_path)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    with serving(wiring) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        for path, busy in READ:
            answer = client.get(path)
            assert answer.status_code == 429 and f"busy with {busy}" in answer.text, path
            assert answer.headers["Retry-After"] == "5"


def test_streams_of_events_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    class Kept(SentEvents):
        """An answer that lives on, so that its slot is given back by nothing but its end."""

        def __init__(self, *values: Any, **more: Any) -> None:
            super().__init__(*values, **more)
            kept.append(self)

    monkeypatch.setattr(bisection_routes, "SentEvents", Kept)
    monkeypatch.setattr(authority, "STREAMS_OF_ONE", 1)
    store_bisections(tmp_path, monkeypatch).set_status("fake-new", "queued")
    wiring, events = wiring_in(tmp_path), f"{API}/bisections/fake-new/events"
    secrets = make_tokens(wiring)
    one, other = ({"Authorization": f"Bearer {secrets[role]}"} for role in ("read", "operate"))
    with serving(wiring) as url:

        def status(headers: dict[str, str]) -> int:
            with httpx.stream("GET", url + events, headers=headers, timeout=60) as answer:
                return answer.status_code

        with httpx.stream("GET", url + events, headers=one, timeout=60) as followed:
            assert followed.status_code == 200
            assert (status(one), status(other)) == (429, 200)
        until(lambda: status(one) == 200, 30)  # who follows no more leaves room
    assert len(kept) >= 3


def test_the_latest_bisection_is_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wiring = wiring_in(tmp_path)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    with serving(wiring) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        for path in ("/bisections/latest.json", f"{API}/bisections/latest"):
            answer = client.get(path)
            assert answer.status_code == 400 and "there is no bisection yet" in answer.text, path
        store = store_bisections(tmp_path, monkeypatch)
        night = replace(store.load("fake-old"), id="night-x-1", created=9.0, owner="series x")
        monkeypatch.setattr(current_status, "is_of_night", lambda name, owner: name == night.id)
        store.create(replace(night, status="done"))
        for path in ("/bisections/latest.json", f"{API}/bisections/latest"):
            assert client.get(path).json()["id"] == "fake-new"
        for path, has_nights in (
            ("", False),
            ("?all=1", True),
            ("?status=done", False),
            ("?all=1&text=x", True),
        ):
            rows = client.get(f"/bisections.json{path}").json()
            assert (night.id in [row["id"] for row in rows]) == has_nights, path


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
def test_who_may_not_send_does_not_see_the_address_of_a_webhook(tmp_path: Path, scheme: str) -> None:
    wiring, hook = wiring_in(tmp_path), f"{scheme}://user:word@hooks.example/T0/secret-path?key=secret-key"
    message = Message((hook,), "bisection.ended", "{}")
    outbox = outbox_of(wiring)
    outbox.put(Key("b", "w", "ended", hook), "webhook", message, "approved", by="ann", bisection="b")
    assert outbox.claim("a sender", 1, ["webhook"]) is not None
    outbox.finish(1, "a sender", Delivery(refused={hook: "status 410"}))
    secrets = make_tokens(wiring)
    with serving(wiring) as url:
        for path in (
            "/outbox",
            "/outbox.json",
            "/outbox.csv",
            "/outbox/1",
            "/outbox/1.json",
            "/outbox/1.csv",
            f"{API}/outbox",
            f"{API}/outbox/1",
        ):
            seen = {
                role: httpx.get(
                    url + path, headers={"Authorization": f"Bearer {secrets[role]}"}, timeout=60
                ).text
                for role in ("read", "operate")
            }
            assert "https://hooks.example" in seen["read"], path
            assert "secret" not in seen["read"] and "word@" not in seen["read"], path
            assert "secret-path" in seen["operate"], path


def test_a_removal_is_written_down_once_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wiring = wiring_in(tmp_path)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['admin']}"}
    store_bisections(tmp_path, monkeypatch)

    def removals() -> list[tuple[str, str]]:
        found = client.get("/changes").json()
        return [(one["who"], one["target"]) for one in found if one["what"] == "rm"]

    with serving(wiring) as url, httpx.Client(base_url=url + API, headers=headers, timeout=60) as client:
        asked = {"ids": ["fake-old"], "dry_run": True}
        assert client.post("/removals", json=asked).json()["items"][0]["removed"] is False
        assert removals() == []
        assert client.post("/removals", json={**asked, "dry_run": False}).status_code == 200
        assert removals() == [("admin", "fake-old")]

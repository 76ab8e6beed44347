"""HEAD, asked of a real server: what GET answers, without the body."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from bisector.interfaces.web import authority
from bisector.interfaces.web.api import artefact_transfer
from bisector.interfaces.web.web_application import API
from bisector.model.access import Role
from bisector.model.artefacts import Artefact
from tests.support.fake_bisection import store_bisections
from tests.support.servers.web import make_tokens, serving, wiring_in
from tests.support.waiting import until

SAME = ("content-type", "content-security-policy", "location", "cache-control")
ADDRESSES = [
    "/",
    "/healthz",
    "/metrics",
    "/queue",
    "/queue.json",
    "/bisections.csv",
    "/login",
    "/static/none.css",
    f"{API}/queue",
    f"{API}/openapi.json",
    f"{API}/bisections/fake-new/report.txt",
    f"{API}/removals",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("head")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authority, "STREAMS_OF_ONE", 1)
        store_bisections(folder, patch).set_status("fake-new", "queued")
        with serving(wiring_in(folder)) as address:
            yield address


@pytest.fixture(scope="module")
def secrets(url: str, folder: Path) -> dict[Role, str]:
    return {role: f"Bearer {secret}" for role, secret in make_tokens(wiring_in(folder)).items()}


@pytest.mark.parametrize("path", ADDRESSES)
def test_head_is_answered_like_get_without_the_body(url: str, secrets: dict[Role, str], path: str) -> None:
    for said in ({}, {"Authorization": secrets["read"]}):
        get, head = (httpx.request(m, url + path, headers=said, timeout=60) for m in ("GET", "HEAD"))
        assert head.status_code == get.status_code and head.content == b""
        assert [head.headers.get(one) for one in SAME] == [get.headers.get(one) for one in SAME]
        assert head.headers["content-length"] != "0"
    assert get.status_code == {"/static/none.css": 404, f"{API}/removals": 405}.get(path, 200)


def test_head_of_a_stream_ends_at_once_and_leaves_room(url: str, secrets: dict[Role, str]) -> None:
    with httpx.Client(base_url=url, headers={"Authorization": secrets["read"]}, timeout=5) as client:
        for path in (f"{API}/bisections/fake-new/events", "/changes"):
            for _ in range(2):  # over one connection, which nobody closes
                until(partial(answers, client, path), 20)


def answers(client: httpx.Client, path: str) -> bool:
    return client.head(path).status_code == 200


def test_a_route_of_its_own_answers_head(
    url: str, secrets: dict[Role, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artefact_transfer, "_store", lambda _: NothingToGive())
    with httpx.Client(base_url=url + API, headers={"Authorization": secrets["worker"]}, timeout=60) as client:
        assert client.head("/artefacts/kernel/k").status_code == 200
        assert client.get("/artefacts/kernel/k").status_code == 404


class NothingToGive:
    """An artefact store that has an artefact until it is asked for it."""

    def has(self, _: Artefact) -> bool:
        return True

    def get(self, *_: object) -> bool:
        return False

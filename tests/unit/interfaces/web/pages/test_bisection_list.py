"""Which bisections the list shows, by what is asked for."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web.api import bisection_routes
from bisector.interfaces.web.pages import bisection_list
from bisector.model.series import owner_of
from bisector.schemas.remote_request import RemoteRequest
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens, serving


@pytest.mark.parametrize("more", ["", "&text=w", "&all=1"])
def test_a_status_is_that_which_is_shown(tmp_path: Path, more: str) -> None:
    """A process was killed while it executed the one that is stored as running."""
    wiring = served_lab.make(tmp_path, boots=6)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    with serving(wiring) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:

        def shown(status: str) -> list[tuple[str, str]]:
            rows = client.get(f"/bisections.json?status={status}{more}").json()
            return [(row["id"], row["status"]) for row in rows]

        assert shown("interrupted") == [("interrupted-1", "interrupted"), ("running-1", "interrupted")]
        assert shown("running") == []
        assert shown("queued") == [("queued-1", "queued")]
        opened = ["interrupted-1", "paused-1", "queued-1", "running-1"]
        assert [name for name, _ in shown("open")] == opened
        assert [name for name, _ in shown("ended")] == ["cancelled-1", "done-1"]
        wrong = client.get("/bisections.json?status=runing")
        assert wrong.status_code == 400 and wrong.json()["detail"].startswith("status: must be ")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    """With one of bob's, and a night of a series that has ended."""
    wiring = served_lab.make(tmp_path_factory.mktemp("lab"), boots=6)
    served_lab.store(wiring, sixty_boots(boots=6), "done", "Pipe", 50, name="bobs-1", owner="bob@lab")
    night = "pipe-night-1-4b6caec2"
    served_lab.store(wiring, sixty_boots(boots=6), "done", "x", 51, name=night, owner=owner_of("pipe"))
    return wiring


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?owner=bob%40lab", ["bobs-1"]),
        ("?text=PIPE", ["bobs-1"]),
        ("?text=bobs+culprit", ["bobs-1"]),
        ("?text=bobs+paused", []),
        ("?text=done&owner=ann%40lab", ["done-1"]),
        ("?status=done", ["bobs-1", "done-1"]),
        ("?status=done&all=1", ["pipe-night-1-4b6caec2", "bobs-1", "done-1"]),
        ("?status=done&all=1&text=pipe-night", ["pipe-night-1-4b6caec2"]),
        ("?all=1&owner=bob%40lab", ["bobs-1"]),
    ],
)
def test_those_that_fit_are_shown_the_latest_first(
    client: httpx.Client, query: str, found: list[str]
) -> None:
    assert [row["id"] for row in client.get(f"/bisections.json{query}").json()] == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?owner=bob", []),
        ("?text=bobs+V6.1", ["bobs-1"]),
        ("?text=bobs+v6.2", ["bobs-1"]),
        ("?text=0014", ["bobs-1", "done-1"]),
        ("?status=interrupted&all=1&owner=ann%40lab", ["interrupted-1", "running-1"]),
    ],
)
def test_a_text_is_in_the_ends_or_the_culprit_and_an_owner_is_a_whole_name(
    client: httpx.Client, query: str, found: list[str]
) -> None:
    names = [row["id"] for row in client.get(f"/bisections.json{query}").json()]
    assert names == found


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("page=0", "page: must be at least 1"),
        ("page=10001", "page: must be at most 10,000"),
        (f"text={'x' * 201}", "text: must have at most 200 characters"),
        (f"owner={'x' * 201}", "owner: must have at most 200 characters"),
    ],
)
def test_what_is_out_of_bounds_is_refused(client: httpx.Client, query: str, said: str) -> None:
    answer = client.get(f"/bisections.json?{query}")
    assert (answer.status_code, answer.json()["detail"]) == (400, said)


def test_bounds_are_within_what_may_be_asked(client: httpx.Client) -> None:
    answer = client.get(f"/bisections.json?page=10000&text={'x' * 200}&owner={'x' * 200}")
    assert (answer.status_code, answer.json()) == (200, [])


def test_the_form_and_the_links_keep_what_was_asked(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisection_list, "ROWS_PER_PART", 1)
    asked = {"status": "ended", "owner": "ann@lab", "text": "w"}
    text = client.get("/bisections", params={**asked, "all": "1", "page": "2"}).text
    form = text.partition('<form class="filter"')[2].partition("</form>")[0]
    assert re.findall(r'<option value="(\w*)" selected>', form) == ["ended"]
    assert re.findall(r'<option value="(\w*)"', form)[:3] == ["", "open", "ended"]
    assert dict(re.findall(r'<input type="\w+" name="(\w+)" value="([^"]*)"', form)) == {
        "owner": "ann@lab",
        "text": "w",
        "all": "1",
    }
    assert "All, with nights" not in form
    whole = httpx.QueryParams({**asked, "all": "1"})
    part = client.get("/bisections", params={**asked, "all": "1"}).text
    assert 'rel="prev"' not in part
    (following,) = re.findall(r'rel="next" href="/bisections\?([^"]+)"', part)
    assert httpx.QueryParams(unescape(following)) == whole.set("page", "2")
    (before,) = re.findall(r'rel="prev" href="/bisections\?([^"]+)"', text)
    assert httpx.QueryParams(unescape(before)) == whole.set("page", "1")
    third = client.get("/bisections", params={**asked, "page": "3"}).text
    assert "page=2" in third.partition('rel="prev"')[2]
    assert ">No bisection fits.<" in third
    (every,) = re.findall(r'<a href="/bisections\?([^"]+)">All, with nights', third)
    assert httpx.QueryParams(unescape(every)) == whole


@pytest.mark.parametrize("query", ["", "&owner=ann%40lab", "&all=1"])
def test_a_part_leads_to_the_next_until_the_last(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    whole = [row["id"] for row in client.get(f"/bisections.json?page=1{query}").json()]
    monkeypatch.setattr(bisection_list, "ROWS_PER_PART", 3)
    seen, page, more = list[str](), 0, True
    while more:
        page += 1
        part = [row["id"] for row in client.get(f"/bisections.json?page={page}{query}").json()]
        more = 'rel="next"' in client.get(f"/bisections?page={page}{query}").text
        assert len(part) == 3 or not more
        seen += part
    assert seen == whole and page == -(-len(whole) // 3)


def test_a_form_names_one_testbed_and_who_is_told(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def start(request: object, user: object, wanted: RemoteRequest) -> dict[str, str]:
        asked.append((wanted.good, wanted.testbeds, wanted.notify))
        return {"id": "done-1"}

    monkeypatch.setattr(bisection_routes, "start", start)
    form = {"repo": "linux", "good": "v1", "bad": "v2", "workload": "w", "threshold": " "}
    for more in ({}, {"testbed": "machine-a", "notify": "mail:ann@lab.example"}):
        answer = client.post("/bisections", data={**form, **more, "next": "/queue"})
        assert (answer.status_code, answer.headers.get("location")) == (303, "/bisections/done-1"), (
            answer.text
        )
    assert asked == [("v1", (), ()), ("v1", ("machine-a",), ("mail:ann@lab.example",))]

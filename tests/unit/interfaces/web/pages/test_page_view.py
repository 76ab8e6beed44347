"""Addresses, forms and tables of pages, whatever they are made of."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.interfaces.web.api.bisection_routes import NewPriority, Why
from bisector.interfaces.web.pages import page_view
from bisector.interfaces.web.pages.page_view import checked, csv_text, own_address, url
from bisector.interfaces.web.web_application import PAGES
from tests.support.servers import served_lab
from tests.support.servers.web import serving, wiring_in


def test_every_page_and_form_needs_somebody(tmp_path: Path) -> None:
    wiring = wiring_in(tmp_path)
    routes = [r for page in PAGES for r in page.router.routes if isinstance(r, APIRoute)]
    assert len(routes) > 30
    with serving(wiring) as url, httpx.Client(base_url=url, headers={"Origin": url}, timeout=60) as client:
        for number, route in enumerate(routes):
            (method,) = list(route.methods or ())
            path = re.sub(r"{\w+}", "1", route.path)
            sender = {"X-Forwarded-For": f"192.0.2.{number}"}  # one sender would soon be told to wait
            status = client.request(method, path, headers=sender).status_code
            open_to_all = {"/login": (200, 401), "/logout": (303,)}
            assert status in open_to_all.get(path, (401,)), (method, path)


@pytest.mark.parametrize("name", ["a/b", "../x", "a?b#c", "\u202e", 'x"y', "a b", "%2e"])
def test_an_address_holds_any_name(name: str) -> None:
    made = url("testbeds", name)
    assert made.count("/") == 2 and made.isascii() and not set('?#" <>') & set(made)
    assert url("compare", a=name, b="").startswith("/compare?a=") and "b=" not in url("compare", a="x", b="")


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "/x\\y", "javascript:1", "", "/a\nb"],
)
def test_no_form_leads_to_another_server(address: str) -> None:
    assert own_address(address, "/queue") == "/queue"


def test_a_form_leads_back() -> None:
    assert own_address("/bisections?page=2#x") == "/bisections?page=2#x"


def test_no_cell_is_a_formula() -> None:
    rows = [{"subject": "=HYPERLINK(1)", "value": -1.5, "flag": "+a b", "none": None, "text": 'a,"b"\n'}]
    head, row = csv.reader(io.StringIO(csv_text(rows)))
    assert head == ["subject", "value", "flag", "none", "text"]
    assert row == ["'=HYPERLINK(1)", "-1.5", "'+a b", "", 'a,"b"\n']
    begins = [{"why": f"{sign}1"} for sign in "=+-@\t"]
    assert [cell for (cell,) in csv.reader(io.StringIO(csv_text(begins)))][1:] == [
        f"'{row['why']}" for row in begins
    ]
    assert csv_text([]) == "\r\n"
    _, (shown,) = csv.reader(io.StringIO(csv_text([{"subject": "a \x1b[31mred\u202e subject"}])))
    assert shown.isprintable() and shown.startswith("a ") and shown.endswith(" subject")


def test_a_cell_of_several_values_is_json() -> None:
    action = {"what": "paused", "why": "new 'memory', \u00e9", "at": 1.5, "by": None}
    _, (cell,) = csv.reader(io.StringIO(csv_text([{"last_action": action}])))
    assert json.loads(cell) == action


def test_a_cell_of_a_list_tells_its_values_apart() -> None:
    rows: list[dict[str, Sequence[str]]] = [
        {"recipients": ["Zo\u00e9 Ann <z@x.org>", "b@x.org"]},
        {"recipients": []},
        {"recipients": ("=1", "\x9b", "\u202e")},
    ]
    _, *cells = csv.reader(io.StringIO(csv_text(rows)))
    assert cells[0] == ['["Zo\u00e9 Ann <z@x.org>", "b@x.org"]'] and cells[2][0].isascii()
    assert [json.loads(cell) for (cell,) in cells] == [list(row["recipients"]) for row in rows]


LISTS = (
    "/overview",
    "/bisections",
    "/queue",
    "/alerts",
    "/outbox",
    "/series",
    f"/series/{served_lab.SERIES}",
    "/testbeds",
    "/testbeds/machine-a",
    "/bisections/paused-1",
    "/costs?days=3650",
)


@pytest.mark.parametrize("path", LISTS)
def test_a_table_without_rows_has_the_head_that_it_has_with_rows(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Programs read the names of columns from it."""
    page, _, query = path.partition("?")
    head, *rows = csv.reader(io.StringIO(client.get(f"{page}.csv?{query}").text))
    assert rows and all(len(row) == len(head) for row in rows)
    monkeypatch.setattr(page_view, "csv_text", lambda rows, columns: csv_text([], columns))
    assert [*csv.reader(io.StringIO(client.get(f"{page}.csv?{query}").text))] == [head]


URLENCODED = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (URLENCODED, b"\xff"),
        (URLENCODED, b"reason=%ff"),
        (URLENCODED, b"%e9=1"),
        (f"{URLENCODED}; charset=iso-8859-1", b"reason=\xe9"),
        (URLENCODED, b"reason"),
        (URLENCODED, b"&".join(b"field%d=x" % number for number in range(51))),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="reason"\r\n\r\n1'),
        ("multipart/form-data", b"reason=1"),
        ("text/plain", b"reason=1"),
        ("application/json", b'{"reason": "="}'),
        ("", b"reason=1"),
    ],
)
def test_a_form_that_cannot_be_read_changes_nothing(
    client: httpx.Client, lab: Wiring, kind: str, body: bytes
) -> None:
    answer = client.post("/bisections/queued-1/pause", content=body, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["exit_code"]) == (400, 1)
    assert answer.json()["detail"] == "the form cannot be read"
    assert lab.store.status("queued-1") == "queued"


def test_what_a_browser_sends_of_a_form_is_read(client: httpx.Client, lab: Wiring) -> None:
    page = "/bisections/interrupted-1"
    kinds = (URLENCODED.title(), f"{URLENCODED} ;charset=UTF-8")
    for kind, form, body in zip(
        kinds, ("resume", "pause"), (b"reason=&next=", b"reason=caf%C3%A9"), strict=True
    ):
        answer = client.post(f"{page}/{form}", content=body, headers={"Content-Type": kind})
        assert (answer.status_code, answer.headers["location"]) == (303, page), answer.text
    (found,) = lab.store.list(beginning="interrupted-1")
    assert found.action is not None and (found.status, found.action.why) == ("paused", "caf\u00e9")


def test_a_form_is_read_as_the_api_reads_it() -> None:
    assert checked(NewPriority, {"priority": "3", "next": "/"}).priority == 3
    with pytest.raises(RequestError, match="priority: must be at most 9"):
        checked(NewPriority, {"priority": "30"})
    for text in ("a\nb", "  ", "half of a character: \ud800"):
        with pytest.raises(RequestError, match="reason: must be one line"):
            checked(Why, {"reason": text})

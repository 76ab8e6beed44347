"""Who gets a page of an error, and who the problem document; where a login leads."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from bisector.app.wiring import Wiring
from tests.support.servers.web import make_tokens, serving, wiring_in


@pytest.fixture(scope="module")
def wiring(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    return wiring_in(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="module")
def secret(wiring: Wiring) -> str:
    return make_tokens(wiring)["operate"]


@pytest.fixture(scope="module")
def client(wiring: Wiring, secret: str) -> Iterator[httpx.Client]:
    with (
        serving(wiring) as url,
        httpx.Client(base_url=url, headers={"Accept": "text/html"}, timeout=60) as opened,
    ):
        yield opened


def test_a_browser_is_led_to_the_form_and_back(client: httpx.Client) -> None:
    answer = client.get("/bisections?page=2&text=a%26b")
    assert answer.status_code == 303
    form = client.get(answer.headers["location"])
    assert 'name="next" value="/bisections?page=2&amp;text=a%26b"' in form.text


@pytest.mark.parametrize(
    "path", ["/queue.json", "/queue.csv", "/bisections/x/events", "/api/v1/queue", "/metrics"]
)
def test_a_program_gets_a_problem_document(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 401 and answer.headers["content-type"] == "application/problem+json"


def test_an_error_is_a_page_to_a_browser(client: httpx.Client) -> None:
    answer = client.get("/there-is-no-such-page")
    assert answer.status_code == 404 and "<h1>There is no such address</h1>" in answer.text
    assert client.get("/there-is-no-such-page", headers={"Accept": "*/*"}).json()["exit_code"] == 1


def test_an_error_of_a_form_leads_back_to_its_page(client: httpx.Client, secret: str) -> None:
    """'look at it again' and the like were said without a way there."""
    ours = {"Sec-Fetch-Site": "same-origin", "Origin": str(client.base_url).rstrip("/")}
    assert client.post("/login", data={"token": secret}, headers=ours).status_code == 303

    def sent(path: str, **fields: str) -> str:
        return client.post(path, data=fields, headers=ours).text

    assert '<a href="/testbeds/guest">Back to the page</a>' in sent("/testbeds/guest/reservations", hours="x")
    assert '<a href="/bisections">Back to the page</a>' in sent("/bisections")
    named = "/bisections/a%20b%2525"
    assert f'<a href="{named}">Back to the page</a>' in sent(f"{named}/pause")
    assert "Back to" not in client.get("/testbeds/none").text
    assert 'href="//' not in sent(f"{client.base_url}//evil.example/x")
    client.cookies.clear()
    ended = client.post("/bisections/x/pause", headers=ours)  # where no browser could be led back to
    assert ended.status_code == 401 and "<h1>Nobody is logged in</h1>" in ended.text


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example"])
def test_no_login_leads_elsewhere(client: httpx.Client, secret: str, target: str) -> None:
    form = client.get("/login", params={"next": target})
    assert 'name="next" value="/"' in form.text
    ours = {"Origin": str(client.base_url).rstrip("/")}
    answer = client.post("/login", data={"token": f" {secret}\n", "next": target}, headers=ours)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    client.cookies.clear()


def test_a_wrong_token_does_not_forget_where_the_login_leads(client: httpx.Client) -> None:
    ours = {"Origin": str(client.base_url).rstrip("/")}
    form = client.post("/login", data={"token": "typo", "next": "/queue"}, headers=ours)
    assert form.status_code == 401 and "This is not a valid token." in form.text
    assert 'name="next" value="/queue"' in form.text


def test_a_link_of_another_site_is_followed_once_more(client: httpx.Client) -> None:
    answer = client.get("/bisections/x", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200 and '<meta http-equiv="refresh" content="0">' in answer.text
    answer = client.get("/bisections/x", headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.headers["location"] == "/login?next=%2Fbisections%2Fx"

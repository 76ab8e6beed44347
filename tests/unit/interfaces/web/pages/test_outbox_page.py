"""Who sees where messages go, and what is offered for a message in which state."""

from __future__ import annotations

import httpx
import pytest

from bisector.app.mail.delivery import outbox_of
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import outbox_page
from bisector.model.outbox import LAB, Delivery, Key, Message
from tests.support.servers.web import make_tokens, serving, wiring_in

HOOK = "https://hook.example/secret/path"
DRAFT, WAITING, UNSURE, STOPPED = 1, 2, 3, 4
"""Messages of `served_lab`."""


@pytest.fixture(scope="module")
def hook(lab: Wiring) -> int:
    """A message for a webhook."""
    key = Key("event", "w", "event", HOOK)
    entry = outbox_of(lab).put(key, "webhook", Message((HOOK,), "event", "{}"), "approved", by="perfbisect")
    assert entry is not None
    return entry.number


def test_readers_see_the_host_of_a_webhook_alone(
    client: httpx.Client, lab: Wiring, hook: int, as_reader: dict[str, str]
) -> None:
    """Its path is often the secret of who may post there."""
    outbox = outbox_of(lab)
    assert outbox.claim("one", 100) is not None
    outbox.finish(hook, "one", Delivery(refused={HOOK: "410 Gone"}))
    for path in ("/outbox", f"/outbox/{hook}"):
        for end in ("", ".json", ".csv"):
            assert "secret/path" in client.get(path + end).text, path + end
            read = client.get(path + end, headers=as_reader).text
            assert "hook.example" in read and "secret" not in read, path + end


def test_what_is_offered_depends_on_the_state(client: httpx.Client, lab: Wiring) -> None:
    outbox = outbox_of(lab)
    both = ("ann@lab.example", "bob@lab.example")
    numbers = []
    for at, (refused, later) in enumerate((((), ()), (both[1:], ()), (both[1:], both[:1]))):
        key = Key(f"sent-{at}", "w", "ended", LAB)
        entry = outbox.put(key, "mail", Message(both, "s", "t", {"X-A": "b"}), "approved", by="p")
        assert entry is not None
        claimed = outbox.claim("one", 100)
        assert claimed is not None and claimed.number == entry.number
        accepted = tuple(one for one in both if one not in (*refused, *later))
        refusals = dict.fromkeys(refused, "550 no such user")
        outbox.finish(entry.number, "one", Delivery(accepted, refusals, later="busy"))
        numbers.append(entry.number)

    def offered(number: int) -> tuple[bool, bool]:
        text = client.get(f"/outbox/{number}").text
        return f"/outbox/{number}/approve" in text, f"/outbox/{number}/stop" in text

    sent, partly, again = numbers
    assert {number: offered(number) for number in (DRAFT, WAITING, UNSURE, STOPPED, *numbers)} == {
        DRAFT: (False, True),
        WAITING: (True, True),
        UNSURE: (True, True),
        STOPPED: (True, False),
        sent: (False, False),
        partly: (True, False),
        again: (False, True),
    }
    assert "bob@lab.example: 550 no such user" in client.get(f"/outbox/{partly}").text
    assert client.get(f"/outbox/{sent}.json").json()["headers"] == {"X-A": "b"}


def test_who_lets_a_message_go_or_stops_it_is_written_down(client: httpx.Client, lab: Wiring) -> None:
    assert client.post(f"/outbox/{WAITING}/approve").status_code == 303
    assert client.post(f"/outbox/{WAITING}/stop", data={"reason": "not yet"}).status_code == 303
    made = [(c.who, c.what, c.target, c.details) for c in tokens.access_of(lab).changes(2)]
    assert made == [
        ("operate", "mail stop", str(WAITING), "not yet"),
        ("operate", "mail approve", str(WAITING), ""),
    ]
    entry = outbox_of(lab).entry(WAITING)
    assert (entry.state, entry.by, entry.note) == ("stopped", "operate", "not yet")


def test_old_ones_are_listed_where_they_wait_for_a_person(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_page, "_ROWS", 2)
    latest = [row["number"] for row in client.get("/outbox.json").json()]
    assert latest[:2] == [entry.number for entry in outbox_of(lab).entries(limit=2)]
    assert UNSURE in latest and not {DRAFT, STOPPED} & {*latest}


def test_a_server_without_a_database_has_no_message(tmp_path_factory: pytest.TempPathFactory) -> None:
    wiring = wiring_in(tmp_path_factory.mktemp("new"))
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    with serving(wiring) as url:
        assert httpx.get(f"{url}/outbox.json", headers=headers, timeout=60).json() == []

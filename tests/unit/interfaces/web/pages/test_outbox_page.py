"""Who sees where messages go, what is said of each, and what is offered for a message in which state."""

from __future__ import annotations

import httpx
import pytest

from bisector.app.mail import outbox_view
from bisector.app.mail.delivery import outbox_of
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import outbox_page
from bisector.model.outbox import LAB, Channel, Delivery, Key, Message
from bisector.report import phrases
from tests.support.pages.shown_pages import forms_of, kind_of, lead_of, pairs_of, rows_of
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


def test_a_row_says_what_became_of_a_message(client: httpx.Client, lab: Wiring) -> None:
    rows = {row["Message"]: row for row in rows_of(client.get("/outbox").text, "Messages")}
    entry = outbox_of(lab).entry(UNSURE)
    assert rows[str(UNSURE)] == {
        "Message": str(UNSURE),
        "State": "unsure",
        "To": "lab@example.org",
        "Subject": entry.message.subject,
        "About": "regression, done-1",
        "Changed": phrases.date(entry.changed),
        "What is said": f"{entry.note} (ann@lab)",
    }


def test_a_message_is_shown_as_it_is_sent(client: httpx.Client, lab: Wiring) -> None:
    both = ("ann@lab.example", "bob@lab.example")
    outbox = outbox_of(lab)
    message = Message(both, "sched: slower", "First line\n\n<last> line\n")
    entry = outbox.put(Key("shown", "w", "ended", LAB), "mail", message, "approved", by="ann")
    assert entry is not None
    page = client.get(f"/outbox/{entry.number}").text
    assert kind_of(page) == f"message {entry.number} approved"
    assert "<h1>sched: slower</h1>" in page and lead_of(page) == ""
    assert ">First line\n\n&lt;last&gt; line\n</pre>" in page
    known = {
        "to": ", ".join(both),
        "kind": "ended, for lab, by mail",
        "created": phrases.date(entry.created),
    }
    assert pairs_of(page) == known
    assert outbox.claim("one", 100) is not None
    sent = outbox.finish(entry.number, "one", Delivery(both))
    assert sent is not None and sent.sent is not None
    assert pairs_of(client.get(f"/outbox/{entry.number}").text) == {**known, "sent": phrases.date(sent.sent)}
    rows = {row["Message"]: row for row in rows_of(client.get("/outbox").text, "Messages")}
    assert [rows[str(entry.number)][head] for head in ("State", "To")] == ["sent", ", ".join(both)]
    draft = client.get(f"/outbox/{DRAFT}").text
    assert lead_of(draft) == outbox.entry(DRAFT).note and pairs_of(draft)["bisection"] == "done-1"
    values = client.get(f"/outbox/{DRAFT}.json").json()
    assert (values["text"], values["by"], values["note"]) == (
        outbox.entry(DRAFT).message.text,
        "ann@lab",
        lead_of(draft),
    )


def test_programs_read_the_same_of_a_message_as_from_the_command(client: httpx.Client, lab: Wiring) -> None:
    outbox = outbox_of(lab)
    key = Key("tried", "w", "event", "https://other.example/x")
    message = Message(("https://other.example/x",), "event", "{}")
    entry = outbox.put(key, "webhook", message, "approved", by="p", bisection="done-1")
    channels: tuple[Channel, ...] = ("webhook",)
    assert entry is not None and outbox.claim("one", 100, channels) is not None
    tried = outbox.finish(entry.number, "one", Delivery(refused={"https://other.example/x": "410 Gone"}))
    assert tried is not None and tried.attempts == 1 and tried.changed > tried.created
    found = client.get(f"/outbox/{entry.number}.json").json()
    row = outbox_view.row(tried)
    assert {name: found[name] for name in row if name in found} == {
        name: value for name, value in row.items() if name in found
    }
    assert {"state", "attempts", "changed", "created", "by", "note", "kind", "workload"} <= found.keys()
    assert (found["channel"], found["audience"], found["sent"]) == ("webhook", row["to"], tried.sent)


def test_who_may_only_look_is_offered_nothing(client: httpx.Client, as_reader: dict[str, str]) -> None:
    page = f"/outbox/{UNSURE}"
    assert forms_of(client.get(page).text) == {f"{page}/approve", f"{page}/stop"}
    assert forms_of(client.get(page, headers=as_reader).text) == set()


def test_what_may_have_arrived_is_sent_once_more(client: httpx.Client, lab: Wiring) -> None:
    outbox = outbox_of(lab)
    key = Key("no-such-user", "w", "ended", LAB)
    entry = outbox.put(key, "mail", Message(("x@lab.example",), "s", "t"), "approved", by="p")
    assert entry is not None and outbox.claim("one", 100) is not None
    outbox.finish(entry.number, "one", Delivery(refused={"x@lab.example": "550 no such user"}))
    assert outbox.entry(entry.number).state == "refused"
    offered = {n: client.get(f"/outbox/{n}").text for n in (WAITING, UNSURE, STOPPED, entry.number)}
    assert [n for n, text in offered.items() if "<button>Approve: send it</button>" in text] == [
        WAITING,
        STOPPED,
    ]
    assert [n for n, text in offered.items() if "<button>Approve: send it once more</button>" in text] == [
        UNSURE,
        entry.number,
    ]


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
    assert client.post(f"/outbox/{WAITING}/approve").headers["location"] == f"/outbox/{WAITING}"
    for step in ("stop", "approve"):
        back = client.post(f"/outbox/{WAITING}/{step}", data={"next": "/outbox"})
        assert back.headers["location"] == "/outbox"
    assert client.post(f"/outbox/{WAITING}/stop").headers["location"] == f"/outbox/{WAITING}"


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
        page = httpx.get(f"{url}/outbox", headers={**headers, "Accept": "text/html"}, timeout=60).text
        assert "No message yet." in page

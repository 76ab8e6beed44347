"""What every Outbox promises: a message is sent by one, once, or a person is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.copy_tables import copy_tables
from bisector.adapters.store.database import Database
from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.outbox.memory_outbox import MemoryOutbox
from bisector.adapters.store.outbox.sql_outbox import SqlOutbox
from bisector.errors import NotFound, RequestError
from bisector.mail_ports import Outbox
from bisector.model.outbox import DAY_SECONDS, Delivery, Key, Message, OutboxEntry

KEY = Key("c" * 40, "pipe-test", "regression", "lab")
MESSAGE = Message(("a@x", "Zoë <b@x>"), "slower", "text\n", {"References": "<1@x>"})


class Bench:
    """outbox; another: opens it as another process would; later: lets time pass."""

    def __init__(self, outbox: Outbox, another: Callable[[], Outbox], later: Callable[[float], None]) -> None:
        self.outbox, self.another, self.later = outbox, another, later

    def approved(self, about: str = KEY.about) -> OutboxEntry:
        entry = self.outbox.put(replace(KEY, about=about), "mail", MESSAGE, "approved", by="ann")
        assert entry is not None
        return entry


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    now = [1.8e9]
    if request.param == "memory":
        memory = MemoryOutbox(lambda: now[0])
        return Bench(memory, lambda: memory, lambda seconds: now.__setitem__(0, now[0] + seconds))
    url = request.getfixturevalue("database_url") if request.param == "postgresql" else None

    def open_again() -> Database:
        return open_state_file(tmp_path / "state.sqlite") if url is None else open_server(url)

    database = open_again()

    def later(seconds: float) -> None:
        for column in ("created", "changed", "first_attempt", "not_before", "sent"):
            database.execute(f"UPDATE outbox SET {column} = {column} - :seconds", seconds=seconds)

    return Bench(SqlOutbox(database), lambda: SqlOutbox(open_again()), later)


def test_a_message_is_kept_as_it_was_written(bench: Bench) -> None:
    entry = bench.outbox.put(KEY, "mail", MESSAGE, "waiting", by="w1", note="n", bisection="b-1")
    assert entry is not None
    (kept,) = bench.another().entries()
    assert kept == entry == bench.another().entry(entry.number) == bench.another().find(KEY)
    assert (kept.key, kept.message, kept.state, kept.by, kept.note) == (KEY, MESSAGE, "waiting", "w1", "n")
    assert kept.pending == MESSAGE.recipients and kept.created == kept.changed > 1e9
    assert bench.outbox.of_bisection("b-1") == [kept] and bench.outbox.of_bisection("b") == []
    assert bench.outbox.find(replace(KEY, kind="fixed")) is None
    with pytest.raises(NotFound, match="there is no message 99") as error:
        bench.outbox.entry(99)
    assert error.value.cure


def test_there_is_one_message_of_a_key_and_only_a_draft_is_replaced(bench: Bench) -> None:
    draft = bench.outbox.put(KEY, "mail", MESSAGE, "draft", by="w", note="a suspect testbed")
    better = bench.outbox.put(KEY, "mail", replace(MESSAGE, text="new"), "waiting", by="w")
    assert draft is not None and better is not None
    assert (better.number, better.created, better.message.text) == (draft.number, draft.created, "new")
    assert bench.outbox.put(KEY, "mail", MESSAGE, "approved", by="w") is None
    assert [e.message.text for e in bench.outbox.entries()] == ["new"]
    for other in ("about", "workload", "kind", "audience"):
        key = replace(KEY, **{other: "weekly"})  # type: ignore[arg-type]
        assert bench.outbox.put(key, "mail", MESSAGE, "waiting", by="w") is not None
    assert [e.number for e in bench.outbox.entries()] == [5, 4, 3, 2, 1]
    assert [e.number for e in bench.outbox.entries(["waiting"], limit=2)] == [5, 4]
    assert bench.outbox.entries(["draft", "sent"]) == []


def test_only_what_was_approved_is_taken_and_by_one_alone(bench: Bench) -> None:
    entry = bench.outbox.put(KEY, "mail", MESSAGE, "waiting", by="w")
    assert entry is not None and bench.outbox.claim("s", 9) is None
    assert bench.outbox.approve(entry.number, "ann").by == "ann"
    got: list[OutboxEntry | None] = []

    def take(sender: str) -> None:
        got.append(bench.another().claim(sender, 9))

    threads = [threading.Thread(target=take, args=(f"s{n}",)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (taken,) = [one for one in got if one is not None]
    assert (taken.state, taken.attempts, taken.number) == ("sending", 1, entry.number)
    assert bench.outbox.still_ours(entry.number, taken.sender)
    assert not bench.outbox.still_ours(entry.number, "another")
    with pytest.raises(RequestError, match="cannot be approved: it is being sent now"):
        bench.outbox.approve(1, "ann")
    with pytest.raises(RequestError, match="cannot be stopped: it is being sent now"):
        bench.outbox.stop(1, "ann", "")
    assert bench.outbox.finish(entry.number, "another", Delivery(MESSAGE.recipients)) is None
    done = bench.outbox.finish(entry.number, taken.sender, Delivery(MESSAGE.recipients))
    assert done is not None and (done.state, done.accepted) == ("sent", MESSAGE.recipients)
    assert bench.outbox.finish(entry.number, taken.sender, Delivery(later="again")) is None, "it is sent"
    assert bench.another().entry(entry.number) == done
    assert bench.outbox.claim("s", 9) is None
    with pytest.raises(RequestError, match="it is sent"):
        bench.outbox.approve(entry.number, "ann")


def test_who_refused_it_is_kept_apart_and_asked_again_alone(bench: Bench) -> None:
    entry = bench.approved()
    assert bench.outbox.claim("s", 9) is not None
    done = bench.outbox.finish(entry.number, "s", Delivery(("a@x",), {"Zoë <b@x>": "550 no such user"}))
    assert done is not None and done.state == "sent" and done.pending == ()
    assert bench.another().entry(entry.number).refused == {"Zoë <b@x>": "550 no such user"}
    again = bench.outbox.approve(entry.number, "ann")
    assert (again.state, again.pending, again.accepted) == ("approved", ("Zoë <b@x>",), ("a@x",))
    assert bench.outbox.claim("s", 9) is not None
    refused = bench.outbox.finish(entry.number, "s", Delivery(refused={"Zoë <b@x>": "550 still"}))
    assert refused is not None and refused.state == "sent", "the other has it"
    busy = bench.approved("e" * 40)
    for answer in (Delivery(refused={"Zoë <b@x>": "550 gone"}, later="451 busy"), Delivery(("a@x",))):
        assert bench.outbox.claim("s", 9) is not None
        one = bench.outbox.finish(busy.number, "s", answer)
        bench.later(61)
    assert one is not None and (one.state, one.refused) == ("sent", {"Zoë <b@x>": "550 gone"})
    alone = bench.approved("d" * 40)
    assert bench.outbox.claim("s", 9) is not None
    all_ = bench.outbox.finish(alone.number, "s", Delivery(refused=dict.fromkeys(MESSAGE.recipients, "no")))
    assert all_ is not None and all_.state == "refused"


def test_what_certainly_was_not_sent_is_tried_later_and_given_up_after_days(bench: Bench) -> None:
    entry = bench.approved()
    for pause in (60.0, 240.0):
        assert bench.outbox.claim("s", 9) is not None
        later = bench.outbox.finish(entry.number, "s", Delivery(later="connection refused"))
        assert later is not None and (later.state, later.note) == ("approved", "connection refused")
        assert later.not_before - later.changed == pytest.approx(pause, abs=0.01) and later.sent is None
        bench.later(pause - 2)
        assert bench.outbox.claim("s", 9) is None
        bench.later(3)
    bench.later(4 * DAY_SECONDS)
    assert bench.outbox.claim("s", 9) is not None
    given_up = bench.outbox.finish(entry.number, "s", Delivery(later="connection refused"))
    assert given_up is not None and given_up.state == "refused"
    assert given_up.refused["a@x"] == "given up: connection refused"
    assert bench.outbox.approve(entry.number, "ann").pending == MESSAGE.recipients
    assert bench.outbox.claim("s", 9) is not None


def test_a_sender_that_goes_on_is_not_given_up(bench: Bench) -> None:
    entry = bench.approved()
    assert bench.outbox.claim("s", 9) is not None
    bench.later(40)
    assert bench.outbox.still_ours(entry.number, "s")
    bench.later(40)
    assert bench.another().abandon(60) == []


def test_whose_sender_died_is_for_a_person(bench: Bench) -> None:
    entry = bench.approved()
    assert bench.outbox.claim("s", 9) is not None
    assert bench.outbox.abandon(60) == []
    bench.later(61)
    assert [e.number for e in bench.another().abandon(60)] == [entry.number]
    assert bench.outbox.entry(entry.number).state == "unsure"
    assert bench.outbox.claim("other", 9) is None
    assert not bench.outbox.still_ours(entry.number, "s"), "thawed: it must not send now"
    late = bench.outbox.finish(entry.number, "s", Delivery(MESSAGE.recipients))
    assert late is not None and late.state == "sent", "it had sent it, and lives"
    second = bench.approved("d" * 40)
    assert bench.outbox.claim("s", 9) is not None
    unsure = bench.outbox.finish(second.number, "s", Delivery(unsure="lost after DATA"))
    assert unsure is not None and (unsure.state, unsure.note) == ("unsure", "lost after DATA")
    bench.outbox.approve(second.number, "ann")
    assert bench.outbox.claim("t", 9) is not None
    assert bench.outbox.finish(second.number, "s", Delivery(MESSAGE.recipients)) is None
    assert bench.outbox.entry(second.number).state == "sending"
    third = bench.approved("e" * 40)
    assert bench.outbox.claim("s", 9) is not None
    bench.later(61)
    abandoned = [one.number for one in bench.outbox.abandon(60)]
    assert abandoned == [second.number, third.number], "the first one is sent, and stays so"
    bench.outbox.approve(third.number, "ann")
    late = bench.outbox.finish(third.number, "s", Delivery(MESSAGE.recipients))
    assert late is not None and late.state == "sent", "it had sent it, before anybody sent it once more"
    assert bench.outbox.claim("t", 9) is None


def test_a_draft_is_not_approved_and_what_was_stopped_can_be(bench: Bench) -> None:
    draft = bench.outbox.put(KEY, "mail", MESSAGE, "draft", by="w", note="the testbeds disagree")
    assert draft is not None
    with pytest.raises(RequestError, match="message 1 is a draft: the testbeds disagree"):
        bench.outbox.approve(draft.number, "ann")
    stopped = bench.outbox.stop(draft.number, "bob", "known already")
    assert (stopped.state, stopped.by, stopped.note) == ("stopped", "bob", "known already")
    assert bench.outbox.claim("s", 9) is None
    with pytest.raises(RequestError, match="cannot be stopped: it is stopped"):
        bench.outbox.stop(draft.number, "bob", "")
    assert bench.outbox.approve(draft.number, "ann").state == "approved"
    assert bench.outbox.stop(draft.number, "bob", "it was the wrong one").state == "stopped"
    assert bench.outbox.claim("s", 9) is None


def test_the_daily_limit_holds_back_mails_alone(bench: Bench) -> None:
    for number in range(3):
        bench.approved(f"{number}" * 40)
    hook = Message(("https://x/",), "", "{}")
    bench.outbox.put(replace(KEY, kind="event"), "webhook", hook, "approved", by="w")
    assert bench.outbox.claim("s", 9, ()) is None
    hooked = bench.outbox.claim("s", 0, ["webhook"])
    assert hooked is not None and hooked.number == 4
    bench.outbox.finish(4, "s", Delivery(later="status 500"))
    bench.later(61)
    taken = [bench.outbox.claim("s", 2) for _ in range(4)]
    assert [one and one.number for one in taken] == [1, 2, 4, None]
    bench.outbox.finish(1, "s", Delivery(later="connection refused"))
    assert [one and one.number for one in [bench.outbox.claim("s", 2)]] == [3], "1 was not sent"
    bench.outbox.finish(2, "s", Delivery(MESSAGE.recipients))
    bench.outbox.finish(3, "s", Delivery(unsure="lost"))
    bench.later(DAY_SECONDS - 60)
    assert bench.outbox.claim("s", 2) is None
    bench.later(120)
    assert bench.outbox.claim("s", 2) is not None


def test_until_when_ended_bisections_are_told_is_kept_for_each_channel(bench: Bench) -> None:
    assert bench.outbox.told_until("mail") is None
    for at in (1.8e9 + 0.25, 1.7e9):
        bench.outbox.tell_until("mail", at)
        assert bench.another().told_until("mail") == at
    assert bench.another().told_until("webhook") is None


def test_db_move_takes_along_until_when_it_was_told(tmp_path: Path) -> None:
    old, new = (open_state_file(tmp_path / f"{name}.sqlite") for name in ("old", "new"))
    SqlOutbox(old).tell_until("mail", 1.7e9)
    copy_tables(old, new, lambda text: None)
    assert SqlOutbox(new).told_until("mail") == 1.7e9
    assert SqlOutbox(new).told_until("changes") is None

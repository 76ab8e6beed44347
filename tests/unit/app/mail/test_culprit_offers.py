"""What a mail to maintainers begins as: sent by itself, waiting for a person, or a draft."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.git.upstream_fix import UpstreamFix
from bisector.adapters.mail.recipients import Recipients
from bisector.adapters.store.outbox.memory_outbox import MemoryOutbox
from bisector.app.mail import culprit_offers
from bisector.app.mail.culprit_offers import Prepared, state_of
from bisector.model.outbox import LAB, MAINTAINERS, Message, State
from bisector.model.series import owner_of
from tests.support.report_material import demo

FOUND = demo()
assert FOUND.conclusion is not None
(CULPRIT,) = FOUND.conclusion.findings
PEOPLE = Recipients(("Zoë <Z@x.org>", "list@x.org"), ("A note.",))
PUBLIC, OTHER = owner_of("mainline"), owner_of("nightly")


@pytest.mark.parametrize(
    ("against", "doubts", "owner", "state"),
    [
        ((), (), PUBLIC, "approved"),
        ((), ("a later commit names it",), PUBLIC, "waiting"),
        ((), (), OTHER, "waiting"),
        ((), (), "mainline", "waiting"),  # a person of that name
        (("the testbed is suspect",), (), PUBLIC, "draft"),
        (("the testbed is suspect",), ("a later commit names it",), OTHER, "draft"),
    ],
)
def test_nothing_goes_out_by_itself_that_a_person_should_look_at(
    against: tuple[str, ...], doubts: tuple[str, ...], owner: str, state: State
) -> None:
    stored, mail = SimpleNamespace(owner=owner), SimpleNamespace(public=("mainline",))
    wiring: Any = SimpleNamespace(
        settings=SimpleNamespace(mail=mail), store=SimpleNamespace(load=lambda bisection: stored)
    )
    material: Any = SimpleNamespace(id="one")
    prepared = Prepared(Message(("a@x.org",), "slower", "text"), against, doubts)
    assert state_of(wiring, material, prepared) == state
    assert prepared.reasons == (*against, *doubts)


class Played:
    """A wiring whose settings, testbeds and outbox are played; git knows nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **mail: Any) -> None:
        self.outbox = MemoryOutbox(lambda: 1.0)
        self.testbeds: list[Any] = []
        self.people: Recipients = PEOPLE
        self.fix: UpstreamFix | None = None
        self.asked_to_leave_out: list[dict[str, str]] = []
        given = {
            "sender": "Lab <lab@y.org>",
            "lab": ("team@y.org",),
            "opt_out": (),
            "public": (),
            "web": None,
        }
        self.mail = SimpleNamespace(**{**given, **mail})
        self.wiring: Any = SimpleNamespace(
            settings=SimpleNamespace(mail=self.mail),
            store=SimpleNamespace(load=lambda _: SimpleNamespace(owner="ann")),
            coordinator=SimpleNamespace(testbeds=lambda: self.testbeds),
            repo=Path("/none"),
            bisection_folder=lambda _: Path("/state/b-1"),
        )

        def other_effects(*_: object, suspect: dict[str, str]) -> list[object]:
            self.asked_to_leave_out.append(suspect)
            return []

        played: dict[str, Any] = {
            "outbox_of": lambda _: self.outbox,
            "recipients": lambda *_: self.people,
            "find_fix": lambda *_: self.fix,
            "other_effects": other_effects,
            "alert_lines": lambda *_: [],
        }
        for name, does in played.items():
            monkeypatch.setattr(culprit_offers, name, does)

    def prepared(self) -> Prepared:
        return culprit_offers.prepare_upstream(self.wiring, FOUND, CULPRIT, self.wiring.settings.mail, "Lab")

    def offered(self) -> dict[str, State]:
        """Offer what was found; return the state of each message that is new or changed, by audience."""
        made = culprit_offers.offer_reports(self.wiring, FOUND)
        return {one.key.audience: one.state for one in made}


def machine(name: str, state: str, reason: str = "") -> Any:
    return SimpleNamespace(name=name, state=state, reason=reason)


def test_who_has_opted_out_gets_no_mail_however_the_address_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = Played(monkeypatch, opt_out=["z@X.org"]).prepared()
    assert some.message.recipients == ("list@x.org",) and some.against == ()
    none = Played(monkeypatch, opt_out=["z@x.org", "LIST@x.org"]).prepared()
    assert none.message.recipients == () and none.against == ("nobody is known who could get it",)


def test_the_lab_is_written_to_where_it_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Played(monkeypatch).offered() == {MAINTAINERS: "waiting", LAB: "approved"}
    assert Played(monkeypatch, lab=()).offered() == {MAINTAINERS: "waiting"}


def test_only_what_has_changed_is_offered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Played(monkeypatch)
    lab.people = Recipients((), ("A note.",))
    assert lab.offered() == {MAINTAINERS: "draft", LAB: "approved"}
    assert lab.offered() == {}
    lab.people = Recipients((), ("Another note.",))
    assert lab.offered() == {MAINTAINERS: "draft"}, "its text is another one"
    lab.testbeds = [machine("laptop-icount", "suspect", "its fan")]
    assert lab.offered() == {MAINTAINERS: "draft"}, "there is one more reason"
    (draft,) = lab.outbox.entries(["draft"])
    assert draft.note == "testbed 'laptop-icount' is suspect: its fan; nobody is known who could get it"


@pytest.mark.parametrize(
    ("state", "reason", "said"),
    [
        ("good", "", ()),
        ("maintenance", "a new disk", ()),
        ("suspect", "its fan", ("testbed 'laptop-icount' is suspect: its fan",)),
        ("suspect", "", ("testbed 'laptop-icount' is suspect: suspect",)),
    ],
)
def test_what_a_suspect_testbed_has_measured_is_not_sent_and_stands_in_no_mail(
    monkeypatch: pytest.MonkeyPatch, state: str, reason: str, said: tuple[str, ...]
) -> None:
    lab = Played(monkeypatch)
    lab.testbeds = [machine("laptop-icount", state, reason), machine("box2", "good")]
    assert lab.prepared().against == said
    assert lab.offered()[MAINTAINERS] == ("draft" if said else "waiting")
    left_out = {"laptop-icount"} if said else set()
    assert [{*asked} for asked in lab.asked_to_leave_out] == [left_out] * 3, "of both mails"


def test_a_revert_is_no_doubt_and_what_a_tag_says_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Played(monkeypatch)
    lab.fix = UpstreamFix("f" * 40, "Revert it", True)
    said = f'a later commit reverts it (not measured): {"f" * 12} ("Revert it")'
    assert (lab.prepared().against, lab.prepared().doubts) == ((said,), ())
    lab.fix = UpstreamFix("f" * 40, "mend it", False)
    assert lab.prepared().against == () and len(lab.prepared().doubts) == 1
    words = " ".join(lab.prepared().message.text.split())
    assert "A note. A later commit names it in 'Fixes:' (not measured): ffffffffffff (\"mend it\")." in words


def test_the_tags_of_a_fix_link_to_the_report_where_others_can_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    public = Played(monkeypatch, web="https://perf.y.org/").prepared().message
    assert "| Closes: https://perf.y.org/bisections/b-1\n" in public.text
    message = Played(monkeypatch).prepared().message
    itself = message.headers["Message-ID"].strip("<>")
    assert f"| Closes: https://lore.kernel.org/all/{itself}/\n" in message.text


def test_a_repository_that_is_gone_stops_no_report(tmp_path: Path) -> None:
    gone: Any = SimpleNamespace()
    found = culprit_offers.recipients(gone, tmp_path / "gone", "c" * 40)
    (note,) = found.notes
    assert found.addresses == () and note.startswith("Author and maintainers are not known: ")
    assert culprit_offers.find_fix(tmp_path / "gone", "c" * 40) is None
    assert culprit_offers.find_url(tmp_path / "gone", "origin", "c" * 40) == ""

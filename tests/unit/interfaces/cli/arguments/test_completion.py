"""What a shell's completion offers, asked as a shell asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.store.alerts.sql_alerts import SqlAlerts
from bisector.adapters.store.open_database import open_state_file
from bisector.app.mail.delivery import outbox_of
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.cli import run
from bisector.model.alerts import HistoryEntry
from bisector.model.outbox import Key, Message, State
from bisector.model.stored_bisection import Stored
from bisector.schemas.settings import load_settings
from tests.bad_input.request_place import make_place
from tests.support.fake_bisection import store_bisections
from tests.support.series.alert_lab import found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("place"))


@pytest.fixture
def place(shared: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder is one with a repository and a lab; state and cache are another's."""
    monkeypatch.chdir(shared)
    return own_folders


def completed(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what bash gets for a line whose last word is begun; a space behind it begins another."""
    monkeypatch.setenv("_PERFBISECT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        run([])
    out, err = capsys.readouterr()
    assert err == ""
    return out.split()


LINES = {
    "start --workload pou": ["poundtime/small", "poundtime"],
    "start --repo linux --good v": ["v1", "v2", "v3", "v4", "v5"],
    "start --repo linux --skip v1..v5": ["v1..v5"],
    "kernel check --repo linux v1..unr": ["v1..unrelated"],
    "start --workload pipe-test --metric r": ["real"],
    "start --workload absent --metric r": [],
    "compare --format ": ["people", "mmtests", "perf-stat", "robot", "runs", "json"],
    "start --lab lab.yml --testbed ": ["me", "guest"],
    "start --lab absent.yml --testbed ": [],
    "start --recipe x86_64-o": ["x86_64-old"],
    "start --monitor perf": ["perf-stat", "perf-record"],
    "mark x v1 ": ["good", "bad", "skip", "old", "new"],
    "alert list --state cu": ["culprit"],
    "alert set x --state w": ["wontfix"],
    "priority x ": ["high", "normal", "low"],
    "start --priority l": ["low"],
    "series add x --time-zone Europe/Berl": ["Europe/Berlin"],
    "help workl": ["workload"],
    "workl": ["workload"],
}


@pytest.mark.parametrize("line", LINES)
def test_values(
    line: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(f"perfbisect {line}", monkeypatch, capsys) == LINES[line]


def test_machines_that_are_checked_are_testbeds_and_builders(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    local = "ansible_connection: local"
    (place / "lab.yml").write_text(
        f"testbeds: {{hosts: {{me: {{{local}}}}}}}\nbuilders: {{hosts: {{smith: {{{local}}}}}}}\n"
    )
    assert completed(f"perfbisect lab check --lab {place}/lab.yml ", monkeypatch, capsys) == ["me", "smith"]
    assert completed(f"perfbisect lab check --lab {place}/lab.yml s", monkeypatch, capsys) == ["smith"]


def test_ids(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert completed("perfbisect report ", monkeypatch, capsys) == []
    assert not (place / "state").exists(), "completion makes no state"
    monkeypatch.setenv("PERFBISECT_NONSENSE", "1")
    assert completed("perfbisect report ", monkeypatch, capsys) == []
    monkeypatch.delenv("PERFBISECT_NONSENSE")
    store_bisections(place, monkeypatch)
    ids = completed("perfbisect report ", monkeypatch, capsys)
    assert ids
    assert completed(f"perfbisect report {ids[0]}", monkeypatch, capsys) == [ids[0]]


def test_ids_of_nights_do_not_hide_those_of_searches(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A series adds a bisection each night: among hundreds nobody found their own."""
    store = store_bisections(place, monkeypatch)
    request = store.load("fake-new").request
    graph = store.load("fake-new").graph
    for number, name in enumerate(("pipe-night-1", "pipe-confirm-2", "pipe-alert-3")):
        store.create(Stored(name, 3.0 + number, request, "cancelled", graph, owner="series pipe"))
    assert completed("perfbisect report ", monkeypatch, capsys) == ["pipe-alert-3", "fake-new", "fake-old"]
    assert completed("perfbisect show pipe-n", monkeypatch, capsys) == ["pipe-night-1"]


def test_ids_of_open_alerts(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("perfbisect alert show ", monkeypatch, capsys) == []
    assert not (place / "state").exists(), "completion makes no state"
    alerts = SqlAlerts(open_state_file(place / "state" / "perfbisect.sqlite"))
    for number, triage in enumerate((None, "invalid", "acknowledged")):
        alerts.add(found(1, 2, id=f"a{number}", triage=triage), HistoryEntry("perfbisect", "suspect"))
    assert completed("perfbisect alert show ", monkeypatch, capsys) == ["a2", "a0"]


def test_messages_that_may_be_approved_are_offered_for_approval(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("perfbisect mail approve ", monkeypatch, capsys) == []
    wiring = Wiring(load_settings(None))
    outbox = outbox_of(wiring)
    states: tuple[State, ...] = ("draft", "waiting", "approved", "stopped")
    for state in states:
        outbox.put(Key(state, "", "weekly", "lab"), "mail", Message((), "", ""), state, by="ann")
    assert completed("perfbisect mail approve ", monkeypatch, capsys) == ["4", "2"]
    assert completed("perfbisect mail stop ", monkeypatch, capsys) == ["3", "2", "1"]


def test_names_of_tokens_that_can_be_revoked(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("perfbisect token revoke ", monkeypatch, capsys) == []
    wiring = Wiring(load_settings(None))
    for name in ("ann", "bob"):
        tokens.add(wiring, name, "read", None, "the test")
    tokens.revoke(wiring, "bob", "the test")
    assert completed("perfbisect token revoke ", monkeypatch, capsys) == ["ann"]
    assert completed("perfbisect token add ", monkeypatch, capsys) == []

"""The commands for bisections that others execute, one after the other as a user would type them."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.store.open_database import open_server, open_state_file
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import find_culprit
from bisector.engine import executor
from bisector.engine.state_lock import QUEUE, lock
from bisector.errors import RecordsUnusable
from bisector.interfaces.cli import run
from bisector.model.decisions import Measure
from bisector.schemas.database_url import DatabaseUrl
from tests.support import fake_bisection as fake
from tests.support.command_line import START, Bench, said
from tests.support.machines.fake_inventory import inventory_of


@pytest.fixture(params=["state file", "server"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep bisections in the state folder, then in a PostgreSQL database."""
    lab = tmp_path / "lab.yml"
    lab.write_text(inventory_of("fake"))
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    if request.param == "server":
        url: DatabaseUrl = request.getfixturevalue("database_url")
        monkeypatch.setenv("PERFBISECT_DATABASE", url.secret)


@pytest.mark.usefixtures("database")
def test_queued_watched_executed_and_reported(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    name = said(capsys, *START, "--detach").split()[0]
    assert run(["queue"]) == 0
    out, err = capsys.readouterr()
    assert re.search(rf"^{name} +queued .*waits for a testbed or a kernel", out, re.MULTILINE)
    assert "nobody executes them: 'perfbisect worker' does" in err
    assert run(["worker", "--until-idle"]) == 0
    _, err = capsys.readouterr()
    assert f"{name} on fake: " in err
    assert err.splitlines()[-1].endswith("nothing is left to execute here")
    assert "Nothing is queued." in said(capsys, "queue")
    report = bench.state / "bisections" / name / "report.txt"
    assert bench.lab.graph.shas[fake.CULPRIT][:12] in report.read_text(), "written by the worker"
    assert bench.lab.graph.shas[fake.CULPRIT][:12] in said(capsys, "watch", name)


@pytest.mark.parametrize(("is_stopped", "code"), [(True, 0), (False, 3)])
def test_a_worker_that_is_stopped_while_its_records_cannot_be_written_has_stopped(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_stopped: bool,
    code: int,
) -> None:
    def lost(store: object, folder: Path, others: object, stop: threading.Event, **_: object) -> None:
        if is_stopped:
            stop.set()
        raise RecordsUnusable("the database does not answer")

    monkeypatch.setattr(executor, "serve", lost)
    assert run(["worker"]) == code
    err = capsys.readouterr().err
    assert "the database does not answer" in err and ("stopped; nothing is lost" in err) is is_stopped


@pytest.mark.usefixtures("database")
def test_this_host_must_be_ready_for_what_it_executes_itself(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """With a server, that may be another host; whoever only queues needs no compiler."""
    asked: list[object] = []
    monkeypatch.setattr(find_culprit, "require_ready", lambda wiring, request: asked.append(request))
    said(capsys, *START, "--detach")
    assert len(asked) == (0 if "server" in request.node.name else 1)
    asked.clear()
    said(capsys, *START)
    assert len(asked) == 1


@pytest.mark.parametrize("command", [["worker", "w2", "--until-idle"], ["worker", "w2", "--check"], START])
def test_another_hosts_testbed_is_refused_at_the_moment_of_use(
    database_url: DatabaseUrl,
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
) -> None:
    lab = bench.state.parent / "lab.yml"
    guest = inventory_of("fake", ", mine: {ansible_host: 192.0.2.1}")
    lab.write_text(f"{guest}builders: {{hosts: {{}}}}\n")
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    monkeypatch.setenv("PERFBISECT_DATABASE", database_url.secret)
    coordinator = SqlCoordinator(open_server(database_url))
    coordinator.bind_testbed("fake", "rack1", move=False)
    assert run(command) == 1
    said = " ".join("".join(capsys.readouterr()).split())
    assert f"{lab}: host 'fake' is another machine on each host, and 'rack1' has it" in said
    assert "set perfbisect_worker of 'fake'" in said
    assert coordinator.testbed_hosts() == {"fake": "rack1"}
    assert not coordinator.leases()


@pytest.mark.usefixtures("database")
def test_what_rests_is_not_watched_and_can_be_paused_resumed_and_cancelled(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    name = said(capsys, *START, "--detach").split()[0]
    said(capsys, "pause", name)
    assert "Nothing is queued." in said(capsys, "queue")
    assert run(["watch", name]) == 1
    assert f"the bisection '{name}' is not executed (paused)" in capsys.readouterr().err
    assert said(capsys, *START, "--detach").split()[0] == name, "the same request goes on"
    said(capsys, "cancel", name)
    assert run(["pause", name]) == 1
    assert "has ended (cancelled)" in capsys.readouterr().err


@pytest.mark.usefixtures("database")
def test_what_people_did_is_told_with_who_and_why(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFBISECT_OWNER", "ada@lab")
    name = said(capsys, *START, "--detach", "--priority", "high").split()[0]
    monkeypatch.setenv("PERFBISECT_OWNER", "bob@lab")
    assert re.search("priority +high", said(capsys, "status"))
    assert said(capsys, *START, "--detach", "--priority", "3").split()[0] == name
    said(capsys, "pause", name, "--reason", "new memory")
    told = said(capsys, "status")
    assert re.search("begun by +ada@lab", told)
    assert re.search(r"priority +3$", told, re.MULTILINE)
    assert re.search(r"last action +paused by bob@lab, 20.* UTC: new memory", told)
    assert run(["priority", name, "normal", "--reason", "no hurry"]) == 0
    assert f"{name} has priority normal now" in capsys.readouterr().err
    assert "priority  " not in said(capsys, "status")
    assert run(["resume", name, "--reason", "it is there"]) == 0
    capsys.readouterr()
    (listed,) = json.loads(said(capsys, "list", "--json"))
    assert (listed["owner"], listed["priority"]) == ("ada@lab", 5)
    action = listed["last_action"]
    assert (action["what"], action["by"], action["why"]) == ("resumed", "bob@lab", "it is there")
    assert run(["priority", name, "high"]) == 1
    assert "has ended (done)" in capsys.readouterr().err
    assert run(["priority", name, "urgent"]) == 1
    assert "'urgent' is not a priority" in capsys.readouterr().err


def test_the_queue_says_whose_each_is_how_urgent_and_when_it_may_end(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFBISECT_OWNER", "ada@lab")
    name = said(capsys, *START, "--detach").split()[0]
    store = SqlStore(open_state_file(bench.state / "perfbisect.sqlite"))
    assert "ada@lab" not in said(capsys, "queue"), "nobody else's is there"
    urgent = replace(store.load(name), id="urgent-1", priority=2, owner="bob@lab", created=2e9)
    store.create(urgent)
    for one in (name, "urgent-1"):
        store.decide(one, Measure(0, 1, "search", "why", left=6000.0))
    unknown = rf"^{name} +queued +normal .* \u2014 +ada@lab: waits for"
    assert re.search(unknown, said(capsys, "queue"), re.MULTILINE), "nobody executes"
    with lock(bench.state, QUEUE):
        _, first, second = said(capsys, "queue").splitlines()
        found = json.loads(said(capsys, "queue", "--json"))["bisections"]
    assert re.match("urgent-1 +queued +high .* in 1 h 40 min +bob@lab: waits for a testbed", first)
    assert re.match(rf"{name} +queued +normal .* in 3 h 20 min +ada@lab: .*; begins in 1 h 40 min$", second)
    assert [one["place"] for one in found] == [1, 2]
    assert found[0]["expected_end"] == pytest.approx(found[1]["expected_begin"])


def test_who_queues_is_told_who_executes(
    bench: Bench, capsys: pytest.CaptureFixture[str], own_folders: Path
) -> None:
    with lock(bench.state, QUEUE):
        assert run([*START, "--detach"]) == 0
        assert "executes what is queued in this state folder" in capsys.readouterr().err
        assert run(["worker"]) == 1
        assert "executes what is queued in this state folder" in capsys.readouterr().err


@pytest.mark.usefixtures("database")
def test_testbeds_are_drained_reserved_and_released(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = own_folders / "lab.yml"
    lab.write_text(inventory_of("fake"))
    monkeypatch.setenv("PERFBISECT_LAB", str(lab))
    assert re.search(r"^fake +good *$", said(capsys, "testbed", "list"), re.MULTILINE)
    said(capsys, "testbed", "drain", "fake", "--reason", "new memory")
    assert re.search(r"^fake +maintenance +new memory \(\w+@", said(capsys, "testbed", "list"), re.MULTILINE)
    assert run(["testbed", "reserve", "fake", "--hours", "2"]) == 0
    assert "fake is reserved by" in capsys.readouterr().err
    assert " until 2" in said(capsys, "testbed", "list")
    assert run(["testbed", "release", "fake"]) == 0
    assert capsys.readouterr().err == "fake: good; no reservation of yours is left\n"
    assert " until 2" not in said(capsys, "testbed", "list")
    assert run(["testbed", "reserve", "fake", "--in", "12"]) == 0
    assert re.search(r"is reserved by \S+ from 2\S+ \S+ UTC until 2", capsys.readouterr().err)
    assert re.search(r"^fake +good +\S+ from 2", said(capsys, "testbed", "list"), re.MULTILINE)
    said(capsys, "testbed", "release", "fake")
    said(capsys, "testbed", "retire", "fake", "--reason", "sold")
    assert json.loads(said(capsys, "testbed", "list", "--json"))[0]["state"] == "retired"
    monkeypatch.setenv("PERFBISECT_OWNER", "ann@lab")
    said(capsys, "testbed", "reserve", "fake")
    monkeypatch.delenv("PERFBISECT_OWNER")
    assert run(["testbed", "release", "fake"]) == 0
    assert "fake: good; still reserved by ann@lab until 2" in capsys.readouterr().err
    assert run(["testbed", "drain", "fak"]) == 1
    assert "did you mean 'fake'" in capsys.readouterr().err

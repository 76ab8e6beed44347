"""Commands print the same at a server as on its machine, byte for byte, and end with the same code.

Of `operations`: `local_operations` and `remote_operations`, `event_stream` and `server_connection`; of the
server: `bisection_routes` and `queue_routes`. Commands `ask` one of the two. `watch_bisection` is
the same for both.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bisector.app import find_culprit
from bisector.app.operations.operations import MAX_REMOVED
from bisector.app.operations.remote_operations import RemoteOperations
from bisector.app.upkeep import tokens
from bisector.app.watching.watch_bisection import Watching
from bisector.app.wiring import Wiring
from bisector.schemas.settings import load_settings
from bisector.schemas.web_settings import WebSettings
from tests.support import fake_bisection as fake
from tests.support.command_line import Bench
from tests.support.servers.command_client import Client, Printed, begin_another
from tests.support.servers.web import serving

LOOKING: Sequence[Sequence[str]] = (
    ["list"],
    ["list", "--limit", "1"],
    ["list", "--all", "--json"],
    ["list", "--limit", "0"],
    ["status", "{done}"],
    ["status", "{done}", "--json"],
    ["status"],
    ["show", "{done}"],
    ["show", "{done}", "--json"],
    ["show", "{done}", "--commit", "{sha}"],
    ["show", "{done}", "--commit", "bad", "--json"],
    ["show", "{done}", "--commit", "nothing-of-the-kind"],
    ["report", "{done}"],
    ["report", "{done}", "--json"],
    ["report", "{open}"],
    ["log", "{done}"],
    ["log", "{done}", "--json"],
    ["queue"],
    ["queue", "--json"],
    ["watch", "{done}"],
    ["watch", "{done}", "--json"],
    ["watch", "{open}"],
    ["status", "no-such-bisection"],
    ["cancel", "{done}"],
    ["pause", "{done}"],
    ["mark", "{done}", "{sha}", "bad"],
    ["mark", "{open}", "{sha}", "worse"],
    ["mark", "{open}", "bad", "good"],
    ["discard", "{open}", "--boot", "b99"],
    ["discard", "{open}"],
    ["testbed", "list"],
    ["testbed", "list", "--json"],
    ["testbed", "drain", "fak"],
    ["testbed", "reserve", "fak"],
)


def test_every_command_prints_the_same(client: Client, bench: Bench, tmp_path: Path) -> None:
    words = {"sha": bench.lab.graph.shas[fake.CULPRIT]}
    for row in json.loads(client.here("list", "--json")[1]):
        words["done" if row["status"] == "done" else "open"] = row["id"]
    for line in LOOKING:
        arguments = [word.format(**words) for word in line]
        assert client.there(*arguments) == client.here(*arguments), arguments
    here, there = tmp_path / "here.html", tmp_path / "there.html"
    assert client.there("report", words["done"], "--html", str(there))[0] == 0
    assert client.here("report", words["done"], "--html", str(here))[0] == 0
    assert there.read_bytes() == here.read_bytes()
    codes = {client.there(*(word.format(**words) for word in line))[0] for line in LOOKING}
    assert codes == {0, 1}


@pytest.mark.parametrize(
    "line",
    [
        ["mark", "{open}", "{sha}", "bad", "--note", "seen"],
        ["mark", "{open}", "{sha}", "skip", "--json"],
        ["pause", "{open}", "--reason", "new memory"],
        ["pause", "{open}", "--json"],
        ["cancel", "{open}"],
        ["cancel", "{open}", "--json", "--reason", "enough"],
        ["priority", "{open}", "high"],
        ["priority", "{open}", "7", "--reason", "later", "--json"],
    ],
    ids=" ".join,
)
def test_what_changes_a_bisection_does_the_same(client: Client, bench: Bench, line: list[str]) -> None:
    words = {"sha": bench.lab.graph.shas[fake.CULPRIT]}
    store = Wiring(load_settings()).store
    for row in store.list():
        words["done" if row.status == "done" else "open"] = row.id
    arguments = [word.format(**words) for word in line]

    def state() -> tuple[object, ...]:
        stored = store.load(words["open"])
        records = [record for _, record in store.records(words["open"])]
        action = stored.action and (stored.action.what, stored.action.by, stored.action.why)
        return stored.status, stored.priority, action, records

    said = client.there(*arguments)
    there = state()
    store.remove(words["open"])
    assert begin_another(bench) == words["open"]
    assert said == client.here(*arguments) and said[0] == 0
    assert state() == there
    (change,) = tokens.access_of(Wiring(load_settings())).changes(1)
    assert (change.who, change.what, change.target) == ("operate", line[0], words["open"])


@pytest.mark.parametrize(
    "line",
    [
        ["drain", "--reason", "new memory"],
        ["drain", "--json"],
        ["retire"],
        ["release"],
        ["release", "--json"],
        ["reserve", "--hours", "2"],
        ["reserve", "--in", "5", "--json"],
    ],
    ids=" ".join,
)
def test_testbeds_are_changed_there_as_here(client: Client, line: list[str]) -> None:
    coordinator = Wiring(load_settings()).coordinator
    now = coordinator.now()

    def begin() -> None:
        coordinator.set_testbed("fake", "suspect", "as before", "ann")
        coordinator.unreserve("fake", "operate")
        coordinator.reserve("fake", "operate", now + 9 * 3600.0, now + 8 * 3600.0)

    def done(run: Callable[..., Printed]) -> tuple[object, ...]:
        begin()
        code, *texts = run("testbed", line[0], "fake", *line[1:])
        (state,) = coordinator.testbeds()
        held = [(r.who, round((r.end - r.start) / 60)) for r in coordinator.reservations()]
        return (
            code,
            [re.sub("[0-9]+", "N", text) for text in texts],
            (state.state, state.reason, state.by),
            held,
        )

    there = done(client.there)
    assert there == done(client.here) and there[0] == 0
    (change,) = tokens.access_of(Wiring(load_settings())).changes(1)
    what = "reserve" if line[0] == "reserve" else "state"
    assert (change.who, change.what, change.target) == ("operate", f"testbed {what}", "fake")


@pytest.mark.parametrize("name", ["../x", "x/../../tokens", "..", "-x", "fake\0", "x" * 300, "' OR 1=1 --"])
def test_no_testbed_is_made_by_naming_one(client: Client, name: str) -> None:
    for line in (["drain"], ["retire"], ["release"], ["reserve"]):
        code, out, err = client.there("testbed", *line, "--", name)
        assert (code, out) == (1, "") and err
    coordinator = Wiring(load_settings()).coordinator
    assert not coordinator.testbeds() and not coordinator.reservations()
    assert all(change.what == "token add" for change in tokens.access_of(Wiring(load_settings())).changes(9))


def test_an_administrator_removes_bisections(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Wiring(load_settings()).store
    done, open_ = sorted((row.id for row in store.list()), key=lambda one: store.status(one) != "done")
    code, _, err = client.there("rm", done, "--yes")
    assert code == 1 and "the token 'operate' has the role 'operate'; this needs 'admin'" in err
    monkeypatch.setenv("PERFBISECT_TOKEN", client.secrets["admin"])
    for line in (
        [done],
        [done, "--dry-run"],
        [done, "--dry-run", "--json"],
        [done, open_, "--yes"],
        ["../x"],
    ):
        assert client.there("rm", *line) == client.here("rm", *line), line
    assert len(store.list()) == 2  # nobody could be asked, or one can be resumed
    code, out, _ = client.there("rm", done, "--yes", "--json")
    (item,) = json.loads(out)["items"]
    assert (code, item["name"], item["removed"]) == (0, done, True) and not Path(item["path"]).exists()
    assert [row.id for row in store.list()] == [open_]
    (change,) = tokens.access_of(Wiring(load_settings())).changes(1)
    assert (change.who, change.what, change.target) == ("admin", "rm", done)


def test_more_are_removed_than_one_request_can_name(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Wiring(load_settings()).store
    done = next(row.id for row in store.list() if row.status == "done")
    names = [done, *(f"more-{number}" for number in range(MAX_REMOVED + 20))]
    for name in names[1:]:
        store.create(replace(store.load(done), id=name))
    monkeypatch.setenv("PERFBISECT_TOKEN", client.secrets["admin"])
    assert client.there("rm", *names, "no-such", "--yes")[0] == 1 and store.status(names[0]) == "done"
    assert client.there("rm", *names, done, "--dry-run") == client.here("rm", *names, done, "--dry-run")
    code, out, _ = client.there("rm", *names, done, "--yes", "--json")
    assert code == 0 and {item["name"] for item in json.loads(out)["items"]} == set(names)
    assert len(store.list()) == 1


def test_testbeds_that_the_server_does_not_list_are_left_alone(client: Client) -> None:
    wiring = Wiring(load_settings().model_copy(update={"web": WebSettings(testbeds=("other",))}))
    with serving(wiring) as url:
        for what in ("drain", "retire", "release", "reserve"):
            code, _, err = client.here("--server", url, "testbed", what, "fake")
            assert code == 1 and "the server lists no testbed 'fake'" in err
    headers = {"Authorization": f"Bearer {client.secrets['operate']}"}
    bodies = {"state": '{"state": "suspect"}', "reservations": '{"hours": NaN}'}
    for below, body in [*bodies.items(), ("reservations", '{"hours": 1e9}'), ("state", '{"by": "eve"}')]:
        where = f"{client.url}/api/v1/testbeds/fake/{below}"
        assert httpx.post(where, content=body, headers=headers, timeout=60).status_code == 400, body
    assert not wiring.coordinator.testbeds() and not wiring.coordinator.reservations()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set once somebody watches a bisection of the server."""
    begun, watch = threading.Event(), RemoteOperations.watch

    def watching(there: RemoteOperations, identity: str | None, observer: Watching) -> str:
        begun.set()
        return watch(there, identity, observer)

    monkeypatch.setattr(RemoteOperations, "watch", watching)
    return begun


def test_a_bisection_is_watched_while_it_runs(client: Client, bench: Bench, watched: threading.Event) -> None:
    assert client.there("watch")[0] == 1  # nobody executes it
    watched.clear()
    store = Wiring(load_settings()).store
    name = next(row.id for row in store.list() if row.status == "interrupted")
    store.set_status(name, "queued")
    worker = threading.Thread(target=_serve_soon, args=[watched], daemon=True)
    worker.start()
    code, out, err = client.there("watch", name)
    worker.join(60)
    assert code == 0 and "Result: CULPRIT PROVEN" in out
    assert "because" in err
    assert client.there("watch", name)[1] == client.here("watch", name)[1] == out


def _serve_soon(watched: threading.Event) -> None:
    """Execute what is queued, a moment after somebody has begun to watch."""
    if watched.wait(60):
        time.sleep(0.3)  # for the watcher's first request
    find_culprit.serve(Wiring(load_settings()), lambda name, event: None, threading.Event(), until_idle=True)


def test_what_is_of_one_machine_says_so(client: Client) -> None:
    for arguments in (
        ["lab", "check"],
        ["kernel", "list"],
        ["doctor"],
        ["worker"],
        ["web"],
        ["db", "check"],
        ["testbed", "health", "fake"],
        ["token", "list"],
        ["prune", "--yes"],
    ):
        code, out, err = client.there(*arguments)
        assert (code, out) == (1, ""), arguments
        assert "this command works on its own machine, not at the server" in err, arguments
    assert "workers check each of theirs once a day" in client.there("testbed", "health", "fake")[2]


def test_tokens_that_do_not_serve(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PERFBISECT_TOKEN", client.secrets["read"])
    for line in (["cancel", "x"], ["testbed", "drain", "fake"], ["testbed", "reserve", "fake"]):
        code, _, err = client.there(*line)
        assert code == 1 and "the token 'read' has the role 'read'; this needs 'operate'" in err
    assert client.there("testbed", "list")[0] == 0
    assert "--lab cannot be asked of a server" in client.there("testbed", "list", "--lab", "x.yml")[2]
    monkeypatch.setenv("PERFBISECT_TOKEN", "wrong")
    code, _, err = client.there("list")
    assert code == 1 and "the request has no valid token" in err
    monkeypatch.delenv("PERFBISECT_TOKEN")
    assert "there is no token for the server" in client.there("list")[2]
    secret = tmp_path / "token"
    secret.write_text(client.secrets["read"] + "\n")
    monkeypatch.setenv("PERFBISECT_TOKEN_FILE", str(secret))
    secret.chmod(0o644)
    assert f"cure: chmod 600 {secret}" in client.there("list")[2]
    secret.chmod(0o600)
    assert client.there("list")[0] == 0


def test_a_server_that_is_not_there(client: Client) -> None:
    code, _, err = client.here("--server", "http://127.0.0.1:1", "list")
    assert code == 3 and "the server http://127.0.0.1:1 cannot be reached" in err
    for wrong in ("ftp://x", "http://a b", "https://user:secret@host", "--config"):
        assert client.here("--server", wrong, "list")[0] == 1


def test_a_bisection_is_started_there_and_watched(
    client: Client, bench: Bench, monkeypatch: pytest.MonkeyPatch, watched: threading.Event
) -> None:
    start = ["start", "--good", "good", "--bad", "bad", "--workload", "pipe-test", "--max-hours", "50"]
    code, out, err = client.there(*start, "--repo", "linux", "--detach", "--json")
    assert code == 0, err
    queued = json.loads(out)
    store = Wiring(load_settings()).store
    assert (queued["status"], store.status(queued["id"])) == ("queued", "queued")
    assert f"bisection {queued['id']}: " in err and "decided by" in err
    stored = store.load(queued["id"])
    asked = json.loads(stored.request)["request"]
    assert (asked["repo"], asked["max_hours"], stored.owner) == ("/fake", 50.0, "operate")
    assert client.there("pause", queued["id"])[0] == 0
    assert client.here("list")[1] == client.there("list")[1]
    worker = threading.Thread(target=_serve_soon, args=[watched], daemon=True)
    worker.start()
    code, out, err = client.there("resume", queued["id"])
    worker.join(60)
    assert code == 0 and "Result: CULPRIT PROVEN" in out
    monkeypatch.setattr(RemoteOperations, "watch", _interrupted)
    code, out, err = client.there(*start)  # the server's only repository
    assert (code, out) == (130, "") and "goes on at the server" in err


def _interrupted(*_: object) -> str:
    raise KeyboardInterrupt


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--repo", "/srv/linux"], "repo: must be a name"),
        (["--repo", "../linux"], "repo: must be a name"),
        (["--repo", "windows"], "the server lists no repository 'windows'"),
        (["--workload", "./mine"], "workload: must be a name"),
        (["--workload", "other"], "the server lists no workload 'other'"),
        (["--testbed", "theirs"], "the server lists no testbed 'theirs'"),
        (["--apply", "/dev/null"], "--apply"),
        (["--priors", "x.toml"], "--priors cannot be asked of a server"),
        (["--run", "sh"], "--run"),
        (["--trust-repo"], "--trust-repo cannot be asked of a server"),
        (["--lab", "x.yml"], "--lab cannot be asked of a server"),
        (["--good", "--upload-pack=sh"], "good: must be"),
        (["--good=-x"], "good: must be the name or the id of one commit"),
        (["--good", "v6.1..v6.2"], "good: must be"),
        (["--good", "HEAD:Makefile"], "good: must be"),
        (["--skip", "a...b"], "skip.0: must be a commit, or a range"),
        (["--param", "x=$(id)"], "param.x.0: must be letters"),
        (["--param", "x=-rf"], "param.x.0: must be letters"),
        (["--monitor", "perf-stat=/tmp/x.o"], "monitors.0: must be a monitor's name"),
        (["--with-fix", "--exec=sh"], ""),
        (["--", "../../etc"], "paths.0: must be a path of the kernel's tree"),
        (["--", ":(exclude)x"], "paths.0: must be a path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_request_from_elsewhere_names_nothing_but_what_is_listed(
    client: Client, arguments: list[str], words: str
) -> None:
    before = client.here("list")
    base = {"--repo": "linux", "--good": "good", "--bad": "bad", "--workload": "pipe-test"}
    said = [w for k, v in base.items() if k not in " ".join(arguments[:1]) for w in (k, v)]
    if "--run" in arguments:
        said = said[:-2]
    code, out, err = client.there("start", "--detach", *said, *arguments)
    assert (code, out) == (1, "") and words in err, err
    assert client.here("list") == before

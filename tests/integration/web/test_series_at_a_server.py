"""`series`, `mail` and `start --notify` at a server: `series_routes`, `outbox_routes`, `series_request`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from bisector.adapters.http import server_connection
from bisector.app.mail.delivery import outbox_of
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.cli.groups import series_commands
from bisector.model.outbox import Key, Message
from bisector.schemas.settings import load_settings
from bisector.schemas.web_settings import WebSettings
from tests.support.machines.fake_inventory import inventory_of
from tests.support.series.series_lab import SeriesLab
from tests.support.servers.command_client import Client
from tests.support.servers.web import make_tokens, serving

ADD = (
    *("series", "add", "pipe", "--branch", "origin/night", "--workload", "pipe-test", "--budget", "10"),
    *("--cron", "0 12 * * *", "--testbed", "bed", "--recipe", "x86_64-small"),
)
HOOK = "https://hooks.example/services/secret-path"
SAME: Sequence[Sequence[str]] = (
    ["series", "list"],
    ["series", "list", "--json"],
    ["series", "show", "pipe"],
    ["series", "show", "pipe", "--all", "--json"],
    ["series", "show", "pip"],
    ["series", "pause", "pip"],
    ["series", "run", "pip"],
    ["series", "backfill", "pipe", "--every", "7"],
    ["mail", "list"],
    ["mail", "list", "--all", "--json"],
    ["mail", "preview", "1"],
    ["mail", "preview", "2", "--json"],
    ["mail", "preview", "77"],
    ["mail", "approve", "77"],
    ["mail", "stop", "77"],
)


@pytest.fixture
def lab(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> SeriesLab:
    lab = SeriesLab(own_folders, monkeypatch)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(lab.wiring.settings.state_dir))
    monkeypatch.setenv("PERFBISECT_OWNER", "operate")  # as the token is called
    monkeypatch.setenv("COLUMNS", "100")
    inventory = own_folders / "lab.yml"
    inventory.write_text(inventory_of("bed"))
    monkeypatch.setenv("PERFBISECT_LAB", str(inventory))
    return lab


@pytest.fixture
def client(
    lab: SeriesLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setattr(server_connection, "_SILENT_SECONDS", 60.0)  # a busy machine adds no words
    listed = WebSettings(repositories={"linux": lab.repo})
    secrets = make_tokens(lab.wiring)
    monkeypatch.setenv("PERFBISECT_TOKEN", secrets["operate"])
    wiring = Wiring(load_settings().model_copy(update={"web": listed}))
    with serving(wiring) as url:
        yield Client(url, secrets, capsys)


def test_series_and_messages_print_the_same_and_are_changed_by_who_may(
    client: Client, lab: SeriesLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(series_commands, "_execute", lambda wiring: None)
    code, text, err = client.there(*ADD, "--repo", "linux", "--dry-run")
    assert (code, err) == (0, "") and "pipe, not added" in text, err
    assert client.there("series", "list")[1] == "No series yet.\n"
    code, text, _ = client.there(*ADD, "--json")  # the server lists one repository
    added = json.loads(text)
    assert code == 0 and added["created_by"] == "operate" and added["repo"] == str(lab.repo)
    assert "there is a series 'pipe' already" in client.there(*ADD)[2]
    for kind in ("mail", "webhook"):
        target = "lab" if kind == "mail" else HOOK
        message = Message(("team@example.org",) if kind == "mail" else (HOOK,), "found", "a culprit")
        outbox_of(lab.wiring).put(Key(kind, "w", "event", target), kind, message, "waiting", by="ann")
    for line in SAME:
        assert client.there(*line) == client.here(*line), line

    told = "night 1 of the series 'pipe' is due now; 'perfbisect worker' measures it\n"
    assert client.there("series", "run", "pipe")[2] == told
    lab.work()
    assert [night.state for night in lab.nights()] == ["measured"]
    assert client.there("series", "pause", "pipe", "--reason", "new memory")[2] == (
        "the series 'pipe' is paused\n"
    )
    assert (
        client.there("series", "resume", "pipe", "--json")[1]
        == client.here("series", "resume", "pipe", "--json")[1]
    )
    assert client.there("mail", "approve", "1")[2].startswith("message 1 to team@example.org is approved;")
    assert client.there("mail", "stop", "1", "--reason", "known")[2] == "message 1 is stopped\n"
    done = [(one.who, one.what, one.target) for one in tokens.access_of(lab.wiring).changes(5)][::-1]
    assert done == [
        ("operate", "series run", "pipe"),
        ("operate", "series pause", "pipe"),
        ("operate", "series resume", "pipe"),
        ("operate", "mail approve", "1"),
        ("operate", "mail stop", "1"),
    ]
    code, _, err = client.there("series", "remove", "pipe")
    assert code == 1 and "this needs 'admin'" in err
    monkeypatch.setenv("PERFBISECT_TOKEN", client.secrets["read"])
    assert client.there("series", "show", "pipe")[0] == 0
    assert "secret-path" not in "".join(client.there("mail", "preview", "2", "--json")[1:])
    assert "https://hooks.example" in client.there("mail", "list", "--json")[1]
    for line in (["series", "run", "pipe"], ["series", "pause", "pipe"], ["mail", "approve", "2"], ADD):
        code, _, err = client.there(*line)
        assert code == 1 and "this needs 'operate'" in err, line
    monkeypatch.setenv("PERFBISECT_TOKEN", client.secrets["admin"])
    assert client.there("series", "remove", "pipe", "--json") == (
        0,
        '{\n  "name": "pipe",\n  "cancelled": 0\n}\n',
        "",
    )


WRONG: Sequence[tuple[str, object, str]] = (
    ("repo", "/etc", "repo: must be a name"),
    ("repo", "others", "the server lists no repository 'others'"),
    ("workload", "/tmp/mine", "workload: must be a name"),
    ("workload", "no-such", "the server lists no workload"),
    ("testbed", "no-such", "the server lists no testbed"),
    ("branch", "--upload-pack=sh", "branch: must be a branch"),
    ("branch", "a..b", "branch: must be a branch"),
    ("reference", "-h", "reference: must be the name or the id of one commit"),
    ("cron", "0 2 * *", "cron: must be five fields"),
    ("cron", "0 0 31 2 *", "not a time that ever comes"),
    ("time_zone", "../../etc/passwd", "time_zone: must be a time zone"),
    ("budget", 0, "budget: must be above 0"),
    ("budget", 1e9, "budget: must be at most 168"),
    ("boots", 101, "boots: must be at most 100"),
    ("shell", "sh", "shell"),
)


def test_a_series_names_what_the_server_lists(client: Client, lab: SeriesLab) -> None:
    asked = {"name": "pipe", "branch": "origin/night", "workload": "pipe-test", "cron": "0 2 * * *"}
    headers = {"Authorization": f"Bearer {client.secrets['operate']}"}
    for field, value, said in WRONG:
        body = {**asked, "budget": 1.0, "recipe": "x86_64-small", field: value}
        answer = httpx.post(f"{client.url}/api/v1/series", json=body, headers=headers, timeout=60)
        assert answer.status_code == 400 and said in answer.json()["detail"], (field, value, answer.json())
    assert client.there("series", "list")[1] == "No series yet.\n"

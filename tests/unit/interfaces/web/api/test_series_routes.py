"""What is written down of who changes a series over the API, and what is asked of the use cases."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from bisector.app.operations.local_operations import LocalOperations
from bisector.app.upkeep import tokens
from bisector.app.wiring import Wiring
from bisector.interfaces.web import authority
from bisector.interfaces.web.web_application import API
from bisector.schemas.series_request import RemoteSeries
from tests.support.servers.web import make_tokens, serving, wiring_in

Written = Callable[[], tuple[str, str, str, str]]
NEW = {"name": "pipe", "branch": "origin/master", "workload": "pipe-test", "cron": "0 2 * * *", "budget": 2}


def test_who_changes_a_series_and_how_is_written_down(
    admin: httpx.Client, served: Wiring, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    def instead(name: str, made: object) -> None:
        def operation(own: object, *what: object) -> object:
            asked.append((name, *what))
            return made

        monkeypatch.setattr(LocalOperations, name, operation)

    nights = [{"number": 4, "commit": "c" * 40}, {"number": 5, "commit": "d" * 40}]
    instead("add_foreign_series", {"name": "pipe"})
    instead("run_night", {"name": "pipe", "number": 3})
    instead("backfill", nights)
    instead("pause_series", {"name": "pipe", "state": "paused"})
    instead("resume_series", {"name": "pipe", "state": "active"})
    instead("remove_series", {"name": "pipe", "cancelled": 1})
    before = len(tokens.access_of(served).changes(100))
    assert admin.post("/series", json={**NEW, "dry_run": True}).status_code == 201
    assert len(tokens.access_of(served).changes(100)) == before, "nothing was changed"
    assert admin.post("/series", json=NEW).json() == {"name": "pipe"}
    assert written() == ("admin", "series add", "pipe", "pipe-test of origin/master")
    assert admin.post("/series/pipe/nights").json() == {"name": "pipe", "number": 3}
    assert written() == ("admin", "series run", "pipe", "night 3")
    assert admin.post("/series/pipe/backfill", json={"since": "v6.1", "every": 7}).json() == nights
    assert written() == ("admin", "series backfill", "pipe", "2 nights")
    assert admin.post("/series/pipe/pause", json={"reason": "new memory"}).json()["state"] == "paused"
    assert written() == ("admin", "series pause", "pipe", "new memory")
    assert admin.post("/series/pipe/resume").json()["state"] == "active"
    assert written() == ("admin", "series resume", "pipe", "")
    assert admin.delete("/series/pipe").json() == {"name": "pipe", "cancelled": 1}
    assert written() == ("admin", "series remove", "pipe", "")
    assert asked == [
        ("add_foreign_series", RemoteSeries.model_validate({**NEW, "dry_run": True})),
        ("add_foreign_series", RemoteSeries.model_validate(NEW)),
        ("run_night", "pipe"),
        ("backfill", "pipe", "v6.1", 7),
        ("pause_series", "pipe", "new memory"),
        ("resume_series", "pipe"),
        ("remove_series", "pipe"),
    ]


def test_what_makes_git_work_is_done_for_a_few_at_once(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authority, "AT_ONCE", 0)
    wiring = wiring_in(tmp_path_factory.mktemp("busy"))
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['operate']}"}
    with serving(wiring) as url, httpx.Client(base_url=url + API, headers=headers, timeout=60.0) as client:
        for path, body in (("/series", NEW), ("/series/pipe/backfill", {"every": 2})):
            answer = client.post(path, json=body)
            assert answer.status_code == 429 and "busy with" in answer.json()["detail"], path

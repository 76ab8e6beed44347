"""Numbers for Prometheus, from a real server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bisector.model.records import Booted, Ran
from bisector.testing.fakes import METRIC
from tests.support import fake_bisection as fake
from tests.support.servers.web import make_tokens, serving, wiring_in


def numbers(url: str, token: str) -> dict[tuple[str, ...], float]:
    answer = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_work_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fake.store_bisections(tmp_path, monkeypatch)
    wiring = wiring_in(tmp_path)
    token = make_tokens(wiring)["read"]
    wiring.coordinator.set_testbed("guest", "maintenance", "", "the test")
    wiring.coordinator.register("one", "worker-1")
    with serving(wiring) as url:
        assert httpx.get(f"{url}/metrics", timeout=60).status_code == 401
        found = numbers(url, token)
        assert found["perfbisect_bisections", "cancelled"] == 1
        assert found["perfbisect_bisections", "interrupted"] == 1, "nobody executes what is stored as running"
        assert ("perfbisect_bisections", "running") not in found
        assert found["perfbisect_testbeds", "maintenance"] == found["perfbisect_workers_alive",] == 1
        assert (found["perfbisect_builds_total",], found["perfbisect_runs_total",]) == (1, 2)
        assert found["perfbisect_machine_hours_total",] == pytest.approx(74 / 3600)
        assert numbers(url, token) == found
        store.append("fake-new", Booted("b2", 1, "fake", True, 10.0, 200.0))
        store.append("fake-new", Ran("b2", 0, {METRIC: 1.0}, 2.0, 202.0))
        store.set_status("fake-new", "queued")
        found = numbers(url, token)
        assert (found["perfbisect_boots_total",], found["perfbisect_runs_total",]) == (2, 3)
        assert found["perfbisect_queue_length",] == 1
        store.append("fake-new", Ran("b2", 1, {METRIC: 1.0}, 2.0, 204.0))
        for status in ("interrupted", "interrupted", "queued", "done"):
            store.set_status("fake-new", status)
            assert numbers(url, token)["perfbisect_runs_total",] == 4

"""The page of one bisection: what it offers by status, its samples, and its files."""

from __future__ import annotations

import csv
import io

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.interfaces.web.pages import live_bisection
from bisector.report.html.self_contained import WHEN_SERVED


@pytest.mark.parametrize(
    ("bisection", "forms", "follows"),
    [
        ("queued-1", ["pause", "priority", "cancel"], True),
        ("paused-1", ["resume", "priority", "cancel"], False),
        ("interrupted-1", ["resume", "priority", "cancel"], False),
        ("done-1", [], False),
        ("cancelled-1", [], False),
    ],
)
def test_what_is_offered_depends_on_the_status(
    client: httpx.Client, as_reader: dict[str, str], bisection: str, forms: list[str], follows: bool
) -> None:
    page = f"/bisections/{bisection}"
    text = client.get(page).text
    offered = [one for one in ("pause", "resume", "priority", "cancel") if f'action="{page}/{one}"' in text]
    assert offered == forms
    assert ("/static/live." in text, 'id="happened"' in text) == (follows, follows)
    assert "priority normal; given priority 5 by ann@lab" in text
    assert f'action="{page}/' not in client.get(page, headers=as_reader).text


def test_latest_is_the_one_that_began_last(client: httpx.Client) -> None:
    assert client.get("/bisections/latest.json").json()["id"] == "cancelled-1"
    assert "bisection cancelled-1 " in client.get("/bisections/latest").text


def test_samples_have_a_row_for_each_run(client: httpx.Client, lab: Wiring) -> None:
    trials = [
        {"boot": "b1", "testbed": "m", "commit": "c", "purpose": "verify", "discarded": True, "failure": "f"}
        | {"runs": [{"run": 0}, {"run": 1}]},
        {"boot": "b2", "testbed": "m", "commit": "c", "purpose": "search", "discarded": False, "failure": ""}
        | {"runs": []},
    ]
    rows = live_bisection.sample_rows(trials)
    assert [(row["boot"], row["run"], row["discarded"], row["failure"]) for row in rows] == [
        ("b1", 0, True, "f"),
        ("b1", 1, True, "f"),
    ]
    shown = [*csv.DictReader(io.StringIO(client.get("/bisections/done-1.csv").text))]
    assert len(shown) == 12 * 12 and {row["testbed"] for row in shown} == {"machine-a", "machine-b"}


def test_a_report_that_is_a_file_may_not_use_the_session(client: httpx.Client) -> None:
    answer = client.get("/bisections/done-1/report.html")
    assert answer.headers["content-security-policy"] == WHEN_SERVED
    text = client.get("/bisections/done-1/report.txt")
    assert text.headers["content-type"].startswith("text/plain") and "done-1" in text.text
    assert "git bisect" in client.get("/bisections/done-1/log.txt").text


def test_forms_change_the_bisection_and_lead_back(client: httpx.Client, lab: Wiring) -> None:
    page = "/bisections/paused-1"
    for form, sent, status in (
        ("resume", {"reason": "go on"}, "queued"),
        ("pause", {"reason": "new memory"}, "paused"),
        ("priority", {"priority": "2"}, "paused"),
        ("cancel", {"reason": "no need"}, "cancelled"),
    ):
        answer = client.post(f"{page}/{form}", data={**sent, "next": "/queue"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
        (found,) = lab.store.list(beginning="paused-1")
        assert found.status == status and found.action is not None and found.action.by == "operate"
        assert found.action.why == sent.get("reason", "")
    assert found.priority == 2

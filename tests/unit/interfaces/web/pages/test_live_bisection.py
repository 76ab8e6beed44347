"""The page of one bisection: what it offers by status, its samples, and its files."""

from __future__ import annotations

import csv
import io
import re
from html import unescape

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.engine.state_lock import lock
from bisector.interfaces.web.pages import drawn_bisections, live_bisection
from bisector.model.records import Ran
from bisector.model.stored_bisection import Action
from bisector.report.html.self_contained import WHEN_SERVED
from tests.support.report_material import METRIC


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


def test_a_bisection_is_interrupted_everywhere_on_its_page_once_its_process_was_killed(
    client: httpx.Client, lab: Wiring
) -> None:
    """Its stored status stays 'running', and nothing else of it changes."""

    def seen() -> tuple[list[str], list[str], list[str], bool]:
        text = client.get("/bisections/running-1").text
        return (
            re.findall(r'<p class="kind">bisection running-1\s+<span class="pill \w+">(\w+)</span>', text),
            re.findall(r"<h1>No conclusion yet: (\w+)</h1>", text),
            [one for one in ("pause", "resume") if f'action="/bisections/running-1/{one}"' in text],
            'id="happened"' in text,
        )

    killed = (["interrupted"], ["interrupted"], ["resume"], False)
    assert seen() == killed
    with lock(lab.settings.state_dir, "running-1"):
        assert seen() == (["running"], ["running"], ["pause"], True)
    assert seen() == killed


def test_the_page_says_what_the_search_does_now(client: httpx.Client, lab: Wiring) -> None:
    def now(bisection: str) -> str:
        text = client.get(f"/bisections/{bisection}").text
        return unescape(text.partition('<div id="doing">')[2].partition("</div>")[0])

    assert now("queued-1").split("\n")[1:-1] == ["<p>It waits in the queue.</p>"]
    with lock(lab.settings.state_dir, "running-1"):
        status = client.get("/api/v1/bisections/running-1").json()
        assert status["doing"] and status["reason"]
        said = now("running-1")
        assert f"<p>{status['doing']}</p>" in said and f'<p class="quiet">{status["reason"]}</p>' in said
    assert now("paused-1") == ""


def test_the_page_has_the_report_and_who_did_what(client: httpx.Client) -> None:
    text = client.get("/bisections/done-1").text
    report = client.get("/bisections/done-1/report.html").text
    assert "<h1>Culprit proven</h1>" in text
    (lead,) = re.findall(r'<p class="lead">([^<]+)</p>', report)
    assert f'<p class="lead">{lead}</p>' in text
    assert (
        "Owner ann@lab; priority normal; given priority 5 by ann@lab (sched: rework number action), " in text
    )
    sections = re.findall(r'<section id="([\w-]+)"', report)
    assert len(sections) > 5 and re.findall(r'<section id="([\w-]+)"', text) == sections
    contents = text.partition("<header")[2].partition("</header>")[0]
    assert [f'href="#{one}"' in contents for one in sections] == [True] * len(sections)
    assert '<script type="application/json" id="data">' in text and "/static/uplot." in text


def test_the_form_holds_the_priority_that_the_bisection_has(client: httpx.Client, lab: Wiring) -> None:
    def chosen() -> list[tuple[str, str]]:
        return re.findall(r'<option value="(\d)" selected>(\w+)<', client.get("/bisections/queued-1").text)

    assert chosen() == [("5", "normal")]
    lab.store.set_priority("queued-1", 2, Action("given priority 2", "ann@lab", ""))
    assert chosen() == [("2", "high")]
    lab.store.set_priority("queued-1", 5, Action("given priority 5", "ann@lab", ""))


def test_what_is_shown_of_an_earlier_moment_says_so(
    client: httpx.Client, lab: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script of the page asks again then."""
    monkeypatch.setattr(drawn_bisections, "_SHARE", 1e-9)

    def is_old() -> bool:
        return '<div id="sections" data-stale>' in client.get("/bisections/interrupted-1").text

    assert not is_old()
    lab.store.append("interrupted-1", Ran("boot-0", 40, {METRIC.name: 61.5}, 2.0, 1.8e9))
    assert is_old()
    monkeypatch.setattr(drawn_bisections, "_SHARE", float("inf"))
    assert not is_old()


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
    assert rows == [
        {"boot": "b1", "testbed": "m", "commit": "c", "purpose": "verify", "discarded": True}
        | {"failure": "f", "run": run}
        for run in (0, 1)
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

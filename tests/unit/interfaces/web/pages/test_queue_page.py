"""What people read of the queue, beside what programs do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from bisector.app.wiring import Wiring
from bisector.engine.state_lock import lock
from bisector.interfaces.web.pages.queue_page import queue_rows


def test_rows_have_words_by_the_time_of_the_database(client: httpx.Client) -> None:
    found = client.get("/queue.json").json()
    row: dict[str, Any] = {**found["bisections"][-1], "unusable": {}, "waits_for": {"box": "x1"}}
    row |= {
        "status": "queued",
        "priority": 2,
        "workload": "/srv/pipe-test",
        "expected_begin": 65.0,
        "expected_end": 3665.0,
    }
    (shown,) = queue_rows({"now": 5.0, "bisections": [row]})
    assert (shown["priority_text"], shown["end"]) == ("high", "in 61 min")
    assert shown["doing"] == "waits for box, which x1 has; begins in 60 s"
    assert shown["workload_name"] == "pipe-test" and shown["workload"] == "/srv/pipe-test"


@pytest.mark.parametrize(
    ("path", "follows"), [("/", True), ("/queue", True), ("/testbeds", True), ("/bisections", False)]
)
def test_a_list_of_the_present_follows_what_happens(client: httpx.Client, path: str, follows: bool) -> None:
    text = client.get(path).text
    assert ('<main id="content" data-revision="' in text, "/static/changes." in text) == (follows, follows)


def test_programs_get_the_queue_as_it_is(client: httpx.Client) -> None:
    found = client.get("/queue.json").json()
    assert [row["id"] for row in found["bisections"]] == ["running-1", "queued-1"]
    head, *rows = client.get("/queue.csv").text.splitlines()
    assert head.split(",") == [*found["bisections"][0]] and len(rows) == 2


def test_a_queue_that_nobody_executes_says_so(client: httpx.Client, lab: Wiring) -> None:
    said = "Nobody executes them: start"
    text = client.get("/queue").text
    assert said in text and "Now: " not in text
    with lock(lab.settings.state_dir, "running-1"):
        text = client.get("/queue").text
    assert said not in text and "Now: " in text

"""Every page, as HTML, JSON and CSV, at each state that what it shows can be in.

Of all pages that links lead to: an object is added in each of its states, then every link is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import unescape
from itertools import cycle, product
from typing import get_args

import httpx
import pytest

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.execution.health_check import health_store
from bisector.app.mail.delivery import outbox_of
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.interfaces.web import authority
from bisector.interfaces.web.web_application import PAGES
from bisector.model.alerts import FINDINGS, TRIAGES, Alert, HistoryEntry
from bisector.model.decisions import Interval
from bisector.model.leases import TestbedState
from bisector.model.machines.health import Outcome
from bisector.model.outbox import CHANNELS, LAB, Key, Kind, Message, State
from bisector.model.series import Confirmed, Night, NightVerdict, Point, Series, VerdictStatus, owner_of
from bisector.model.stored_bisection import ENDED, OPEN
from tests.support.report_material import sixty_boots
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens, serving

LEVEL = 0.150643
NEARLY = LEVEL * (1 + 2e-16)
"""What the level of a reference is, scaled to that of the tip: the same but for rounding."""
VERDICT = NightVerdict("steady", 0.01)
LIMITS = Interval(0.01, 0.02, 0.03)
HUGE = 1e100
NIGHT = "rests-night-1-4b6caec2"
MANY = 120
"""Alerts of one series: more than a page of them, and than the page of the series shows."""
ALIKE = tuple(f"/alerts/a{number:09x}" for number in range(1, MANY))
"""Pages of these alerts: the first of them shows what all do."""
GONE = ("/bisections/was-removed", f"/alerts/{'f' * 10}", "/testbeds/gone", "/series/series-that")
"""What is named by others and not there any more: its address is 'not found', and no page fails for it."""


def night_states() -> Iterator[tuple[Night, Sequence[float], Sequence[float]]]:
    """Yield each state of a night, with the levels of its boots and of its reference's."""
    due = Night("x", 1, 1.79e9, 1.0)
    yield due, (), ()
    yield replace(due, commit="a" * 40), (), ()
    yield replace(due, kind="backfill", commit="a" * 40), (), ()
    running = replace(due, commit="a" * 40, state="running", bisection="queued-1")
    yield running, (), ()
    yield replace(running, bisection="was-removed"), (), ()
    yield replace(due, state="missed", why="nobody executed it"), (), ()
    yield replace(running, state="failed", why="no kernel"), (), ()
    measured = replace(running, state="measured")
    for boots, reference in (
        ((), ()),
        ((), (LEVEL,)),
        ((LEVEL,), ()),
        ((LEVEL,), (LEVEL,)),
        ((LEVEL,), (NEARLY,)),
        ((LEVEL, NEARLY), (LEVEL,)),
        ((0.0,), (0.0,)),
        ((-1.0, 1.0), (-1.0,)),
        ((HUGE, -HUGE), (5e-324,)),
    ):
        yield measured, boots, reference
        yield replace(measured, verdict=VERDICT), boots, reference
    for status in get_args(VerdictStatus):
        yield replace(measured, verdict=NightVerdict(status)), (LEVEL,), (LEVEL,)
    suspect = NightVerdict("suspect", 0.01, 1, 1, LIMITS, LIMITS)
    for confirmed in (None, *get_args(Confirmed)):
        tested = replace(measured, verdict=suspect, confirmation="done-1", confirmed=confirmed)
        yield tested, (LEVEL, 1.1 * LEVEL), (LEVEL,)


def _add_series(wiring: Wiring) -> None:
    """Add a series without a night, and for each state of a night one with it alone and one with a second."""
    store = series_store(wiring)
    series = Series(
        *("none", "/not/here", "main", "pipe-test", "small", "machine-a", "0 2 * * *", "UTC", 10.0, 3),
        reference="c" * 40,
    )
    store.add(series)
    store.add(replace(series, name="rests", state="paused", why="holidays"))
    store.add(replace(series, name="waits", testbed=served_lab.TESTBEDS[1]))
    store.add(replace(series, name="seconds", threshold="0.1 s", testbed="gone"))
    for number, (state, boots, reference) in enumerate(night_states()):
        for nights in (1, 2):
            name = f"s{number}-{nights}"
            store.add(replace(series, name=name))
            for at in range(1, nights + 1):
                night = replace(state, series=name, number=at, place=float(at))
                points = [
                    Point(at, f"{at}-{k}", "a" * 40, "machine-a", k >= len(boots), (level,), 1.79e9)
                    for k, level in enumerate([*boots, *reference])
                ]
                if night.state == "measured":
                    store.add_night(replace(night, state="running"))
                    assert store.end_night(night, points)
                else:
                    store.add_night(night)


def _add_alerts(wiring: Wiring) -> None:
    alerts = open_alerts(wiring)
    bisections = cycle(("", "done-1", "was-removed"))
    for number, (finding, triage) in enumerate(product(FINDINGS, (None, *TRIAGES))):
        name = f"{number:010x}"
        alert = Alert(
            name,
            *("series-that-is-gone", f"w{number}", "real", "machine-a", "/not/here", "a" * 40, "b" * 40),
            "improvement" if number % 2 else "regression",
            LIMITS,
            unit="s" if number % 3 else "",
            finding=finding,
            triage=triage,
            bisection=next(bisections),
            culprits=("a" * 40,) if finding == "culprit" else (),
            duplicate_of="f" * 10 if triage == "duplicate" else "",
        )
        alerts.add(alert, HistoryEntry("perfbisect", "suspect", "a night"))
    for number in range(MANY):
        alerts.add(
            replace(alert, id=f"a{number:09x}", series="rests", workload="many", triage=None),
            HistoryEntry("perfbisect", "suspect"),
        )


def _add_messages(wiring: Wiring) -> None:
    outbox = outbox_of(wiring)
    kinds: Sequence[Kind] = get_args(Kind)
    states: Sequence[State] = get_args(State)
    for number, (state, channel, kind) in enumerate(zip([*states, *states], cycle(CHANNELS), cycle(kinds))):
        target = LAB if channel == "mail" else "https://hook.example/secret"
        message = Message((target,), "subject", "{}" if channel == "webhook" else "text")
        key = Key(f"{number}", "w", kind, target)
        outbox.put(
            key, channel, message, state, by="perfbisect", bisection="was-removed" if number % 2 else ""
        )


def _add_testbeds(wiring: Wiring) -> None:
    kernel = {"commit": "c" * 40, "recipe": "small", "workload": "w", "metric": "n", "unit": ""}
    outcomes: Sequence[Outcome] = get_args(Outcome)
    states: Sequence[TestbedState] = get_args(TestbedState)
    for name, (state, outcome) in zip(served_lab.TESTBEDS, zip(states, outcomes, strict=True), strict=False):
        wiring.coordinator.set_testbed(name, state, "why", "ann@lab")
        health_store(wiring).add_point(
            name, kernel, outcome, "said", [] if outcome == "failed" else [LEVEL, NEARLY]
        )


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    wiring = served_lab.make(tmp_path_factory.mktemp("lab"))
    empty = replace(sixty_boots(), records=[], decisions=[], conclusion=None)
    for number, status in enumerate((*OPEN, *ENDED)):
        served_lab.store(wiring, empty, status, "{}", number + 100, name=f"empty-{status}")
    served_lab.store(wiring, sixty_boots(), "done", "{}", 99, name="night-1", owner=owner_of("rests"))
    served_lab.store(wiring, empty, "done", "{}", 98, name=NIGHT, owner=owner_of("rests"))
    _add_series(wiring)
    _add_alerts(wiring)
    _add_messages(wiring)
    _add_testbeds(wiring)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['operate']}"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(authority, "BURST", 1e9)
        with serving(wiring) as url, httpx.Client(base_url=url, headers=headers, timeout=60.0) as found:
            yield found


def test_every_page_that_a_link_leads_to_is_shown(client: httpx.Client) -> None:
    asked, wrong = set[str](), list[str]()
    left = ["/", "/alerts?show=all", "/outbox", "/series", *(f"/outbox/{n}" for n in range(1, 21))]
    while left:
        path = left.pop()
        if path in asked:
            continue
        asked.add(path)
        answer = client.get(path)
        if answer.status_code != 200:
            wrong.append(f"{path}: {answer.status_code}")
            continue
        page, _, query = path.partition("?")
        is_report = page.endswith(".html")  # a file
        if answer.headers["Content-Type"].startswith("text/html") and not is_report:
            found = {unescape(one) for one in re.findall(r'href="(/[^"#]*)', answer.text)}
            left += [one for one in found if not one.startswith(("/static/", "/login", "/logout", *ALIKE))]
            data = "/overview" if page == "/" else page
            left += [f"{data}{end}?{query}" for end in (".json", ".csv")]
    kinds = {path.partition("?")[0].split("/")[1] for path in asked}
    assert len(kinds) > len(PAGES) and len(asked) > 600, sorted(asked)
    assert [one for one in wrong if not one.startswith(GONE)] == []
    assert all(one.endswith(": 404") for one in wrong)


def test_many_alerts_are_shown_part_by_part(client: httpx.Client) -> None:
    text = client.get("/series/rests").text
    assert len(re.findall(r'<th data-label="Alert" scope="row"><a href="/alerts/a', text)) == 20
    assert '<a href="/alerts?show=all&amp;series=rests">100 older ones</a>' in text
    parts, after, seen = [50, 50, 20], "", set[str]()
    for part in parts:
        text = client.get("/alerts", params={"show": "all", "series": "rests", "after": after}).text
        ids = re.findall(r'<th data-label="Alert" scope="row"><a href="/alerts/([0-9a-f]+)"', text)
        assert (len(ids), 'rel="next"' in text) == (part, part == 50)
        after = ids[-1]
        seen |= {*ids}
    assert len(seen) == len(client.get("/series/rests.json").json()["alerts"]) == MANY


def test_a_series_says_why_its_nights_wait(client: httpx.Client) -> None:
    said = "is not used: suspect: why (ann@lab)"
    assert said in client.get("/series/waits").text and said not in client.get("/series/rests").text


def test_nights_that_have_ended_do_not_fill_the_overview(client: httpx.Client) -> None:
    ended = [row["id"] for row in client.get("/overview.json").json()["ended"]]
    assert "night-1" in ended and NIGHT not in ended
    assert NIGHT in client.get("/bisections?all=1").text


def test_costs_are_told_by_series(client: httpx.Client) -> None:
    found = client.get("/costs.json?days=3650").json()
    rows = {(row["group"], row["name"]): row for row in found["groups"]}
    assert [name for group, name in rows if group == "series"] == ["rests"]
    cost = {key: value for key, value in rows["series", "rests"].items() if key not in ("group", "name")}
    assert (cost["bisections"], cost["culprits"]) == (2, 1)
    assert cost["machine_hours"] == cost["machine_hours_a_culprit"] > 0
    assert cost.items() <= rows["owner", "series rests"].items()
    by_series = client.get("/costs?days=3650").text.partition('id="by-series"')[2].partition("</section>")[0]
    assert '<a href="/series/rests">rests</a>' in by_series
    assert "ann@lab" not in by_series


def test_costs_know_whose_executor_was_killed_as_lists_do(client: httpx.Client) -> None:
    for page in ("/costs?days=3650", "/bisections"):
        row = client.get(page).text.partition('href="/bisections/running-1"')[2].partition("</tr>")[0]
        assert ">interrupted</span>" in row, page


def test_what_is_not_there_is_not_found(client: httpx.Client) -> None:
    for path in ("/series/x", "/alerts/x", "/outbox/9999", "/bisections/x", "/testbeds/x"):
        for end in ("", ".json", ".csv"):
            answer: httpx.Response = client.get(path + end)
            assert answer.status_code == 404, path + end

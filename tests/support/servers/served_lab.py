"""A lab for the pages of the web server: bisections in every state, and testbeds with health checks.

All names, subjects and reasons come from one text, which may be hostile.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from bisector.app.alerts.alert_context import open_alerts
from bisector.app.execution.health_check import health_store
from bisector.app.mail.delivery import outbox_of
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.model.alerts import Alert, HistoryEntry
from bisector.model.decisions import Interval
from bisector.model.machines.health import Outcome
from bisector.model.outbox import LAB, Key, Message, State
from bisector.model.records import Record
from bisector.model.series import Night, NightVerdict, Point, Series
from bisector.model.stored_bisection import Action, Stored
from bisector.report.report_model import Material
from bisector.schemas import serialization
from bisector.schemas.database_url import DatabaseUrl
from bisector.schemas.request import Accepted, Request
from bisector.schemas.settings import Settings
from bisector.schemas.web_settings import WebSettings
from tests.support.report_material import failures, sixty_boots

TESTBEDS = ("machine-a", "machine-b", "machine-with-a-rather-long-name-in-rack-17")
SAID = "sched: rework number {}"
"""What people, commits and machines say, where it is harmless."""
ALERT, SERIES = "3f2a81c04d", "nightly-pipe-test"
PAGES = (
    "/",
    "/bisections",
    "/bisections?text=nothing-fits",
    "/bisections/done-1",
    "/bisections/paused-1",
    "/queue",
    "/testbeds",
    "/testbeds/machine-a",
    "/testbeds/machine-b",
    "/compare",
    "/compare?a=done-1&b=paused-1",
    "/compare?a=done-1:v6.1&b=done-1:v6.2",
    "/costs?days=300",
    "/series",
    f"/series/{SERIES}",
    "/alerts",
    "/alerts?show=all&series=none",
    f"/alerts/{ALERT}",
    "/outbox",
    "/outbox/2",
)
"""The address of each page, some with what is chosen there: all are opened in a browser, and drawn by
`tests/bench/service/screenshots.py`."""
STATUSES = ("done", "running", "queued", "paused", "interrupted", "cancelled")


def make(
    folder: Path,
    said: str = SAID,
    *,
    boots: int = 60,
    web: WebSettings | None = None,
    database: DatabaseUrl | None = None,
) -> Wiring:
    """Return the wiring of a lab in a folder.

    said: with one '{}'; boots: of the bisection that has ended; database: of a server, else a file.
    """
    inventory = folder / "lab.yml"
    hosts = {name: {"perfbisect_kind": "libvirt", "perfbisect_clock": "wall"} for name in TESTBEDS}
    inventory.write_text(json.dumps({"testbeds": {"hosts": hosts}}))
    settings = Settings(
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        lock_dir=folder / "locks",
        lab=inventory,
        web=web,
        database=database,
    )
    wiring = Wiring(settings)
    material = sixty_boots(said, boots=boots)
    for number, status in enumerate(STATUSES):
        ended = status == "done"
        store(wiring, material if ended else _begun(material, said), status, said, number)
    _testbeds(wiring, said)
    _outbox(wiring, said)
    _series(wiring, said)
    _alerts(wiring, said)
    return wiring


def _begun(material: Material, said: str) -> Material:
    """Return the first third of a search; before it two boots failed."""
    events = len(material.records) // 3
    last = material.records[events][0]
    decisions = [(n, d) for n, d in material.decisions if n < last]
    records = [*failures(-10, said), *material.records[:events]]
    return replace(material, records=records, decisions=decisions, conclusion=None)


def store(
    wiring: Wiring,
    material: Material,
    status: str,
    said: str,
    number: int,
    *,
    name: str = "",
    owner: str = "ann@lab",
) -> str:
    """Store a bisection with its records and the names of its commits; return its id."""
    name = name or f"{status}-1"
    goal = serialization.goal_to_json(material.goal)
    shas, graph = material.graph.shas, material.graph
    accepted = Accepted(
        request=Request(repo="/not/here", good="v6.1", bad="v6.2", workload=said.format("w")),
        good=shas[graph.good],
        bad=shas[graph.bad],
        goal=goal,
        testbeds=TESTBEDS[:2],
        clock=material.goal.clock,
        workload=said.format("w"),
        workload_sum="fake",
    )
    events: list[tuple[int, Record]] = sorted([*material.records, *material.decisions], key=lambda e: e[0])  # type: ignore[list-item]
    stored = Stored(
        name,
        1.79e9 + 3600.0 * number,
        accepted.model_dump_json(),
        status,
        graph,
        material.conclusion,
        owner=owner,
    )
    wiring.store.create(stored, [event for _, event in events])
    wiring.store.set_priority(name, 5, Action("given priority 5", "ann@lab", said.format("action")))
    folder = wiring.bisection_folder(name)
    folder.mkdir(parents=True)
    names = {c.sha: {k: v for k, v in asdict(c).items() if k != "sha"} for c in material.commits.values()}
    (folder / "commits.json").write_text(json.dumps(names))
    (folder / "host.json").write_text(json.dumps({"host": said.format("host")}))
    return name


def _testbeds(wiring: Wiring, said: str) -> None:
    """Give one testbed a history of health checks that ends badly, and another one a reservation."""
    health, coordinator = health_store(wiring), wiring.coordinator
    kernel = {
        "commit": "c" * 40,
        "recipe": "small",
        "workload": "pipe-test",
        "metric": "instructions",
        "unit": "instructions",
    }
    for number in range(20):
        level = 1000.0 + number % 3 + (40.0 if number > 17 else 0.0)
        outcome: Outcome = "moved" if number > 17 else "sound"
        values = [level + k % 4 for k in range(8)]
        health.add_point("machine-a", kernel, outcome, said.format(f"check {number}"), values)
    health.add_point("machine-a", kernel, "failed", said.format("no boot"))
    coordinator.set_testbed("machine-a", "suspect", said.format("its level moved"), "a health check")
    coordinator.reserve("machine-b", "bob@lab", coordinator.now() + 7200.0)


def _outbox(wiring: Wiring, said: str) -> None:
    """Put one message in each state that people look at."""
    states: tuple[State, ...] = ("draft", "waiting", "unsure", "stopped")
    for number, state in enumerate(states):
        message = Message(("lab@example.org",), said.format("subject"), said.format("text"))
        key = Key(f"{number}" * 40, said.format("w"), "regression", LAB)
        outbox_of(wiring).put(
            key, "mail", message, state, by="ann@lab", note=said.format("note"), bisection="done-1"
        )


def _alerts(wiring: Wiring, said: str) -> None:
    """Add the alert of a series whose level moved."""
    alert = Alert(
        id=ALERT,
        series=SERIES,
        workload=said.format("w"),
        metric="real",
        testbed="machine-a",
        repo="/not/here",
        last_good=f"{29:040x}",
        first_bad=f"{30:040x}",
        direction="regression",
        effect=Interval(0.03, 0.05, 0.07),
        why=said.format("why"),
    )
    open_alerts(wiring).add(alert, HistoryEntry("perfbisect", "suspect", said.format("night")))


def _series(wiring: Wiring, said: str) -> None:
    """Add a series of forty nights whose level moved in the thirtieth, with its alert."""
    store, name = series_store(wiring), SERIES
    store.add(
        Series(
            name=name,
            repo="/not/here",
            branch=said.format("branch"),
            workload=said.format("w"),
            recipe="small",
            testbed="machine-a",
            cron="0 2 * * *",
            time_zone="Europe/Berlin",
            budget=10.0,
            boots=3,
            reference="c" * 40,
            created_by="ann@lab",
        )
    )
    for number in range(1, 41):
        commit, at = f"{number:040x}", 1.79e9 + 86400.0 * number
        night = Night(name, number, at, float(number), state="running", commit=commit, bisection="done-1")
        store.add_night(night)
        level = 10.0 + 0.03 * ((7 * number) % 5) + (0.5 if number >= 30 else 0.0)
        points = [
            Point(number, f"n{number}-{k}", commit, "machine-a", False, (level + 0.04 * k,), at)
            for k in range(3)
        ]
        points.append(Point(number, f"n{number}-r", "c" * 40, "machine-a", True, (9.0,), at))
        verdict = NightVerdict("suspect" if number > 30 else "steady", night_sd=0.01)
        store.end_night(replace(night, state="measured", note=said.format("note"), verdict=verdict), points)

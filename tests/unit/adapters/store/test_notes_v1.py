"""State files of version 1 stay readable: one that such a perfbisect wrote, and its reports of it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from bisector.adapters.store.migration import SCHEMA_VERSION
from bisector.adapters.store.notes_v1 import NO_NOTE, with_note
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import load_report
from bisector.app.wiring import Wiring
from bisector.model.facts import MonitorValue
from bisector.model.records import Left, Ran
from bisector.report import json_report, repetition_pattern, text, trials
from bisector.schemas.request import Accepted
from bisector.schemas.settings import Settings
from bisector.simulation.histories import linear
from bisector.testing.fakes import FakeSource

DATA = Path(__file__).parent / "data"
"""state-1.sqlite: one bisection that ended and one with every kind of record and note; reports.json: what the
perfbisect that wrote it printed of both, as text and as JSON."""
REPORTS: dict[str, Any] = json.loads((DATA / "reports.json").read_text())

BAD_END = "bad's side, 100% of the way", "the bad end"
"""What a trial of the bad end says, then and now. It is the first with those words."""

MACHINES = "guest clocksource     tsc", "clocksource on fake tsc"
"""What a testbed of two is, then without its name, and now."""

SAME_TIME = "60 s to 60 s each", "60 s each"
"""How long each build took where all took the same, then and now."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    shutil.copy(DATA / "state-1.sqlite", tmp_path / "perfbisect.sqlite")
    return tmp_path


def _versions(state: Path) -> str:
    with sqlite3.connect(state / "perfbisect.sqlite") as connection:
        return str(connection.execute("select value from about where key = 'schema'").fetchone()[0])


@pytest.mark.parametrize("identity", REPORTS)
def test_reports_of_an_old_state_are_what_they_were(
    state: Path, monkeypatch: pytest.MonkeyPatch, identity: str
) -> None:
    monkeypatch.setattr(Wiring, "source", lambda *_: FakeSource(linear(24)))
    # Then a mean was of all runs of its boots, however often each of them ran.
    monkeypatch.setattr(repetition_pattern, "find", lambda _: repetition_pattern.NO_PATTERN)
    monkeypatch.setattr(trials, "mean_of_boots", lambda boots: fmean(value for of in boots for value in of))
    settings = Settings(state_dir=state, cache_dir=state / "cache")
    material = load_report.load_material(Wiring(settings), identity, so_far=True)

    def plain(report: str) -> str:
        # In the file stands the folder of then; in reports.json both are 'STATE'.
        return report.replace("/tmp/v1/state", "STATE").replace(str(state), "STATE")

    # Where lines break depends on the length of the folder's name; options of the command have another order.
    assert sorted(plain(text.render(material)).split()) == sorted(
        REPORTS[identity]["text"].replace(*BAD_END, 1).replace(*SAME_TIME).replace(*MACHINES).split()
    )
    now = json.loads(plain(json.dumps(json_report.render(material))))
    before = REPORTS[identity]["json"]
    for new, old in zip(now["monitors"], before["monitors"], strict=True):
        defaults = {"folder": "", "seen": [], "absent": [], "seconds": 0.0, "unasked": False}
        assert new.pop("seen") == [{**defaults, **result} for result in old.pop("seen")]
    for new, old in zip(now["trials"], before["trials"], strict=True):
        assert new.pop("console_cut") is False, "what was not recorded then"
        if new["ok"] and new["failure"]:
            assert new["note"].pop("details") == "exit 1", "what a workload that failed printed is told since"
        if new["commit"] == now["bad"]:
            old["verdict"] = old["verdict"].replace(*BAD_END)
        assert new == old
    assert not any(built.pop("fetched") for built in now["builds"])
    assert {built["kernel"].pop("compiler") for built in now["builds"] if built.get("kernel")} <= {""}
    assert now.pop("recipe_chosen") is False
    assert now.pop("find") == now["request"].pop("find") == "regression"
    assert {now["request"].pop(name) for name in ("run", "kernels", "priors")} == {""}
    assert now.pop("attempt") is now.pop("mending") is None
    assert now.pop("by_testbed") == now.pop("set_aside") == now.pop("other_metrics") == []
    assert now.pop("modelled") == now.pop("other_direction") == ""
    assert now.pop("end_functions") is None
    before["costs"]["builds"] = before["costs"]["builds"].replace(*SAME_TIME)
    assert not any(finding.pop(name) for name in ("functions", "opposite") for finding in now["findings"])
    assert {finding.pop("probability") for finding in now["findings"]} <= {None}
    assert now == before


def test_an_old_state_goes_on_and_older_programs_are_refused_then(state: Path) -> None:
    assert _versions(state) == "1"
    store = SqlStore(open_state_file(state / "perfbisect.sqlite"))
    assert _versions(state) == str(SCHEMA_VERSION)
    (unfinished,) = [s.id for s in store.list() if s.status == "interrupted"]
    before = store.records(unfinished)
    store.append(unfinished, Ran("boot-005", 0, {"m": 1.0}, 2.0, 3.0, raw="/raw", guest_seconds=1.5))
    after = SqlStore(open_state_file(state / "perfbisect.sqlite")).records(unfinished)
    assert list(after[:-1]) == list(before)
    assert after[-1][1] == Ran("boot-005", 0, {"m": 1.0}, 2.0, 3.0, raw="/raw", guest_seconds=1.5)


def test_what_stood_beside_a_record_is_part_of_it(state: Path) -> None:
    store = SqlStore(open_state_file(state / "perfbisect.sqlite"))
    (unfinished,) = [s.id for s in store.list() if s.status == "interrupted"]
    records = [record for _, record in store.records(unfinished)]
    built, booted, warmup = records[:3]
    assert built.kernel.options == {"CONFIG_SMP": "y", "CONFIG_HZ": "250"}  # type: ignore[union-attr]
    assert (booted.overhead, booted.image, booted.facts["clocksource"]) == (1.25, "img1", "tsc")  # type: ignore[union-attr]
    assert (warmup.raw, warmup.guest_seconds) == ("/s/boot-001/run-0", 1.99)  # type: ignore[union-attr]
    (left,) = [r for r in records if isinstance(r, Left) and r.monitors]
    assert left.monitors[0].seen[0] == MonitorValue("instructions", 123456.0, "", 0.01)
    assert left.monitors[1].absent == ("no tracer",)


def test_a_note_of_nothing_changes_nothing() -> None:
    assert with_note({"type": "Ran", "index": 1}, NO_NOTE) == {"type": "Ran", "index": 1}


def test_a_number_that_nobody_knew_is_left_out() -> None:
    assert with_note({"type": "Booted"}, json.dumps({"overhead": "", "image": "x"})) == {
        "type": "Booted",
        "image": "x",
    }


def test_a_request_has_the_identity_that_it_had(state: Path) -> None:
    store = SqlStore(open_state_file(state / "perfbisect.sqlite"))
    for stored in [store.load(summary.id) for summary in store.list()]:
        assert stored.id == f"fake-{Accepted.model_validate_json(stored.request).identity()}"

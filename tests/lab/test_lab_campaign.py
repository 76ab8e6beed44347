"""Faults that strike a search on emulated machines: how they are drawn, and a short campaign."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from tests.campaign.invariants import state_of
from tests.lab.campaign import run
from tests.lab.campaign.case import Result, _Watch, ended_well
from tests.lab.campaign.faults import ENDS, MAY_GO_ON, MOMENTS, Fault, draw
from tests.support import fake_bisection


def test_a_seed_draws_each_kind_once_before_any_comes_again() -> None:
    size = len(MOMENTS)
    cases = [draw(1, number, size) for number in range(2)]
    assert cases == [draw(1, number, size) for number in range(2)]
    assert cases != [draw(2, number, size) for number in range(2)]
    kinds = [fault.kind for faults in cases for fault in faults]
    assert sorted(kinds) == sorted([*MOMENTS, *MOMENTS])
    assert {fault.moment for faults in cases for fault in faults} <= {
        m for of in MOMENTS.values() for m in of
    }


def test_what_strikes_at_the_end_of_a_search_is_the_last_of_its_case() -> None:
    cases = [draw(seed, number, 5) for seed in range(50) for number in range(4)]
    at_the_end = [[fault.moment == "concluded" for fault in faults] for faults in cases]
    assert not any(any(faults[:-1]) for faults in at_the_end)
    assert sum(faults[-1] for faults in at_the_end) > 50


def test_the_end_of_a_search_is_seen_once_it_is_written(tmp_path: Path) -> None:
    store = SqlStore(open_state_file(state_of(tmp_path) / "perfbisect.sqlite"))
    stored = fake_bisection.begin(store, fake_bisection.a_lab())
    fault = Fault("killed in giving back", "concluded", 1, 10.0)
    struck = []
    striker: Any = SimpleNamespace(strike=lambda *given: struck.append(given), is_over=lambda: True)
    machines: Any = [SimpleNamespace(name="box1"), SimpleNamespace(name="box2")]
    watch = _Watch([fault], machines, tmp_path, striker, Result(0, []), [])
    watch.look(77)
    assert struck == []
    store.set_status(stored.id, "done", expected=("new",))
    watch.look(77)
    watch.look(77)
    assert [given[:3] for given in struck] == [(fault, machines[1], 77)]


def test_each_kind_that_ends_perfbisect_is_held_to_its_exit_code() -> None:
    assert set(ENDS) <= set(MOMENTS)
    for kind, code in ENDS.items():
        assert ended_well(kind, code, []) == []
        assert ended_well(kind, 1, []) == [f"exit code 1 after '{kind}', not {code}"]
        assert bool(ended_well(kind, 0, [])) == (kind not in MAY_GO_ON)


@pytest.mark.parametrize("struck", [1, 2])
def test_a_case_whose_faults_never_strike_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, struck: int
) -> None:
    result = Result(0, [], struck=["12 s: hung"] * struck)

    def search_in(number: int, folder: Path, *_: object) -> SimpleNamespace:
        folder.mkdir()
        return SimpleNamespace(run=lambda _: result)

    monkeypatch.setattr(run, "HurtSearch", search_in)
    lab: Any = SimpleNamespace(machines=[])
    search: Any = None
    run.run_case(0, 1, 2, tmp_path, lab, search)
    assert result.violations == (["1 of 2 faults never struck: they show nothing"] if struck == 1 else [])


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_search_survives_two_faults(tmp_path: Path) -> None:
    assert run.main(["--faults", "2", "--seed", "3", "--work", str(tmp_path)]) == 0

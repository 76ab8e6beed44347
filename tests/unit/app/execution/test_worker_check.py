"""`worker --check`: each thing that a worker needs is named with what is wrong, all of them at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.machine.checks import lab_check
from bisector.adapters.store.open_database import connect
from bisector.adapters.store.sql_coordinator import SqlCoordinator
from bisector.app.execution import worker_check
from bisector.app.wiring import Wiring
from bisector.errors import ExitCode, InfrastructureError
from bisector.interfaces.cli import run
from bisector.schemas.database_url import DatabaseUrl
from bisector.schemas.settings import Settings

INVENTORY = """all:
  children:
    testbeds:
      hosts:
        mine: {ansible_connection: local, perfbisect_kind: local, perfbisect_worker: w1}
        another: {ansible_connection: local, perfbisect_kind: local, perfbisect_worker: w2}
    builders:
      hosts:
        here: {ansible_connection: local}
"""


@pytest.fixture
def wiring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    (tmp_path / "lab.yml").write_text(INVENTORY)
    monkeypatch.setattr(lab_check, "_this_machine", lambda needed, cache: "")
    state, cache = tmp_path / "state", tmp_path / "cache"
    return Wiring(Settings(state_dir=state, cache_dir=cache, lab=tmp_path / "lab.yml"))


def wrong(wiring: Wiring, name: str = "w1") -> dict[str, str]:
    return {check.name: check.wrong for check in worker_check.check_worker(wiring, name) if not check.ok}


def on(wiring: Wiring, database: DatabaseUrl, **more: object) -> Wiring:
    return Wiring(wiring.settings.model_copy(update={"database": database, **more}))


def test_one_worker_on_a_state_file_has_all_testbeds_and_makes_nothing(
    wiring: Wiring, tmp_path: Path
) -> None:
    found = worker_check.check_worker(wiring, "w1")
    assert [check.name for check in found] == [
        "database",
        "testbeds",
        "testbed mine",
        "testbed another",
        "builder here",
        "disk space",
    ]
    assert all(check.ok for check in found)
    assert not (tmp_path / "state").exists()


def test_what_is_wrong_is_said_at_once(
    wiring: Wiring, database_url: DatabaseUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(needed: str, cache: Path) -> str:
        raise InfrastructureError("gcc: not installed", cure="apt-get install gcc")

    monkeypatch.setattr(lab_check, "_this_machine", lacking)
    lab = on(wiring, database_url, artefacts=str(tmp_path / "store"))
    lab.coordinator.register("w3-1", "w3")
    monkeypatch.setattr(lab.coordinator, "now", lambda: 1e9)
    found = wrong(lab, "w3")
    assert list(found) == ["clock", "name", "testbeds", "builder here", "artefact store"]
    assert "ahead of the database's; 1 s may be" in found["clock"]
    assert found["name"].startswith("a worker 'w3' runs already")
    assert found["testbeds"] == f"{tmp_path}/lab.yml gives 'w3' none of its 2 testbeds"
    assert found["builder here"] == "gcc: not installed"
    assert found["artefact store"] == f"the artefact store {tmp_path}/store is not there"


def test_a_worker_has_its_testbeds_and_a_dead_ones_name_is_free(
    wiring: Wiring, database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = on(wiring, database_url)
    lab.coordinator.register("w1-1", "w1")
    lab.coordinator.fence_silent(0.0)
    found = worker_check.check_worker(lab, "w1")
    assert [c.found for c in found if c.name == "testbeds"] == ["1 testbed: mine"]
    assert "testbed another" not in [c.name for c in found]
    assert [(c.name, c.optional) for c in found if not c.ok] == [("artefact store", True)], (
        "each host builds its own"
    )


@pytest.mark.parametrize("server", [False, True])
def test_a_testbed_that_another_host_has_is_wrong_in_the_inventory(
    wiring: Wiring, database_url: DatabaseUrl, tmp_path: Path, server: bool
) -> None:
    (tmp_path / "lab.yml").write_text(INVENTORY.replace("perfbisect_worker: w1", "perfbisect_worker: ''"))
    lab = on(wiring, database_url) if server else wiring
    assert "owner" not in wrong(lab, "w2"), "the first host has it"
    on(wiring, database_url).coordinator.bind_testbed("mine", "rack1", move=False)
    found = [check for check in worker_check.check_worker(lab, "w2") if check.name == "owner"]
    assert [(check.ok, check.optional, check.exit_code) for check in found] == [(False, False, 1)] * server
    if server:
        assert found[0].wrong.startswith(f"{tmp_path}/lab.yml: host 'mine' is another machine on each host")
        assert "perfbisect_worker of 'mine'" in found[0].cure


@pytest.mark.parametrize("skew", [-0.9, 0.9, -1.5, 1.5])
def test_the_clock_may_differ_by_a_second(
    wiring: Wiring, database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    lab = on(wiring, database_url)
    monkeypatch.setattr(lab.clock, "now", lambda: 1e9)
    monkeypatch.setattr(lab.coordinator, "now", lambda: 1e9 - skew)
    check = worker_check._clock(lab)
    assert check.ok == (abs(skew) < 1)
    assert check.ok or (f"1.5 s {'ahead of' if skew > 0 else 'behind'}" in check.wrong and check.optional)


def test_a_database_that_takes_long_to_answer_says_less_about_the_clock(
    wiring: Wiring, database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = on(wiring, database_url)
    times = iter([1e9, 1e9 + 1.0] * 2)
    monkeypatch.setattr(lab.clock, "now", lambda: next(times))
    answers = iter([1e9 - 0.9, 1e9 - 1.1])  # a second was asked for: half of it more may be
    monkeypatch.setattr(lab.coordinator, "now", lambda: next(answers))
    assert [worker_check._clock(lab).ok for _ in range(2)] == [True, False]


def test_a_database_that_is_away_or_of_another_version_is_one_line_of_several(
    wiring: Wiring, database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = on(wiring, database_url)
    SqlCoordinator(connect(database_url))  # it answers
    from bisector.adapters.store import migration

    monkeypatch.setattr(migration, "SCHEMA_VERSION", migration.SCHEMA_VERSION + 1)
    found = wrong(lab)
    assert "has tables of an earlier version" in found["database"]
    assert "clock" not in found and "testbeds" not in found


def test_the_command_prints_a_table_or_json_and_has_its_exit_codes(
    wiring: Wiring, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("state_dir", "cache_dir", "lab"):
        monkeypatch.setenv(f"PERFBISECT_{key.upper()}", str(getattr(wiring.settings, key)))
    assert run(["worker", "w1", "--check"]) == 0
    assert "ok      testbed mine" in capsys.readouterr().out
    monkeypatch.setenv("PERFBISECT_ARTEFACTS", str(tmp_path / "store"))
    assert run(["worker", "w1", "--check", "--json"]) == ExitCode.INFRASTRUCTURE
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows if not row["ok"]] == ["artefact store"]
    (tmp_path / "lab.yml").write_text("all: [")
    assert run(["worker", "w1", "--check"]) == ExitCode.WRONG_REQUEST

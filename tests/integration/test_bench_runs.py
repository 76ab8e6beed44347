"""Benchmarks are run by hand: that they start, go on and end with a table is checked on small ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.search import kept, measured, page, run

ROOT = Path(__file__).parents[2]


def test_the_search_benchmark_runs_a_cell_once_and_goes_on(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"

    def measure(trials: int) -> str:
        words = [
            *(sys.executable, "-m", "tests.bench.search.run", "--only", "n 16", "--trials", str(trials)),
            *("--jobs", "1", "--rows", str(rows), "--out", str(tmp_path)),
        ]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert "2 trials of which 0 are known" in measure(1)
    with rows.open("a") as file:
        file.write('{"bench":"grid","ce')  # killed while it wrote
    assert "4 trials of which 2 are known" in measure(2)
    found = measured.RowFile(rows).read()
    assert Counter(row["bench"] for row in found) == {"grid": 2, "rivals": 2}
    assert all(row["at"] and row["code"] for row in found)
    text = (tmp_path / "results.md").read_text()
    assert "| n 16 |" in text and "| git-bayesect |" in text


@pytest.fixture
def grid() -> None:
    run.load(None)


def test_trials_go_round_robin_and_a_light_cell_has_fewer(grid: None) -> None:
    wanted = run.chosen(["centre d=1", "d 0.5"])  # weights 1 and .5
    jobs = run.plan(wanted, 20, 1, [True])
    assert Counter(job.cell for job in jobs) == {wanted[0]: 20, wanted[1]: 10}
    half = Counter(job.cell for job in jobs[:15])
    assert half == {wanted[0]: 10, wanted[1]: 5}
    assert len({job.seed for job in jobs if job.cell == wanted[0]}) == 20


def test_a_cell_is_chosen_by_its_name_or_by_a_part_of_names(grid: None) -> None:
    names = [run._grid[i].name for i in run.chosen(["d 2", "costs 0,0,1 d=1", "modes of"])]
    assert names[:2] == ["d 2", "costs 0,0,1 d=1"] and len(names) == 12
    assert len(run.chosen([])) == len(run._grid)


def test_rows_of_other_code_are_measured_again(grid: None) -> None:
    job = run.plan(run.chosen(["d 2"]), 1, 1, [True])[0]
    codes = {job.key[:2]: run.code_of(job)}
    row = {"bench": "grid", "cell": "d 2", "seed": job.seed, "code": run.code_of(job)}
    assert run.known_rows([job], codes, [row]) == {job: row}
    assert run.known_rows([job], codes, [row | {"code": "older"}]) == {}
    assert run.known_rows([job], codes, [row | {"seed": 1}]) == {}


def test_the_fingerprint_is_of_the_source_and_the_setting(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.py").write_text("1")
    before = measured.fingerprint(("a",), "x", tmp_path)
    assert before != measured.fingerprint(("a",), "y", tmp_path)
    (tmp_path / "a/one.py").write_text("2")
    measured.source_of.cache_clear()
    assert before != measured.fingerprint(("a",), "x", tmp_path)


def test_no_trial_begins_behind_the_limit_of_time(grid: None) -> None:
    jobs = run.plan(run.chosen(["d 2"]), 1, 1, [True])
    assert list(run.measure(jobs, 1, None, until=0.0)) == []


def test_the_quick_form_alone_has_a_limit_of_time() -> None:
    limits = [run.parse(words).minutes for words in ([], ["--full"], ["--trials", "5"], ["--minutes", "3"])]
    assert limits == [run.MINUTES, None, None, 3.0]


def test_the_page_is_what_the_kept_results_give() -> None:
    found = kept.load()
    assert (kept.FOLDER / "RESULTS.md").read_text() == page.render(found)
    assert kept.DOCS.read_text() == kept.in_docs(kept.DOCS.read_text(), found)
    assert found, "something has been measured"
    assert all(line["at"] and not line["at"].endswith("-dirty") for line in found.values())


def test_a_later_measurement_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    line = {
        "bench": "equal ends",
        "cell": "x",
        "at": "1234abcd",
        "trials": 9,
        "false": 1,
        "few": 0,
        "alpha": 0.05,
    }
    kept.keep([line, line | {"cell": "y"}], tmp_path)
    kept.keep([line | {"false": 2}], tmp_path)
    found = [json.loads(x)["false"] for x in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert found == [2, 1]
    assert "| ends, x | 1234abcd | 2 of 9 (" in (tmp_path / "RESULTS.md").read_text()


def test_another_benchmark_brings_its_own_columns(tmp_path: Path) -> None:
    line = {
        "bench": "large",
        "cell": "x",
        "at": "1234abcd",
        "about": "What it is.",
        "shown": {"ms": 3, "MiB": "9"},
    }
    kept.keep([line], tmp_path)
    assert "## Large\n\nWhat it is.\n\n| cell | at | ms | MiB |" in (tmp_path / "RESULTS.md").read_text()

"""Every command of a bisection's life, on fakes: what it prints, what it returns, what it leaves behind."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest

from bisector.adapters.store.sql_store import SqlStore
from bisector.app import find_culprit
from bisector.engine import executor
from bisector.errors import InfrastructureError, Interrupted, RecordsUnusable
from bisector.interfaces.cli import run
from bisector.interfaces.cli.terminal import PrintableStream
from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Budget
from bisector.model.stored_bisection import Stored
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fakes import FakeSource, Faults
from tests.support import fake_bisection as fake
from tests.support.command_line import EXACT, START, Bench, said


def test_what_was_found_here_is_reported_elsewhere(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of `export_import`, one after the other."""
    assert run(START) == 0
    capsys.readouterr()
    drawn = said(capsys, "show")
    assert drawn.startswith("Samples by commit")
    result = said(capsys, "report").partition("What it cost")[0]
    archive = tmp_path / "one.tar.gz"
    sent = json.loads(said(capsys, "export", "--output", str(archive), "--json"))
    assert sent["bytes"] == archive.stat().st_size
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "elsewhere"))
    assert "No bisection yet" in said(capsys, "list")
    assert json.loads(said(capsys, "import", str(archive), "--json")) == {"id": sent["id"], "status": "done"}
    assert said(capsys, "report").partition("What it cost")[0] == result
    assert said(capsys, "show") == drawn
    said(capsys, "import", str(archive), code=1)


def test_a_culprit_is_found_shown_and_kept(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    sha = bench.lab.graph.shas[fake.CULPRIT]
    assert run(START) == 0
    out, err = capsys.readouterr()
    assert "Result: CULPRIT PROVEN" in out
    assert sha in out
    assert "slower" in out
    assert "because verify" in err  # what is done and why
    assert "to go" in err
    assert "\x1b" not in out + err
    (folder,) = (bench.state / "bisections").iterdir()
    assert f"report: {folder / 'report.txt'}" in out
    assert (folder / "report.txt").read_text() == said(capsys, "report")
    machine = json.loads(said(capsys, "report", "--json"))
    assert machine == json.loads((folder / "report.json").read_text())
    assert machine["findings"][0]["commits"][0]["sha"] == sha
    assert machine["findings"][0]["certified"]
    assert machine["exit_code"] == 0
    assert {t["purpose"] for t in machine["trials"]} == {"verify", "search", "certify"}
    assert all(t["reason"] and t["verdict"] for t in machine["trials"])
    assert machine["host"]["git"]

    (listed,) = json.loads(said(capsys, "list", "--json"))
    assert listed["status"] == "done"
    assert sha[:12] in said(capsys, "list")
    status = json.loads(said(capsys, "status", listed["id"][:8], "--json"))
    assert status["exit_code"] == 0
    assert "culprit proven" in said(capsys, "status")
    assert "why: " in said(capsys, "show")
    shown = json.loads(said(capsys, "show", "--commit", sha, "--json"))
    assert shown["commit"] == sha
    assert shown["trials"]
    assert "Fake Author" not in said(capsys, "show", "--commit", "bad")
    log = said(capsys, "log")
    assert f"# first bad commit: [{sha}]" in log
    assert "ended" in _error(capsys, "mark", listed["id"], "bad", "good")
    assert "ended" in _error(capsys, "cancel")
    assert "there is nothing to resume: every bisection has ended" in _error(capsys, "resume")
    # the same request after a finished one begins a new one
    said(capsys, *START)
    assert len(json.loads(said(capsys, "list", "--json"))) == 2


def _error(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    assert run(arguments) == code
    return capsys.readouterr().err


def test_json_is_all_that_stdout_holds(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    machine = json.loads(said(capsys, *START, "--json"))
    assert machine["ending"] == "culprit"
    assert machine["builds"][0]["ok"]
    assert machine["builds"][0]["kernel"]["release"]


@pytest.mark.parametrize("command", [[*START, "--dry-run"], ["plan", *START[1:]]])
def test_a_plan_changes_nothing(command: list[str], bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, *command)
    assert "23 candidates" in out or "24 candidates" in out
    assert "first step" in out
    assert "guessed" in out
    assert not bench.state.exists()
    planned = json.loads(said(capsys, *command, "--json"))
    assert planned["expected"]["builds"]["mean"] > 2
    assert planned["expected"]["wall"]["mean"] > 60


def test_a_damaged_bisection_stops_no_other(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only the estimate asks what its builds and boots took: no `start` of anything worked any more."""
    assert "guessed" in said(capsys, "plan", *START[1:])
    said(capsys, *START)
    assert "measured here before" in said(capsys, "plan", *START[1:])
    with contextlib.closing(sqlite3.connect(bench.state / "perfbisect.sqlite")) as file, file:
        file.execute("UPDATE events SET body = '[]' WHERE kind = 'record'")
    assert "stored record cannot be read" in _error(capsys, "report", code=3)
    assert "guessed" in said(capsys, "plan", *START[1:])
    assert "CULPRIT PROVEN" in said(capsys, *START)


def test_a_plan_has_the_notes_of_the_start_that_it_is_for(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who planned in a tree with changes of their own heard of it when the search had begun."""
    assert "\nnote " not in said(capsys, "plan", *START[1:])
    monkeypatch.setattr(FakeSource, "notes", lambda _: ("/fake has 1 uncommitted change; it is not tested",))
    assert "\nnote          /fake has 1 uncommitted change; it is" in said(capsys, "plan", *START[1:])


def test_no_regression_is_exit_code_2(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.lab = SyntheticLab(linear(8), EXACT, {}, 1)
    out = said(capsys, *START, code=2)
    assert "NOT REPRODUCED" in out


def test_a_culprit_behind_broken_commits_is_a_set_and_exit_code_4(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = linear(12)
    broken = CommitGraph(
        graph.shas, graph.parents, graph.candidate, graph.good, graph.bad, untestable={6: "not Linux", 7: "x"}
    )
    bench.lab = SyntheticLab(broken, EXACT, {7: 10.0}, 1)
    out = said(capsys, *START, code=4)
    assert "CANNOT BE TOLD APART" in out
    assert {graph.shas[i] in out for i in (6, 7, 8)} == {True}


def test_a_spent_budget_is_exit_code_5(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.budget = Budget(runs=5)
    assert "INCONCLUSIVE" in said(capsys, *START, code=5)


def test_infrastructure_is_exit_code_3_and_resume_goes_on(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bisector.engine import trial_runner

    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    trouble = InfrastructureError("no space left on device", details="/cache", cure="free some")
    bench.faults = Faults(build=dict.fromkeys((2, 3, 4), trouble))
    assert run(START) == 3
    out, err = capsys.readouterr()
    assert "error: no space left on device" in err
    assert "Traceback" not in err
    (listed,) = json.loads(said(capsys, "list", "--json"))
    assert f"cure: free some; then: perfbisect resume {listed['id']}" in err
    assert listed["status"] == "failed"
    assert "No conclusion yet" in said(capsys, "report")
    said(capsys, "mark", listed["id"], "bad", "bad", "--note", "seen by hand")
    boots = json.loads(said(capsys, "show", "--json"))
    said(capsys, "discard", listed["id"], "--boot", boots[0]["boot"], "--note", "a backup ran")
    bench.faults = None
    assert run(["resume", "--lab", "other.yml"]) == 1
    assert "other.yml" in capsys.readouterr().err
    out = said(capsys, "resume")
    assert "CULPRIT PROVEN" in out
    report = said(capsys, "report")
    assert "discarded the data of boot" in report
    assert "(a backup ran)" in report
    assert "is bad (seen by hand)" in report


def test_cancel_is_final(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bisector.engine import trial_runner

    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)
    bench.faults = Faults(build={n: InfrastructureError("gone") for n in (1, 2, 3)})
    assert run(START) == 3
    capsys.readouterr()
    said(capsys, "cancel")
    (listed,) = json.loads(said(capsys, "list", "--json"))
    assert listed["status"] == "cancelled"
    assert "was cancelled" in _error(capsys, "resume", listed["id"])


def test_a_noisy_machine_is_found_on_as_well(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.lab = fake.a_lab(model=LabModel(run_noise=2.0, boot_noise=0.5, build_seconds=60, boot_seconds=10))
    assert bench.lab.graph.shas[fake.CULPRIT] in said(capsys, *START)


@pytest.mark.parametrize("has_records", [False, True])
def test_who_interrupts_a_search_is_told_once_that_the_database_is_away(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_records: bool
) -> None:
    def gone(*_: object, **__: object) -> NoReturn:
        raise RecordsUnusable("the database does not answer")

    def interrupted(
        stored: Stored, services: object, on_event: object, stop: threading.Event, _: object
    ) -> None:
        stop.set()
        if has_records:
            raise Interrupted("interrupted")
        for name in ("load", "status", "list", "records"):
            monkeypatch.setattr(SqlStore, name, gone)
        gone()

    monkeypatch.setattr(executor, "execute", interrupted)
    assert run(START) == 130
    err = capsys.readouterr().err
    if has_records:
        assert [*bench.state.glob("bisections/*/report.txt")], "it says how far the search got"
    else:
        assert err.count("the database does not answer") == 1 and "is interrupted; nothing is lost" in err
        assert "told of the end" not in err, "it has not ended"


@pytest.mark.parametrize("where", ["bisection_services", "require_own"])
def test_ctrl_c_just_before_a_search_says_how_it_goes_on(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Before the engine listens for it. It said 'interrupted' alone, while the search could be resumed."""

    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(find_culprit, where, interrupted)
        assert run(START) == 130
    err = capsys.readouterr().err
    assert "is interrupted; nothing is lost" in err and "cure: perfbisect resume fake-" in err
    assert bench.lab.graph.shas[fake.CULPRIT] in said(capsys, "resume")


@pytest.mark.parametrize("lines", [0, 6])
def test_a_search_whose_progress_nobody_reads_any_more_is_interrupted(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    """As by `2>&1 | head`: it was 'failed' by an internal error, with the code of a wrong request."""

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            if self.getvalue().count("\n") >= lines:
                time.sleep(0.05)  # else the search is over before it is looked at whether it has to stop
                raise BrokenPipeError
            return super().write(text)

    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", PrintableStream(Pipe()))
        assert run(START) == 130
    (listed,) = json.loads(said(capsys, "list", "--json"))
    assert listed["status"] == "interrupted"
    assert bench.lab.graph.shas[fake.CULPRIT] in said(capsys, "resume")

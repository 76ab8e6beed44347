"""`perfbisect try`: what is accepted of it, what is refused, and how it ends, on fake kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.git.trees import KernelTrees
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app.accept import workload_of
from bisector.app.attempts.accept_attempt import accept_attempt
from bisector.app.wiring import Wiring
from bisector.errors import RequestError, SourceFailed
from bisector.interfaces.cli import run
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.stored_bisection import Stored
from bisector.schemas.request import Request, read_accepted
from bisector.schemas.settings import load_settings
from bisector.schemas.workload.sample_keys import sample_keys
from tests.golden.test_json_output import promised
from tests.support import fake_bisection as fake
from tests.support.command_line import Bench, said


@pytest.fixture
def bench(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bisection that has found its culprit."""
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(own_folders / "state"))
    bench = Bench(own_folders, monkeypatch)
    store = SqlStore(open_state_file(bench.state / "perfbisect.sqlite"))
    asked = Request(repo="/fake", good="good", bad="bad", workload="pipe-test")
    accepted = fake.accepted(bench.lab).model_copy(update={"request": asked})
    graph = bench.lab.graph
    store.create(Stored("found", 1.0, accepted.model_dump_json(), "running", graph))
    effect = Interval(0.09, 0.1, 0.11)
    finding = Finding((fake.CULPRIT,), effect, 0.97, (fake.CULPRIT - 1,), certified=True)
    store.set_status("found", "done", Conclusion(Ending.CULPRIT, "found", (finding,), effect))
    return bench


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    path = tmp_path / "fix.patch"
    path.write_text("--- a/x\n")
    return path


def accept(*patches: Path, rev: str | None = None, identity: str | None = None) -> tuple[object, ...]:
    wiring = Wiring(load_settings(None, {}))
    accepted, graph = accept_attempt(wiring, identity, patches, rev)
    assert accepted.attempt is not None
    return accepted.attempt, graph.shas


def test_a_commit_is_measured_beside_culprit_and_parent(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    commit, code, verdict = fake.CULPRIT + 2, 7, "not mended"
    sha = bench.lab.graph.shas[commit]
    printed = said(capsys, "try", "--rev", sha, code=code)
    assert f"Result: {verdict.upper()}" in printed
    assert f"tried    {sha[:12]}" in printed
    told = json.loads(said(capsys, "report", "--json"))
    assert (told["ending"], told["exit_code"]) == (verdict, code)
    assert told["attempt"]["tried"] == sha
    assert told["mending"]["loss"]["estimate"] == pytest.approx(0.1, abs=0.02)
    assert {trial["commit"] for trial in told["trials"]} == {
        bench.lab.graph.shas[i] for i in (fake.CULPRIT - 1, fake.CULPRIT, commit)
    }
    whole = said(capsys, "report")
    assert f"perfbisect try {told['attempt']['of']} --rev {sha}" in whole
    listed = said(capsys, "list")
    parent = bench.lab.graph.shas[fake.CULPRIT - 1]
    assert verdict in listed and parent[:12] in listed and parent not in listed, "full ids fill a terminal"
    assert "range      three kernels side by side, 3 commits tested" in said(capsys, "status")
    kept = read_accepted(
        SqlStore(open_state_file(bench.state / "perfbisect.sqlite")).load(told["id"]).request
    )
    assert kept.sample_keys == sample_keys(workload_of(kept.request).manifest)
    assert "is itself a try" in refused(capsys, "try", told["id"], "--rev", sha)
    assert "has ended" in refused(capsys, "mark", told["id"], sha, "bad")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(arguments) == 1
    return capsys.readouterr().err


def test_a_dry_run_says_what_would_be_measured(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    shas = bench.lab.graph.shas
    told = json.loads(said(capsys, "try", "--rev", shas[20], "--dry-run", "--json"))
    assert set(told) == promised("try")
    assert (told["parent"], told["culprit"], told["tried"]) == (
        shas[fake.CULPRIT - 1],
        shas[fake.CULPRIT],
        shas[20],
    )
    printed = said(capsys, "try", "--rev", shas[20], "--dry-run")
    assert f"tried      {shas[20][:12]}" in printed
    assert len(json.loads(said(capsys, "list", "--json"))) == 1, "nothing was begun"


def test_patches_go_on_the_culprit_or_on_the_commit_that_is_named(
    bench: Bench, patch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[tuple[str, tuple[Path, ...]]] = []

    def tree(_: object, sha: str, patches: tuple[Path, ...], fixes: object = ()) -> str:
        put.append((sha, patches))
        return "tree"

    monkeypatch.setattr(KernelTrees, "tree", tree)
    shas = bench.lab.graph.shas
    on_culprit, three = accept(patch)
    elsewhere, _ = accept(patch, rev=shas[20])
    assert put == [(shas[fake.CULPRIT], (patch,)), (shas[20], (patch,))]
    assert on_culprit.tried != elsewhere.tried  # type: ignore[attr-defined]
    assert three == (shas[fake.CULPRIT - 1], shas[fake.CULPRIT], on_culprit.tried)  # type: ignore[attr-defined]
    assert elsewhere.command_line()[3:] == ["--apply", str(patch), "--rev", shas[20]]  # type: ignore[attr-defined]
    assert on_culprit.tried_name() == f"fix.patch on {shas[fake.CULPRIT][:12]}"  # type: ignore[attr-defined]
    patch.write_text("other")
    changed, _ = accept(patch)
    assert changed.tried != on_culprit.tried  # type: ignore[attr-defined]


def test_a_patch_that_does_not_apply_is_a_wrong_request_in_gits_words(
    bench: Bench, patch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise SourceFailed("the patch fix.patch does not apply to 0123", details="error: patch failed: x:10")

    monkeypatch.setattr(KernelTrees, "tree", fails)
    with pytest.raises(RequestError, match=r"--apply: the patch fix.patch does not apply") as caught:
        accept(patch)
    assert "patch failed: x:10" in caught.value.details
    assert "--rev" in caught.value.cure


def test_what_there_is_to_mend_must_have_been_found(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    shas = bench.lab.graph.shas
    assert "there is nothing to try" in refused(capsys, "try")
    assert "is the culprit" in refused(capsys, "try", "--rev", shas[fake.CULPRIT])
    assert "is the culprit's parent" in refused(capsys, "try", "--rev", shas[fake.CULPRIT - 1])
    assert "is before the culprit" in refused(capsys, "try", "--rev", shas[bench.lab.graph.good])
    accept(rev=shas[bench.lab.graph.bad])
    wiring = Wiring(load_settings(None, {}))
    accepted = read_accepted(wiring.store.load("found").request)
    assert accepted.attempt is None
    looking = accepted.model_copy(update={"request": accepted.request.model_copy(update={"find": "fix"})})
    fixed = Stored("fixed", 2.0, looking.model_dump_json(), "new", bench.lab.graph)
    wiring.store.create(fixed)
    assert "looked for a fix" in refused(capsys, "try", "fixed", "--rev", shas[3])


def test_without_a_culprit_nothing_can_be_tried(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(own_folders, monkeypatch)
    store = fake.store_bisections(bench.state.parent, monkeypatch)
    assert store.status("fake-new")
    assert "has found no culprit" in refused(capsys, "try", "fake-new", "--rev", "x")


def test_nothing_can_be_tried_on_a_listed_kernel(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    wiring = Wiring(load_settings(None, {}))
    accepted = read_accepted(wiring.store.load("found").request)
    listed = accepted.model_copy(update={"goal": {**accepted.goal, "unit": "kernel"}})
    wiring.store.create(Stored("listed", 2.0, listed.model_dump_json(), "new", bench.lab.graph))
    told = refused(capsys, "try", "listed", "--rev", bench.lab.graph.shas[3])
    assert "compared listed kernels: there is no commit to try a change on" in told

"""Stored bisections as material of a report: which one an id means, its status, and its commits."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.system.console_log import HEAD_BYTES, TAIL_BYTES, ConsoleLog
from bisector.app import load_report
from bisector.app.execution.current_status import current_status
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import lock
from bisector.errors import InfrastructureError, RequestError
from bisector.model.facts import MonitorResult, MonitorValue
from bisector.model.records import Booted, Left
from bisector.report import json_report, trials
from bisector.schemas.request import read_accepted
from bisector.schemas.settings import Settings
from tests.support.fake_bisection import store_bisections

OF_GIT = Wiring.source


@pytest.fixture
def wiring(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    store_bisections(own_folders, monkeypatch)
    return Wiring(Settings(state_dir=own_folders / "state"))


def test_a_bisection_is_found_by_a_unique_beginning_and_the_latest_without_a_name(wiring: Wiring) -> None:
    assert load_report.find_bisection(wiring, None).id == "fake-new"
    assert load_report.find_bisection(wiring, "fake-o").id == "fake-old"
    with pytest.raises(RequestError, match="several") as caught:
        load_report.find_bisection(wiring, "fake")
    assert caught.value.details == "fake-new\nfake-old"


def test_an_id_that_is_the_beginning_of_another_is_itself(wiring: Wiring, own_folders: Path) -> None:
    store = wiring.store
    stored = load_report.find_bisection(wiring, "fake-old")
    store.create(type(stored)("fake", 3.0, stored.request, "cancelled", stored.graph))
    assert load_report.find_bisection(wiring, "fake").id == "fake"


def test_a_bisection_whose_process_is_gone_is_interrupted(wiring: Wiring) -> None:
    stored = load_report.find_bisection(wiring, "fake-new")
    assert stored.status == "running"
    assert current_status(wiring, stored) == "interrupted"
    with lock(wiring.settings.state_dir, "another"):
        assert current_status(wiring, stored) == "running", "an executor shares the testbeds"
    assert current_status(wiring, load_report.find_bisection(wiring, "fake-old")) == "cancelled"


def test_the_material_has_records_names_and_the_host(wiring: Wiring) -> None:
    folder = wiring.bisection_folder("fake-new")
    folder.mkdir(parents=True)
    (folder / "host.json").write_text(json.dumps({"host": "Debian"}))
    material = load_report.load_material(wiring, "fake-new")
    assert [trial.samples for trial in material.trials] == [(100.0, 101.0)]
    assert set(material.commits) == {material.graph.good, material.graph.bad}
    assert material.host["host"] == "Debian"
    assert material.so_far is None
    assert load_report.load_material(wiring, "fake-new", so_far=True).so_far is not None
    assert load_report.load_material(wiring, "fake-old", so_far=True).so_far is None, "nothing was measured"


@pytest.mark.parametrize("content", [b'{"host": "Deb', b"[]", b"\xff\xfe\xff"])
def test_a_damaged_description_of_the_host_is_left_out(wiring: Wiring, content: bytes) -> None:
    folder = wiring.bisection_folder("fake-new")
    folder.mkdir(parents=True)
    (folder / "host.json").write_bytes(content)
    assert set(load_report.load_material(wiring, "fake-new").host) == {"perfbisect"}


def test_without_the_repository_only_names_are_missing(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*args: object) -> None:
        raise InfrastructureError("the repository is gone")

    named = load_report.load_material(wiring, "fake-new")
    monkeypatch.setattr(Wiring, "source", gone)
    material = load_report.load_material(wiring, "fake-new")
    assert material.commits == {}
    load_report.keep_names(wiring.bisection_folder("fake-new"), named)
    assert load_report.load_material(wiring, "fake-new").commits == named.commits, "those of the last report"
    assert [trial.samples for trial in material.trials] == [(100.0, 101.0)]
    sha = material.graph.shas[3]
    assert load_report.commit_index(wiring, material, sha) == 3, "an id needs no repository"
    assert load_report.commit_index(wiring, material, str(material.request["good"])) == material.graph.good
    with pytest.raises(RequestError, match=r"not an id of the bisection fake-new.*repository is gone"):
        load_report.commit_index(wiring, material, "rt-10")


@pytest.mark.parametrize(
    "repo", ["~nobody-here/linux", "/tmp/" + "R" * 300, "/etc/passwd/linux", "/closed/linux"]
)
def test_whatever_the_path_of_the_repository_is_a_report_needs_none(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch, repo: str
) -> None:
    stat = Path.stat

    def closed(path: Path, **options: bool) -> os.stat_result:
        if str(path).startswith("/closed/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", closed)
    monkeypatch.setattr(Wiring, "source", OF_GIT)  # not that of the fakes
    stored = load_report.find_bisection(wiring, "fake-new")
    accepted = read_accepted(stored.request)
    for trusted in (False, True):
        request = accepted.request.model_copy(update={"repo": repo, "trust_repo": trusted})
        kept = accepted.model_copy(update={"request": request}).model_dump_json()
        wiring.store.create(replace(stored, id=f"moved-{trusted}", request=kept))
        assert load_report.load_material(wiring, f"moved-{trusted}").commits == {}


def test_what_an_archive_brought_for_names_is_bounded_or_left_out(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*args: object) -> None:
        raise InfrastructureError("the repository is gone")

    graph = load_report.load_material(wiring, "fake-new").graph
    monkeypatch.setattr(Wiring, "source", gone)
    folder = wiring.bisection_folder("fake-new")
    folder.mkdir(parents=True)
    good, bad = graph.shas[graph.good], graph.shas[graph.bad]
    kept = {"subject": "s" * 600, "author": 5, "when": 1e13, "more": []}
    (folder / load_report.NAMES).write_text(json.dumps({good: kept, bad: "no names"}))
    (folder / load_report.HOST).write_text(json.dumps({"host": "h" * 5000}))
    material = load_report.load_material(wiring, "fake-new")
    first = material.commits[graph.good]
    assert (len(first.subject), first.author, first.when) == (500, "5", 0.0)
    assert material.commits[graph.bad].subject == ""
    assert len(material.host["host"]) == 4096


def test_a_commit_is_found_by_name_or_id(wiring: Wiring) -> None:
    material = load_report.load_material(wiring, "fake-new")
    assert load_report.commit_index(wiring, material, "bad") == material.graph.bad
    with pytest.raises(RequestError, match="unknown commit 'nope'"):
        load_report.commit_index(wiring, material, "nope")


def test_a_console_that_was_cut_is_told(wiring: Wiring, tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    log = ConsoleLog(console)
    log.begin()
    with console.open("ab") as file:
        file.truncate(HEAD_BYTES + TAIL_BYTES + 1)
    for boot, path in (("b2", console), ("b3", tmp_path / "none")):
        wiring.store.append("fake-new", Booted(boot, 0, "fake", True, 1.0, 1.0, console=str(path)))
    assert not any(trial.console_cut for trial in load_report.load_material(wiring, "fake-new").trials)
    log.join()
    material = load_report.load_material(wiring, "fake-new")
    assert [trial.booted.boot for trial in material.trials if trial.console_cut] == ["b2"]
    text = " ".join("\n".join(trials.lines(material)).split())
    assert f"it printed more than is kept; beginning and end are in {console}" in text
    assert text.count("printed more") == 1
    assert [trial["console_cut"] for trial in json_report.render(material)["trials"]] == [False, True, False]


def test_functions_that_a_culprit_changes_are_asked_of_git_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def touched(repo: Path, sha: str) -> frozenset[str]:
        asked.append(sha)
        return frozenset(["lock", "unlock"])

    monkeypatch.setattr("bisector.adapters.git.changed_functions.touched_functions", touched)
    counted = MonitorResult("counters", seen=(MonitorValue("lock", 1.0, "instructions"),))
    records = [(1, Left("b1", monitors=(counted,)))]
    for _ in range(3):
        found = load_report._touched("/repo", tmp_path, records, {4: "a" * 40})
        assert found == {4: frozenset(["lock", "unlock"])}
    assert asked == ["a" * 40]
    load_report._touched("/repo", tmp_path, records, {5: "b" * 40})
    assert asked == ["a" * 40, "b" * 40]
    assert load_report._touched("/repo", tmp_path, [], {4: "a" * 40}) == {}, "nothing was counted"
    (tmp_path / load_report.TOUCHED).write_text(json.dumps({"c" * 40: 5}))  # of an archive
    assert load_report._touched(str(tmp_path), tmp_path, records, {6: "c" * 40}) == {
        6: frozenset(["lock", "unlock"])
    }

    def gone(repo: Path, sha: str) -> frozenset[str]:
        raise InfrastructureError("the repository is gone")

    monkeypatch.setattr("bisector.adapters.git.changed_functions.touched_functions", gone)
    (tmp_path / load_report.TOUCHED).write_text(json.dumps({"c" * 40: 5}))
    assert load_report._touched(str(tmp_path), tmp_path, records, {6: "c" * 40}) == {}

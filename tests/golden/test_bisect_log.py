"""`perfbisect log`: word for word, and accepted by git's own replay in a real repository."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.decisions import Conclusion, Ending, Finding, Interval
from bisector.model.goal import Find
from bisector.model.records import Booted, Left, Marked, Ran, Record
from bisector.report import bisect_log
from bisector.report.report_model import Commit, Material
from bisector.simulation.histories import linear
from tests.support.expected import check
from tests.support.report_material import SUBJECTS, demo, two_levels


def test_the_log_word_for_word() -> None:
    check("bisect.log", bisect_log.render(demo()))


def test_the_steps_are_those_of_the_log() -> None:
    replayed = [
        line.split() for line in bisect_log.render(demo()).splitlines() if line.startswith("git bisect ")
    ]
    found = [[step["verdict"], step["commit"]] for step in bisect_log.steps(demo())]
    assert found == [words[2:] for words in replayed[1:]]
    assert len(found) > 2


def test_what_was_measured_below_the_range_is_only_a_comment() -> None:
    material = demo()
    graph = dataclasses.replace(
        material.graph, candidate=tuple(c and i != 2 for i, c in enumerate(material.graph.candidate))
    )
    log = bisect_log.render(dataclasses.replace(material, graph=graph))
    assert "below the range, for the offset of a branch; not part of the replay" in log
    assert f"git bisect good {graph.shas[2]}" in bisect_log.render(material)
    assert f"git bisect good {graph.shas[2]}" not in log


@pytest.mark.parametrize(("find", "word"), [("regression", "bad"), ("fix", "new")])
def test_git_replays_the_log_and_stops_at_the_same_commit(tmp_path: Path, find: Find, word: str) -> None:
    shas = history(tmp_path, SUBJECTS)
    material = demo()
    material = dataclasses.replace(material, goal=dataclasses.replace(material.goal, find=find))
    graph = CommitGraph(
        shas=tuple(shas),
        parents=material.graph.parents,
        candidate=material.graph.candidate,
        good=0,
        bad=4,
    )
    commits = {i: Commit(sha, subject) for i, (sha, subject) in enumerate(zip(shas, SUBJECTS, strict=True))}
    (tmp_path / "log").write_text(
        bisect_log.render(dataclasses.replace(material, graph=graph, commits=commits))
    )
    assert f"{shas[3]} is the first {word} commit" in git(tmp_path, "bisect", "replay", "log")


def found(commit: int, effect: float, *, opposite: bool = False, many: int = 1) -> Finding:
    """Return a proof that this commit, or one of so many up to it, did it."""
    first = commit - many + 1
    change = Interval(effect, effect, effect)
    return Finding(
        tuple(range(first, commit + 1)), change, 0.97, (first - 1,), certified=True, opposite=opposite
    )


LOSSES = {0: 100, 1: 100, 2: 101, 3: 101, 4: 101, 5: 101, 6: 103, 7: 103, 8: 105}
PAIR = {0: 100, 1: 100, 2: 100, 3: 110, 4: 110, 5: 110, 6: 100, 7: 100, 8: 100.1}
THREE = {**PAIR, 8: 110}


@pytest.mark.parametrize(
    ("levels", "order", "findings", "total", "ends_at"),
    [
        (LOSSES, (4, 2, 1, 6, 5, 7), (found(2, 0.01),), 0.05, "is the first bad commit: 2"),
        (LOSSES, (4, 2, 1, 6, 5, 7), (found(2, 0.01), found(6, 0.02)), 0.05, "is the first bad commit: 6"),
        (
            PAIR,
            (4, 7, 5, 6, 2, 3),
            (found(3, 0.1), found(6, -0.1, opposite=True)),
            0.0,
            "is the first bad commit: 3",
        ),
        (PAIR, (4, 7, 5, 6, 2, 3), (), 0.0, "Bisecting: 3 revisions left"),
        (THREE, (4, 7, 1), (), 0.1, "Bisecting: 0 revisions left"),
        (THREE, (7, 4), (), 0.1, "is the first bad commit: 8"),
        (LOSSES, (7, 4, 6), (found(7, 0.01, many=2),), 0.05, "Bisecting: 0 revisions left"),
    ],
    ids=["less than half", "two losses", "a scan", "alike", "bad first", "good first", "a set"],
)
def test_git_replays_what_the_search_found_and_stops_at_the_largest_loss(
    tmp_path: Path,
    levels: Mapping[int, float],
    order: Sequence[int],
    findings: tuple[Finding, ...],
    total: float,
    ends_at: str,
) -> None:
    """Git takes no good commit behind a bad one, and follows the last bad one that it is told."""
    shas = history(tmp_path, map(str, levels))
    records: list[tuple[int, Record]] = []
    for number, commit in enumerate((0, len(levels) - 1, *order)):
        boot = f"b{number}"
        made: tuple[Record, ...] = (
            Booted(boot, commit, "t", True, 1.0, 1.0),
            Ran(boot, 0, {"real": levels[commit]}, 1.0, 1.0),
            Left(boot),
        )
        records += [(10 * number + k, record) for k, record in enumerate(made)]
    graph = dataclasses.replace(linear(len(levels) - 1), shas=tuple(shas))
    end = Conclusion(
        Ending.CULPRITS if findings else Ending.INCONCLUSIVE,
        "",
        findings,
        Interval(total - 0.01, total, total + 0.01),
    )
    material = Material("b-1", 0.0, "done", {}, graph, demo().goal, end, records, [])
    (tmp_path / "log").write_text(bisect_log.render(material))
    said = git(tmp_path, "bisect", "replay", "log")
    words, _, place = ends_at.partition(" commit: ")
    assert (f"{shas[int(place)]} {words} commit" if place else words) in said


def test_git_replays_what_was_marked_by_hand(tmp_path: Path) -> None:
    """What nobody measured is in no trial; without its mark git would ask for it again."""
    shas = history(tmp_path, "01234567")
    graph = dataclasses.replace(linear(7), shas=tuple(shas))
    marks = [(2, Marked(4, "good")), (1, Marked(6, "bad")), (3, Marked(5, "skip", "no network"))]
    records: list[tuple[int, Record]] = [*marks]
    material = Material("b-1", 0.0, "running", {}, graph, demo().goal, None, records, [])
    (tmp_path / "log").write_text(bisect_log.render(material))
    log = (tmp_path / "log").read_text()
    assert f"# marked by hand: [{shas[4][:12]}] is good" in log
    git(tmp_path, "bisect", "replay", "log", code=2)  # only what is skipped is left
    kept = git(tmp_path, "bisect", "log")
    assert f"possible first bad commit: [{shas[5]}]" in kept
    assert f"possible first bad commit: [{shas[6]}]" in kept
    assert "possible first bad commit: [{shas[4]}]" not in kept


def test_git_replays_a_search_of_first_parents_to_its_merge(tmp_path: Path) -> None:
    """Without the option git goes on into the branch, whose commits the search had left out."""
    main = history(tmp_path, "01")
    git(tmp_path, "checkout", "-q", "-b", "side")
    for subject in ("s1", "s2", "s3"):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", subject)
    git(tmp_path, "checkout", "-q", "-b", "main-line", main[1])
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "2")
    git(tmp_path, "merge", "-q", "--no-ff", "-m", "merge", "side")
    shas = git(tmp_path, "rev-list", "--first-parent", "--reverse", "HEAD").split()
    graph = dataclasses.replace(linear(3), shas=tuple(shas))
    request = {"first_parent": True}
    records: list[tuple[int, Record]] = [(1, Marked(2, "good"))]
    material = Material("b-1", 0.0, "running", request, graph, demo().goal, None, records, [])
    (tmp_path / "log").write_text(bisect_log.render(material))
    assert f"{shas[3]} is the first bad commit" in git(tmp_path, "bisect", "replay", "log")


def test_git_replays_a_search_of_paths_with_these_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    shas = []
    for number, path in enumerate(("a", "it's mine", "a", "a", "it's mine", "a")):
        (tmp_path / path).write_text(str(number))
        git(tmp_path, "add", path)
        git(tmp_path, "commit", "-q", "-m", path)
        shas.append(git(tmp_path, "rev-parse", "HEAD"))
    graph = dataclasses.replace(linear(2), shas=(shas[0], shas[1], shas[5]))
    request = {"paths": ["it's mine"]}
    records: list[tuple[int, Record]] = [(1, Marked(1, "good"))]
    material = Material("b-1", 0.0, "running", request, graph, demo().goal, None, records, [])
    (tmp_path / "log").write_text(bisect_log.render(material))
    git(tmp_path, "bisect", "replay", "log")
    assert git(tmp_path, "rev-parse", "HEAD") == shas[4]  # in the middle of the range nothing touches it


def git(folder: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout.strip()


def history(folder: Path, subjects: Iterable[str]) -> list[str]:
    """Make a commit of each subject; return their ids."""
    git(folder, "init", "-q")
    shas = []
    for subject in subjects:
        git(folder, "commit", "-q", "--allow-empty", "-m", subject)
        shas.append(git(folder, "rev-parse", "HEAD"))
    return shas


def test_a_side_is_that_of_testbeds_that_measured_commit_and_ends() -> None:
    shas = demo().graph.shas
    found = {step["commit"]: step["verdict"] for step in bisect_log.steps(two_levels())}
    assert (found[shas[2]], found[shas[3]]) == ("good", "bad")


def test_a_suspect_that_is_not_proven_is_not_the_first_bad_commit() -> None:
    material = demo()
    assert material.conclusion is not None
    suspect = dataclasses.replace(material.conclusion.findings[0], certified=False)
    open_end = dataclasses.replace(material.conclusion, findings=(suspect,))
    assert "# first bad commit: [" in bisect_log.render(material)
    log = bisect_log.render(dataclasses.replace(material, conclusion=open_end))
    assert "# possible first bad commit: [" in log and "# first bad commit: [" not in log


def test_each_finding_is_called_what_it_is() -> None:
    material = demo()
    assert material.conclusion is not None
    (culprit,) = material.conclusion.findings
    for finding, said in (
        (culprit, ["first bad commit"]),
        (dataclasses.replace(culprit, commits=(2, 3)), ["possible first bad commit"] * 2),
        (dataclasses.replace(culprit, small=True), ["smaller than the threshold"]),
        (
            dataclasses.replace(culprit, small=True, opposite=True, certified=False),
            ["smaller than the threshold"],
        ),
        (dataclasses.replace(culprit, opposite=True), ["changes it the other way, a gain"]),
    ):
        end = dataclasses.replace(material.conclusion, findings=(finding,))
        log = bisect_log.render(dataclasses.replace(material, conclusion=end))
        last = [line for line in log.splitlines() if line.endswith("(+19.41% slower (+19.35% .. +19.47%))")]
        shas = [material.graph.shas[commit] for commit in finding.commits]
        assert [line.partition(": [")[0] for line in last] == [f"# {words}" for words in said]
        assert all(sha in line for sha, line in zip(shas, last, strict=True))


def test_git_is_told_nothing_of_listed_kernels() -> None:
    listed = dataclasses.replace(demo(), goal=dataclasses.replace(demo().goal, unit="kernel"))
    log = bisect_log.render(listed)
    assert "git bisect" not in log and "# bad: [" in log


def test_what_a_user_has_said_of_a_commit_counts_more_than_its_level() -> None:
    said: list[tuple[int, Record]] = [*demo().records, (1000, Marked(2, "bad"))]
    material = dataclasses.replace(demo(), conclusion=None, records=said)
    found = {step["commit"]: step["verdict"] for step in bisect_log.steps(material)}
    assert found[material.graph.shas[2]] == "bad"


def test_a_merge_base_is_replayed_though_it_is_no_candidate() -> None:
    material = demo()
    out = tuple(c and i != 2 for i, c in enumerate(material.graph.candidate))
    graph = dataclasses.replace(material.graph, candidate=out, merge_bases=(2,))
    log = bisect_log.render(dataclasses.replace(material, graph=graph))
    assert f"git bisect good {graph.shas[2]}" in log


def test_a_commit_that_was_tried_and_cannot_be_tested_is_skipped() -> None:
    said: list[tuple[int, Record]] = [*demo().records, (1000, Marked(2, "skip", "its boots hang"))]
    material = dataclasses.replace(demo(), conclusion=None, records=said)
    steps = [step for step in bisect_log.steps(material) if step["commit"] == material.graph.shas[2]]
    assert [step["verdict"] for step in steps] == ["skip"]

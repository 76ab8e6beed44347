"""`perfbisect log`: word for word, and accepted by git's own replay in a real repository."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.goal import Find
from bisector.report import bisect_log
from bisector.report.report_model import Commit
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
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "-q")
    shas = []
    for subject in SUBJECTS:
        git("commit", "-q", "--allow-empty", "-m", subject)
        shas.append(git("rev-parse", "HEAD"))
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
    assert f"{shas[3]} is the first {word} commit" in git("bisect", "replay", "log")


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

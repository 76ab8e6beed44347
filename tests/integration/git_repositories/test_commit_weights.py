"""Prior weights from a real repository: folders, merges, reverts in the range and fixes after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.git.commit_messages import YEARS_LATER, read_messages
from bisector.app.execution.commit_weights import CommitWeights
from bisector.model.commit_graph import CommitGraph
from bisector.model.records import FunctionEvidence
from bisector.schemas.commit_priors import Priors
from tests.support.small_git import SmallGit

HISTORY = """
    good
    sched: good | kernel/sched.c
    mm: sched   | mm/slab.c
    sound: mm   | sound/core.c
    side: sched | mm/side.c
    m: sound side
    taken: m    | mm/taken.c
"""
NAMES = ("good", "sched", "mm", "sound", "side", "m", "taken", "back")


def say(git: SmallGit, message: str, years_after_bad: int = 0) -> str:
    """Commit nothing but a message."""
    tree, head = git.git("rev-parse", "HEAD^{tree}", "HEAD").split()
    who = f"A <a@example.org> {1_100_001_000 + years_after_bad * 31_557_600} +0000"
    text = f"tree {tree}\nparent {head}\nauthor {who}\ncommitter {who}\n\n{message}\n"
    made = git.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text).strip()
    git.git("update-ref", "HEAD", made)
    return made


def history(path: Path, last: str = "") -> SmallGit:
    """Make the history. last: the message of the newer end, by default of a revert of the one before it."""
    git = SmallGit(path).make(HISTORY)
    git.ids["back"] = say(git, last or f'Revert "change taken"\n\nThis reverts commit {git.ids["taken"]}.')
    return git


def graph(git: SmallGit) -> CommitGraph:
    parents = ((), (0,), (1,), (2,), (1,), (3, 4), (5,), (6,))
    shas = tuple(git.ids[name] for name in NAMES)
    return CommitGraph(shas, parents, (False,) + (True,) * 7, good=0, bad=7)


def weights_of(git: SmallGit, keep_in: Path, **more: Any) -> tuple[dict[str, float], int]:
    weighed = CommitWeights(git.path, keep_in, "x86_64", **more)(graph(git), irrelevant=[3])
    assert weighed is not None
    return {NAMES[i]: w for i, w in zip(weighed.commits, weighed.weights, strict=True)}, weighed.named


def test_weights_follow_what_git_tells(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    say(git, f"mm: mend a slow path\n\nFixes: {git.ids['mm'][:12]} (change mm)")
    weights, named = weights_of(git, tmp_path / "kept")
    assert named == 1
    assert set(weights) == set(NAMES) - {"good", "sound"}
    assert max(weights, key=weights.__getitem__) == "mm"
    assert weights["sched"] == weights["side"] > weights["m"]
    assert weights["side"] > weights["taken"]
    assert sum(weights.values()) == pytest.approx(len(weights), abs=0.01)


def test_factors_of_the_user_count_beside_what_git_tells(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    plain, _ = weights_of(git, tmp_path / "kept")
    priors = Priors(commits={git.ids["m"]: 16}, paths={"kernel/": 4, "mm/side.c": 0.25})
    weights, _ = weights_of(git, tmp_path / "kept", priors=priors)
    assert plain["sched"] == plain["mm"] == plain["side"]
    assert weights["sched"] > weights["m"] > weights["mm"] > weights["side"] >= 0.5
    assert sum(weights.values()) == pytest.approx(len(weights), abs=0.01)


def test_who_looks_for_a_fix_asks_who_mends_what_the_older_end_has_and_no_later_message(
    tmp_path: Path,
) -> None:
    git = history(tmp_path / "linux")
    say(git, f"Fixes: {git.ids['mm'][:12]}")
    weights, named = weights_of(git, tmp_path / "kept", find="fix")
    assert named == 0
    assert weights["mm"] == weights["side"] > weights["taken"]
    mends = history(tmp_path / "mends", f"Fixes: {'c0ffee' * 2} (change of 2004)")
    weights, named = weights_of(mends, tmp_path / "kept", find="fix")
    assert named == 1
    assert weights["back"] > weights["mm"] == weights["taken"]


def test_a_scan_suspects_pairs_that_cancel_and_what_was_mended_later(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    say(git, f"Fixes: {git.ids['mm'][:12]}")
    for find in ("regression", "fix"):
        weights, named = weights_of(git, tmp_path / "kept", find=find, scan=True)
        assert named == 3
        assert min(weights["taken"], weights["back"], weights["mm"]) > weights["side"]


def test_in_a_scan_functions_that_are_equal_at_the_ends_clear_nobody(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    told = FunctionEvidence(differ=(), call=(), elsewhere=(NAMES.index("mm"),))
    for scan, lowered in ((False, True), (True, False)):
        weighed = CommitWeights(git.path, tmp_path / "kept", "x86_64", scan=scan)(graph(git), [3], told)
        assert weighed is not None
        weights = {NAMES[i]: w for i, w in zip(weighed.commits, weighed.weights, strict=True)}
        assert (weights["mm"] < weights["sched"]) is lowered


def test_functions_that_differ_count_beside_what_git_tells(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    told = FunctionEvidence(differ=(NAMES.index("side"),), call=(NAMES.index("sched"),), elsewhere=(2,))
    weighed = CommitWeights(git.path, tmp_path / "kept", "x86_64")(graph(git), [3], told)
    assert weighed is not None
    assert weighed.functions == told
    weights = {NAMES[i]: w for i, w in zip(weighed.commits, weighed.weights, strict=True)}
    assert weights["side"] > weights["sched"] > weights["mm"] >= 0.5
    assert weights["side"] - 0.5 == pytest.approx(4 * (weights["sched"] - 0.5), abs=0.01)
    assert sum(weights.values()) == pytest.approx(len(weights), abs=0.01)


def test_nothing_is_weighed_where_no_commit_can_matter(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    assert CommitWeights(git.path, tmp_path / "kept", "x86_64")(graph(git), irrelevant=range(8)) is None


def test_messages_are_those_that_revert_in_the_range_and_those_that_name_an_id_in_the_years_after(
    tmp_path: Path,
) -> None:
    git = history(tmp_path / "linux")
    mended = say(git, f"mend {git.ids['mm'][:12]}")
    say(git, "no id, only words")
    say(git, f"too late: {git.ids['mm'][:12]}", YEARS_LATER + 1)
    git.git("branch", "stable", mended)
    git.git("reset", "--quiet", "--hard", git.ids["back"])
    said = read_messages(git.path, git.ids["good"], git.ids["back"])
    assert {sha: text.split("\n")[0] for sha, text in said.inside.items()} == {
        git.ids["back"]: 'Revert "change taken"'
    }
    assert said.later == (f"mend {git.ids['mm'][:12]}\n",)


def test_messages_that_mend_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    git = history(tmp_path / "linux", "speed it up\n\nFixes: c0ffeec0ffee (change of 2004)")
    ends = git.ids["good"], git.ids["back"]
    assert read_messages(git.path, *ends).inside == {}
    said = read_messages(git.path, *ends, mending=True, later=False)
    assert list(said.inside) == [git.ids["back"]]
    assert "Fixes: c0ffeec0ffee" in said.inside[git.ids["back"]]
    say(git, f"Fixes: {git.ids['mm'][:12]}")
    assert read_messages(git.path, *ends, later=False).later == ()
    assert len(read_messages(git.path, *ends).later) == 1


def test_a_broken_branch_elsewhere_leaves_the_range_its_messages(tmp_path: Path) -> None:
    git = history(tmp_path / "linux")
    (git.path / ".git/refs/heads/broken").write_text("1" * 40 + "\n")
    said = read_messages(git.path, git.ids["good"], git.ids["back"])
    assert (len(said.inside), said.later) == (1, ())

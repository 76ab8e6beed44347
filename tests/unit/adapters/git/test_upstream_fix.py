"""Fixes and reverts of a commit in later history."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.git.upstream_fix import find_upstream_fix, has_commit
from tests.support.small_git import SmallGit


def add(tree: SmallGit, message: str) -> str:
    tree.git("-c", "user.name=c", "-c", "user.email=c@x", "commit", "-q", "--allow-empty", "-m", message)
    return tree.git("rev-parse", "HEAD").strip()


def test_the_first_commit_that_names_it_as_fixed_or_reverted(tmp_path: Path) -> None:
    tree = SmallGit(tmp_path / "tree").make("a")
    guilty = add(tree, "guilty")
    assert find_upstream_fix(tree.path, guilty) is None
    add(tree, f"talks of Fixes: {guilty[:12]} in a sentence")
    add(tree, f'another\n\nFixes: {"0" * 12} ("x")')
    assert find_upstream_fix(tree.path, guilty) is None
    fix = add(tree, f'größer\n\nFixes: {guilty[:12]} ("guilty")')
    assert find_upstream_fix(tree.path, guilty) == (fix, "größer", False)
    add(tree, f"again\n\nFixes: {guilty[:12]}")
    assert find_upstream_fix(tree.path, guilty) == (fix, "größer", False)
    revert = add(tree, f'Revert\n\nthis REVERTS commit {guilty}.\n\nFixes: {guilty[:12]} ("guilty")')
    assert find_upstream_fix(tree.path, guilty) == (revert, "Revert", True), "it says more"
    assert find_upstream_fix(tree.path, fix) is None


def test_a_revert_on_another_branch(tmp_path: Path) -> None:
    tree = SmallGit(tmp_path / "tree").make("a")
    guilty = add(tree, "guilty")
    tree.git("checkout", "-q", "-b", "next")
    revert = add(tree, f"Revert it\n\nThis reverts commit {guilty}.")
    tree.git("checkout", "-q", "-")
    assert find_upstream_fix(tree.path, guilty) == (revert, "Revert it", True)


def test_a_fix_that_only_a_night_has_fetched(tmp_path: Path) -> None:
    tree = SmallGit(tmp_path / "tree").make("a")
    guilty = add(tree, "guilty")
    fix = add(tree, f"mend\n\nFixes: {guilty[:12]}")
    tree.git("update-ref", "refs/perfbisect/origin/master", fix)
    tree.git("reset", "-q", "--hard", guilty)
    assert find_upstream_fix(tree.path, guilty) == (fix, "mend", False)


def test_whether_a_commit_is_in_the_history_of_another(tmp_path: Path) -> None:
    tree = SmallGit(tmp_path / "tree").make("a")
    first, second = add(tree, "first"), add(tree, "second")
    assert has_commit(tree.path, second, first) and has_commit(tree.path, first, first)
    assert not has_commit(tree.path, first, second)

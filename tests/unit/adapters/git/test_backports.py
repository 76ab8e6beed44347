"""Known fixes: put where the guilty commit is in and the fix is not, and nowhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisector.adapters.git.backports import find_fix, find_needed
from bisector.adapters.git.trees import KernelTrees
from bisector.errors import RequestError, SourceFailed
from tests.support.toy_kernel import ToyHistory

WORK = "kernel/work.c"
GOOD, BROKEN = "int work(int x) { return x * 3; }\n", "int work(int x) { return y * 3; }\n"
OTHER = "int other(void) { return 1; }\n"


class Story:
    """base, guilty (breaks work.c), middle, fix (mends it), after; 'far' rewrites what the fix touches."""

    def __init__(self, path: Path, own: Path) -> None:
        history = self.history = ToyHistory.create(path)
        self.base = history.git("rev-parse", "HEAD").strip()
        self.guilty = history.commit({WORK: BROKEN}, "work: a typo")
        self.middle = history.commit({"kernel/other.c": OTHER}, "other: new")
        self.fix = history.commit(
            {WORK: GOOD}, f'work: mend it\n\nFixes: {self.guilty[:12]} ("work: a typo")'
        )
        self.after = history.commit({"Documentation/toy.rst": "Two toys.\n"}, "docs")
        history.git("checkout", "-q", "-b", "side", self.middle)
        self.far = history.commit({WORK: "long work(long z) { return z; }\n"}, "work: all new")
        history.git("checkout", "-q", "-B", "stable", self.middle)
        self.stable = history.commit({WORK: GOOD}, "work: mend it (picked)")
        history.git("checkout", "-q", "main")
        self.trees = KernelTrees(path, own)

    def text(self, tree: str) -> str:
        command = ["git", f"--git-dir={self.trees.own}", "show", f"{tree}:{WORK}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def plain(self, sha: str) -> str:
        return self.history.git("rev-parse", f"{sha}^{{tree}}").strip()


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "repo", tmp_path / "own.git")


def test_a_fix_goes_where_it_is_needed(story: Story) -> None:
    fix = find_fix(story.history.path, story.fix)
    assert fix.guilty == (story.guilty,)
    for sha in (story.guilty, story.middle):
        assert find_needed(story.history.path, sha, [fix]) == (fix,)
        mended = story.trees.tree(sha, (), [fix])
        assert mended != story.plain(sha)
        assert story.text(mended) == GOOD
    for sha in (story.base, story.fix, story.after):
        assert find_needed(story.history.path, sha, [fix]) == ()
        assert story.trees.tree(sha, (), [fix]) == story.plain(sha)


def test_a_fix_that_is_in_under_another_name_is_not_made_twice(story: Story) -> None:
    fix = find_fix(story.history.path, story.fix)
    assert find_needed(story.history.path, story.stable, [fix]) == (fix,)
    assert story.trees.tree(story.stable, (), [fix]) == story.plain(story.stable)


def test_a_fix_that_does_not_apply_is_the_commits_own_trouble(story: Story) -> None:
    fix = find_fix(story.history.path, story.fix)
    with pytest.raises(SourceFailed, match=f"the fix {story.fix[:12]} does not apply to {story.far[:12]}"):
        story.trees.tree(story.far, (), [fix])
    assert story.history.git("status", "--porcelain") == ""


def test_patches_come_after_fixes(story: Story, tmp_path: Path) -> None:
    patch = tmp_path / "more.patch"
    patch.write_text(f"--- a/{WORK}\n+++ b/{WORK}\n@@ -1 +1 @@\n-{GOOD}+{GOOD.replace('3', '4')}")
    fix = find_fix(story.history.path, story.fix)
    assert "x * 4" in story.text(story.trees.tree(story.middle, [patch], [fix]))


def test_who_is_guilty_can_be_said_and_must_be_known(story: Story) -> None:
    repo = story.history.path
    assert find_fix(repo, f"{story.after}:{story.guilty[:10]}").guilty == (story.guilty,)
    with pytest.raises(RequestError, match="does not say what it fixes") as silent:
        find_fix(repo, story.after)
    assert f"--with-fix {story.after}:GUILTY" in silent.value.cure
    with pytest.raises(RequestError, match="'nonsense' is not a commit of"):
        find_fix(repo, "nonsense")
    with pytest.raises(RequestError, match="'feedfacecafe', which it fixes, is not a commit"):
        find_fix(repo, f"{story.fix}:feedfacecafe")
    with pytest.raises(RequestError, match="is a root, not a single change"):
        find_fix(repo, f"{story.base}:{story.guilty}")

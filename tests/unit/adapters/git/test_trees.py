"""Trees as git objects: patches without a checkout, packs for far builders, the user's tree untouched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisector.adapters.git.trees import KernelTrees
from bisector.errors import RequestError, SourceFailed
from tests.support.toy_kernel import ToyHistory

PATCH = """--- a/kernel/work.c
+++ b/kernel/work.c
@@ -1 +1 @@
-int work(int x) { return x * 3; }
+int work(int x) { return x * 5; }
"""


@pytest.fixture
def history(tmp_path: Path) -> ToyHistory:
    return ToyHistory.create(tmp_path / "repo")


@pytest.fixture
def trees(history: ToyHistory, tmp_path: Path) -> KernelTrees:
    return KernelTrees(history.path, tmp_path / "own.git")


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_patches_make_another_tree_and_leave_the_repository_alone(
    history: ToyHistory, trees: KernelTrees, tmp_path: Path
) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text(PATCH)
    before = snapshot(history.path)
    plain, patched = trees.tree("HEAD"), trees.tree("HEAD", [patch])
    assert snapshot(history.path) == before
    assert plain == history.git("rev-parse", "HEAD^{tree}").strip()
    text = subprocess.run(
        ["git", f"--git-dir={trees.own}", "show", f"{patched}:kernel/work.c"], capture_output=True, text=True
    ).stdout
    assert "x * 5" in text
    assert trees.tree("HEAD", [patch]) == patched


def test_a_patch_that_does_not_apply_says_which_and_where(trees: KernelTrees, tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text(PATCH.replace("x * 3", "x * 4"))
    with pytest.raises(SourceFailed, match=r"fix\.patch does not apply to HEAD") as error:
        trees.tree("HEAD", [patch])
    assert "kernel/work.c" in error.value.details
    with pytest.raises(RequestError, match="no such patch"):
        trees.tree("HEAD", [tmp_path / "none.patch"])


def test_an_unknown_commit_is_a_wrong_request(trees: KernelTrees) -> None:
    with pytest.raises(RequestError, match="'nonsense' is not a commit of"):
        trees.tree("nonsense")


def test_packs_hold_what_the_builder_lacks_and_no_more(
    history: ToyHistory, trees: KernelTrees, tmp_path: Path
) -> None:
    first = trees.tree("HEAD")
    history.commit({"kernel/work.c": "int work(int x) { return x; }\n"}, "change")
    second = trees.tree("HEAD")
    far = tmp_path / "far.git"
    subprocess.run(["git", "init", "--quiet", "--bare", far], check=True)
    sizes = []
    for number, (tree, have) in enumerate([(first, ()), (second, (first, "0" * 40))]):
        pack = tmp_path / f"{number}.pack"
        trees.pack(tree, have, pack)
        sizes.append(pack.stat().st_size)
        with pack.open("rb") as file:
            subprocess.run(["git", f"--git-dir={far}", "index-pack", "--stdin"], stdin=file, check=True)
    listed = subprocess.run(
        ["git", f"--git-dir={far}", "ls-tree", "-r", "--name-only", second], capture_output=True, text=True
    )
    assert "kernel/work.c" in listed.stdout
    count = subprocess.run(["git", f"--git-dir={far}", "fsck", "--full"], capture_output=True, text=True)
    assert count.returncode == 0
    assert sizes[1] < sizes[0] / 2

"""Trees as git objects: patches without a checkout, packs for far builders, the user's tree untouched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisector.adapters.git.repository import Repository
from bisector.adapters.git.trees import KernelTrees
from bisector.errors import InfrastructureError, RequestError, SourceFailed
from bisector.schemas.kernel.fixup import Fixup
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


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
@pytest.mark.parametrize("path", ["Makefile", "kernel/work.c"])
def test_a_file_that_cannot_be_read_is_no_failure_of_a_commit(
    history: ToyHistory, trees: KernelTrees, tmp_path: Path, path: str, damage: str
) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text(PATCH)
    tree = trees.tree("HEAD")
    blob = history.git("rev-parse", f"HEAD:{path}").strip()
    file = history.path / ".git/objects" / blob[:2] / blob[2:]
    file.unlink()
    if damage == "corrupt":
        file.write_bytes(b"no object")
    with pytest.raises(InfrastructureError, match="git cannot read the repository"):
        trees.release(tree)
        trees.tree("HEAD", [patch])


def test_a_commit_whose_tree_is_lost_is_no_wrong_request(history: ToyHistory, trees: KernelTrees) -> None:
    tree = history.git("rev-parse", "HEAD^{tree}").strip()
    (history.path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(InfrastructureError, match="has lost the files of HEAD"):
        trees.tree("HEAD")


def test_a_partial_clone_is_refused_where_a_build_would_lack_a_file(
    history: ToyHistory, tmp_path: Path
) -> None:
    good = history.git("rev-parse", "HEAD").strip()
    history.commit({"kernel/work.c": "int work(int x) { return 7; }\n"}, "changed")
    bad = history.commit({"kernel/work.c": "int work(int x) { return 8; }\n"}, "changed again")
    history.git("config", "uploadpack.allowFilter", "true")
    url, clone = f"file://{history.path}", tmp_path / "clone"
    history.git("clone", "--quiet", "--filter=blob:none", url, str(clone))  # has the files of `bad`
    partial = KernelTrees(clone, tmp_path / "own.git")
    for ends in ((good, bad), (f"{bad}~1", bad)):
        with pytest.raises(RequestError, match="is a partial clone that lacks") as caught:
            partial.require_files(*ends)
        assert "fetch --refetch --no-filter" in caught.value.cure
    history.git("-C", str(clone), "fetch", "--quiet", "--refetch", "--no-filter")
    partial.require_files(good, bad)


def test_a_tree_without_a_release_is_no_linux(history: ToyHistory, trees: KernelTrees) -> None:
    with pytest.raises(SourceFailed, match="holds no Linux kernel"):
        trees.release(history.git("rev-parse", "HEAD:kernel").strip())


def test_an_unknown_commit_is_a_wrong_request(trees: KernelTrees) -> None:
    with pytest.raises(RequestError, match="'nonsense' is not a commit of"):
        trees.tree("nonsense")


def test_a_repository_that_is_gone_is_not_said_to_lack_a_commit(
    history: ToyHistory, trees: KernelTrees, tmp_path: Path
) -> None:
    """As a health check finds it that goes on with the kernel of an earlier search."""
    sha = history.git("rev-parse", "HEAD").strip()
    history.path.rename(tmp_path / "elsewhere")
    with pytest.raises(RequestError, match=f"there is no folder {history.path}"):
        trees.tree(sha)


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


def test_edits_follow_no_link_and_run_no_filter(
    history: ToyHistory, trees: KernelTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree from elsewhere may have a link where an edit expects a file, and name the user's own filters."""
    outside, shown, config = (tmp_path / name for name in ("outside", "shown", "gitconfig"))
    outside.write_text("int secret(void) { return x * 3; }\n")
    config.write_text(f'[filter "mine"]\n\tclean = "touch {shown}; cat"\n\tsmudge = "touch {shown}; cat"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    (history.path / "kernel" / "link.c").symlink_to(outside)
    sha = history.commit({".gitattributes": "*.c filter=mine\n"}, "link")
    assert shown.exists(), "git runs the filter where files are checked in"
    shown.unlink()
    files = ("kernel/work.c", "kernel/link.c", "kernel")
    row = Fixup(name="x", files=files, pattern=r"x \* 3", replacement="x * 5", why="w")
    fixed = trees.fixed(trees.tree(sha), [row], "HEAD")
    changed = Repository(trees.own).run("diff", "--name-only", trees.tree(sha), fixed).output
    assert changed == "kernel/work.c\n"
    assert outside.read_text() == "int secret(void) { return x * 3; }\n"
    assert trees.edited(fixed, [row]) == frozenset()
    assert not shown.exists()

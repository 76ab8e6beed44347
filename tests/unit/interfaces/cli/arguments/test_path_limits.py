"""Paths behind `--` start where the user stands, as those of git do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisector.interfaces.cli.arguments.path_limits import from_top
from tests.support.small_git import SmallGit


@pytest.fixture
def tree(tmp_path: Path) -> SmallGit:
    """A repository whose commits touch one file each."""
    return SmallGit(tmp_path / "linux").make(
        """
        a | a.c
        b: a | kernel/b.c
        c: b | kernel/sched/c.c
        d: c | mm/d.c
        """
    )


@pytest.mark.parametrize("folder", [".", "kernel", "kernel/sched"])
@pytest.mark.parametrize(
    "paths",
    [
        ["."],
        [".."],
        ["b.c"],
        ["sched/"],
        ["../mm"],
        ["../sched", "c.c"],
        [":/mm"],
        [":(top)mm"],
        [":(top,icase)MM"],
        [":(icase)B.c"],
        [".", ":!sched"],
        [":^b.c"],
        [":(exclude)."],
        [":/", ":!/kernel"],
    ],
)
def test_they_mean_what_git_takes_them_for(
    tree: SmallGit, monkeypatch: pytest.MonkeyPatch, folder: str, paths: list[str]
) -> None:
    def touched(where: Path, names: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        command = ["git", "log", "--format=%s", "HEAD", "--", *names]
        return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)

    monkeypatch.chdir(tree.path / folder)
    ours, theirs = touched(tree.path, from_top(paths, tree.path)), touched(tree.path / folder, tuple(paths))
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)


def test_an_absolute_path_stays(tree: SmallGit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.path / "kernel")
    assert from_top([str(tree.path / "mm")], tree.path) == (str(tree.path / "mm"),)


def test_outside_of_the_searched_tree_they_start_at_its_top(
    tree: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SmallGit(tmp_path / "other").make("a").path
    (other / "tools").mkdir()
    for folder in (tmp_path, other / "tools"):
        monkeypatch.chdir(folder)
        assert from_top(["kernel/"], tree.path / "kernel") == ("kernel/",)


def test_a_repository_inside_of_the_tree_is_another(tree: SmallGit, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = SmallGit(tree.path / "kernel" / "inner").make("a").path
    monkeypatch.chdir(tree.path / "kernel")
    assert from_top(["b.c"], inner) == ("b.c",)

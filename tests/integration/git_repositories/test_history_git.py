"""The graph's answers against git itself, on random histories with octopus merges."""

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag


def git(folder: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=False, capture_output=True, text=True, **more
    )


def make(folder: Path, seed: int) -> tuple[list[tuple[int, ...]], list[str]]:
    """Write a random history through fast-import; return parents by number and the ids."""
    choice = random.Random(seed)
    parents: list[tuple[int, ...]] = [()]
    for i in range(1, 45):
        count = choice.choice([1, 1, 1, 2, 2, 3, 5])
        parents.append(tuple(sorted(set(choice.choices(range(max(0, i - 9), i), k=count)))))
    lines = []
    for i, chosen in enumerate(parents):
        lines += [f"commit refs/heads/b{i}", f"mark :{i + 1}"]
        lines += [f"committer T <t@example.org> {1000000 + i} +0000", "data 1", "x"]
        if chosen:
            lines.append(f"from :{chosen[0] + 1}")
            lines += [f"merge :{p + 1}" for p in chosen[1:]]
        lines.append("")
    git(folder, "init", "-q")
    done = git(folder, "fast-import", "--quiet", input="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    ids = git(folder, "rev-parse", *[f"b{i}" for i in range(45)]).stdout.split()
    return parents, ids


@pytest.mark.parametrize("seed", range(4))
def test_ancestors_equal_git(tmp_path: Path, seed: int) -> None:
    parents, ids = make(tmp_path, seed)
    graph = CommitGraph(tuple(ids), tuple(parents), (False, *[True] * 44), 0, 44)
    history = CommitDag(graph)
    choice = random.Random(seed)
    pairs = [(choice.randrange(45), choice.randrange(45)) for _ in range(120)]
    for a, b in pairs:
        answer = git(tmp_path, "merge-base", "--is-ancestor", ids[a], ids[b]).returncode == 0
        assert history.is_ancestor(a, b) == answer
    for commit in range(45):
        count = int(git(tmp_path, "rev-list", "--count", ids[commit]).stdout)
        assert history.ancestors(commit).sum() == count

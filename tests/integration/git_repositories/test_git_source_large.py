"""GitSource on a history as large as v2.6.18..v2.6.30: what it finds there, whatever the machine's speed.

A synthetic history of that size is always tried. KERNEL_HISTORY may name a file with the real one: xz text,
one commit a line, parents first, with tabs between id, time, parents (line numbers), tags and anything else.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisector.adapters.git.source import GitSource
from bisector.simulation.histories import branched

COMMITS, FOREIGN = 111_556, 714
"""Of v2.6.18..v2.6.30; the latter came with a root of their own (btrfs) and hold no Linux tree."""

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Line:
    """One commit: its parents by number, and tags."""

    parents: tuple[int, ...]
    tags: tuple[str, ...] = ()


def synthetic() -> list[Line]:
    """A kernel-like web whose last commit but one merges a foreign history."""
    graph = branched(COMMITS - FOREIGN - 1, seed=1)
    # One root, and the boundary in a row above it up to good.
    lines = [Line(())]
    lines.extend(
        Line(tuple(p + 1 for p in above) if inside else (number,))
        for number, (above, inside) in enumerate(zip(graph.parents, graph.candidate, strict=True))
    )
    lines[graph.good + 1] = Line(lines[graph.good + 1].parents, ("good",))
    last = len(lines) - 1
    root = last + 1
    lines.append(Line(()))
    lines.extend(Line((root + number,)) for number in range(FOREIGN - 1))
    lines.append(Line((last, len(lines) - 1), ("bad",)))
    return lines


def real(path: Path) -> list[Line]:
    """The commits of a file, tagged good and bad at its ends."""
    with lzma.open(path, "rt") as text:
        rows = [row.rstrip("\n").split("\t") for row in text if not row.startswith(("#", "="))]
    return [
        Line(tuple(dict.fromkeys(int(p) for p in above.split())), tuple(tags.split()))
        for _, _, above, tags, *_ in rows
    ]


def stream(lines: Iterable[Line]) -> Iterable[str]:
    """Commands for git fast-import: a tree has Linux's files if it comes from the first commit."""
    for number, line in enumerate(lines):
        yield f"reset refs/heads/main\n\ncommit refs/heads/main\nmark :{number + 1}\n"
        yield f"committer A <a@example.org> {1_000_000_000 + number} +0000\ndata 1\nx\n"
        for word, parent in zip(["from", *["merge"] * len(line.parents)], line.parents, strict=False):
            yield f"{word} :{parent + 1}\n"
        if number == 0:
            yield "".join(
                f"M 100644 inline {name}\ndata 0\n" for name in ("Makefile", "Kbuild", "kernel/fork.c")
            )
        elif not line.parents:
            yield "M 100644 inline fs/btrfs/Makefile\ndata 0\n"
        yield "\n"
        for tag in line.tags:
            yield f"reset refs/tags/{tag}\nfrom :{number + 1}\n\n"


def import_into(target: Path, lines: Iterable[Line]) -> Path:
    subprocess.run(["git", "init", "--quiet", "--bare", str(target)], check=True)
    command = ["git", "-C", str(target), "fast-import", "--quiet"]
    subprocess.run(command, input="".join(stream(lines)), text=True, check=True)
    return target


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["synthetic", "real"])
def test_a_large_range(kind: str, tmp_path: Path) -> None:
    named = os.environ.get("KERNEL_HISTORY")
    if kind == "real" and not named:
        pytest.skip("KERNEL_HISTORY names no file with a real history")
    lines = synthetic() if kind == "synthetic" else real(Path(str(named)))
    good, bad = ("good", "bad") if kind == "synthetic" else ("v2.6.18", "v2.6.30")
    repository = import_into(tmp_path / "large.git", lines)
    began = time.monotonic()
    source = GitSource(repository, tmp_path / "graphs")
    graph = source.graph(source.resolve(good), source.resolve(bad))
    first = time.monotonic() - began
    assert sum(graph.candidate) == COMMITS
    assert len(graph.untestable) == FOREIGN
    assert not graph.merge_bases
    if kind == "real":
        assert max(map(len, graph.parents)) == 30
    assert all(parent < child for child, above in enumerate(graph.parents) for parent in above)
    listed = source_edges(repository, good, bad)
    assert {
        (graph.shas[child], graph.shas[parent])
        for child, above in enumerate(graph.parents)
        for parent in above
    } == listed
    began = time.monotonic()
    again = GitSource(repository, tmp_path / "graphs")
    assert again.graph(again.resolve(good), again.resolve(bad)) == graph
    second = time.monotonic() - began
    print(f"{kind}: first {first:.1f} s, from the cache {second:.1f} s")


def source_edges(repository: Path, good: str, bad: str) -> set[tuple[str, str]]:
    command = ["git", "-C", str(repository), "rev-list", "--parents", f"{good}..{bad}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {(child, parent) for child, *above in rows for parent in above}

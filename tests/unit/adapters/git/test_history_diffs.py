"""What the commits of a range change, read from a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git import history_diffs
from bisector.adapters.git.history_diffs import HistoryDiffs
from bisector.code_ports import ChangedCode
from tests.support.toy_kernel import ToyHistory


def test_each_commit_comes_with_its_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_diffs, "_COMMITS_AT_ONCE", 2)
    history = ToyHistory.create(tmp_path / "repo")
    body = "int first(int x)\n{\n\treturn x;\n}\n\nint second(int x)\n{\n\treturn x;\n}\n"
    new = history.commit({"kernel/two.c": body}, "two functions")
    second = history.commit({"kernel/two.c": body[:-12] + "\treturn x + 1;\n}\n"}, "the second one")
    header = history.commit({"include/any.h": "#define ANY 1\n"}, "a header")
    port: ChangedCode = HistoryDiffs(history.path)
    found = [(one.sha, one.functions, one.anything) for one in port.of([second, header, new])]
    assert found == [
        (second, {"second"}, frozenset()),
        (header, frozenset(), {"include/any.h"}),
        (new, {"first", "second"}, frozenset()),
    ]


def test_a_merge_has_what_none_of_its_parents_has(tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    body = "int first(int x)\n{\n\treturn x;\n}\n\nint second(int x)\n{\n\treturn x;\n}\n"
    history.commit({"kernel/two.c": body}, "two functions")
    history.git("switch", "--quiet", "-c", "side")
    branch = history.commit({"kernel/two.c": body.replace("x;", "x + 1;")}, "both, on a branch")
    history.git("switch", "--quiet", "-")
    other = history.commit({"kernel/two.c": body[:-12] + "\treturn x + 2;\n}\n"}, "the second one")
    tree = history.commit(
        {"kernel/two.c": body.replace("x;", "x + 1;", 1)[:-12] + "\treturn x + 3;\n}\n"}, "its tree"
    )
    merged = history.git("commit-tree", "-p", other, "-p", branch, "-m", "Merge", f"{tree}^{{tree}}").strip()
    changed = HistoryDiffs(history.path)
    found = {one.sha: one.functions for one in changed.of([merged, branch, other])}
    assert found == {merged: {"second"}, branch: {"first", "second"}, other: {"second"}}

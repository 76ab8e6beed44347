"""What commits change, as `git log --name-status` tells it, and that a damaged cache is read anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.changed_paths import parse_log, read_changes, unknown_paths
from bisector.errors import InfrastructureError
from bisector.linux.relevance import Change
from tests.support.small_git import SmallGit


def test_each_status_is_read_and_a_type_change_counts_as_added() -> None:
    log = "\0one\n\nA\tnew.c\nM\tMakefile\nD\told name.c\nT\tlink\n\0two\n\0three\n\nM\tMakefile\n"
    found = parse_log(log)
    assert found == {
        "one": (
            Change("new.c", added=True),
            Change("Makefile", added=False),
            Change("old name.c", added=False),
            Change("link", added=True),
        ),
        "two": (),
        "three": (Change("Makefile", added=False),),
    }
    assert found["one"][1] is found["three"][0], "equal changes are one object"
    assert parse_log("") == {}


def test_the_user_s_configuration_hides_no_change(tmp_path: Path) -> None:
    """In a folder of the repository all commits that change nothing there could have been no culprits."""
    small = SmallGit(tmp_path / "linux").make("a\nb: a | fs/x mm/y\nr\nm: b r\n")
    small.git("config", "diff.relative", "true")
    small.git("config", "log.showRoot", "false")
    found = read_changes(small.path / "fs", small.ids["a"], small.ids["m"])
    assert [change.path for change in found[small.ids["b"]]] == ["fs/x", "mm/y"]
    assert "Makefile" in {change.path for change in found[small.ids["r"]]}


def test_the_answer_is_cached_for_these_ends_and_read_anew_when_it_is_damaged(tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "linux").make("a\nb: a | fs/x mm/ü\nc: a | net/y\nm: b c\nd: m\n")
    ids, cache = small.ids, tmp_path / "cache"
    found = read_changes(small.path, ids["a"], ids["d"], cache)
    assert set(found) == {ids["b"], ids["c"], ids["d"]}, "merges are left out"
    assert {change.path for change in found[ids["b"]]} == {"fs/x", "mm/ü"}
    (file,) = cache.iterdir()
    (small.path / ".git").rename(tmp_path / "away")
    assert read_changes(small.path, ids["a"], ids["d"], cache) == found
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(InfrastructureError, match="git cannot read"):
        read_changes(small.path, ids["a"], ids["d"], cache)
    (tmp_path / "away").rename(small.path / ".git")
    assert read_changes(small.path, ids["a"], ids["d"], cache) == found
    assert read_changes(small.path, ids["b"], ids["d"], cache).keys() == {ids["c"], ids["d"]}


def test_an_answer_that_cannot_be_kept_is_given_all_the_same(tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "linux").make("a\nb: a\n")
    (tmp_path / "file").write_text("no folder")
    assert read_changes(small.path, small.ids["a"], small.ids["b"], tmp_path / "file" / "cache")


def test_a_path_is_known_at_the_end_or_where_a_commit_touched_it(tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "linux").make("a\nb: a | fs/x mm/ü\nc: b | net/y\n")
    asked = ["fs/x", "fs/", "fs", "mm/ü", "net/", "fs/x/", "f", "*", "x", "none/", ":(exclude)fs", ":/"]
    unknown = ["fs/x/", "f", "*", "x", "none/", ":(exclude)fs", ":/"]
    assert [*unknown_paths(small.path, small.ids["a"], small.ids["c"], asked)] == unknown
    below = small.path / "net"
    assert [*unknown_paths(below, small.ids["a"], small.ids["c"], asked)] == unknown, "paths are the tree's"
    first = next(unknown_paths(small.path, small.ids["a"], small.ids["c"], asked))
    assert first == "fs/x/", "one at a time: each costs a walk over the range"

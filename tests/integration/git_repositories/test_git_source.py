"""GitSource on small, awkward, real histories; the oracle is git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.git.repository import GitResult, Repository
from bisector.adapters.git.source import GitSource
from bisector.errors import InfrastructureError, RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.dag import CommitDag
from tests.support.small_git import SmallGit

LINEAR = "a\nb: a\nc: b\nd: c\n"

HISTORIES = {
    "linear": (LINEAR, "a", "d"),
    "one commit": ("a\nb: a\n", "a", "b"),
    "merge": ("a\nb: a\nc: a\nm: b c\nd: m\n", "a", "d"),
    "octopus": (
        "a\n" + "".join(f"x{i}: a\n" for i in range(30)) + "m: " + " ".join(f"x{i}" for i in range(30)),
        "a",
        "m",
    ),
    "criss-cross": ("a\nb: a\nc: a\nx: b c\ny: c b\nm: x y\n", "b", "m"),
    "forked before good": ("o\ng: o\nf: o\nh: f\nm: g h\nd: m\n", "g", "d"),
    "two fork points": ("o\np: o\ng: p\nf: o\nh: p\nm: g f\nn: m h\n", "g", "n"),
    "good beside bad": ("o\np: o\ng: p\nb: p\nd: b\n", "g", "d"),
    "two merge bases": ("o\nb: o\nc: o\ng: b c\nx: c b\nd: x\n", "g", "d"),
    "own root merged": ("o\ng: o\nr | other.c\ns: r\nm: g s\nd: m\n", "g", "d"),
    "good merged late": ("o\nx: o\ny: x\ng: o\nm: y g\nd: m\n", "g", "d"),
}


def graph_of(
    small: SmallGit, text: str, good: str, bad: str, **options: object
) -> tuple[GitSource, CommitGraph]:
    small.make(text)
    source = GitSource(small.path)
    return source, source.graph(source.resolve(good), source.resolve(bad), **options)  # type: ignore[arg-type]


def names(small: SmallGit, graph: CommitGraph, which: list[int] | None = None) -> set[str]:
    chosen = which if which is not None else [i for i, yes in enumerate(graph.candidate) if yes]
    return {small.name(graph.shas[i]) for i in chosen}


def well_formed(graph: CommitGraph) -> None:
    assert len(set(graph.shas)) == len(graph.shas) == len(graph.parents) == len(graph.candidate)
    for commit, above in enumerate(graph.parents):
        assert all(parent < commit for parent in above)
        assert len(set(above)) == len(above)
        assert graph.candidate[commit] or not above
    assert graph.candidate[graph.bad]
    assert not graph.candidate[graph.good]


@pytest.mark.parametrize("case", HISTORIES)
def test_the_candidates_and_their_ancestors_are_those_of_git(small: SmallGit, case: str) -> None:
    text, good, bad = HISTORIES[case]
    _, graph = graph_of(small, text, good, bad)
    well_formed(graph)
    assert names(small, graph) == {small.name(s) for s in small.git("rev-list", f"{good}..{bad}").split()}
    history = CommitDag(graph)
    inside = [i for i, yes in enumerate(graph.candidate) if yes]
    for a in inside:
        for b in inside:
            asked = [
                "git",
                "-C",
                str(small.path),
                "merge-base",
                "--is-ancestor",
                graph.shas[a],
                graph.shas[b],
            ]
            assert history.is_ancestor(a, b) == (subprocess.run(asked, check=False).returncode == 0)


@pytest.mark.parametrize("case", HISTORIES)
def test_the_boundary_is_good_fork_points_and_merge_bases(small: SmallGit, case: str) -> None:
    text, good, bad = HISTORIES[case]
    _, graph = graph_of(small, text, good, bad)
    outside = names(small, graph, [i for i, yes in enumerate(graph.candidate) if not yes])
    listed = small.git("rev-list", "--boundary", f"{good}..{bad}").split()
    known = {small.name(s[1:]) for s in listed if s.startswith("-")}
    bases = {small.name(s) for s in small.git("merge-base", "--all", good, bad).split()} - {good}
    assert outside == known | bases | {good}
    assert names(small, graph, list(graph.merge_bases)) == bases


def test_a_history_with_a_root_of_its_own_cannot_be_tested(small: SmallGit) -> None:
    _, graph = graph_of(small, *HISTORIES["own root merged"])
    assert names(small, graph, list(graph.untestable)) == {"r", "s"}
    assert set(graph.untestable.values()) == {"not a Linux tree"}


def test_a_second_root_that_is_linux_can_be_tested(small: SmallGit) -> None:
    _, graph = graph_of(small, "o\ng: o\nr\nm: g r\n", "g", "m")
    assert not graph.untestable


def test_the_ids_are_git_s_and_a_repository_is_found_from_a_folder_in_it(small: SmallGit) -> None:
    small.make(LINEAR)
    source = GitSource(small.path / "kernel")
    assert source.path == small.path
    assert source.resolve("main~1") == source.resolve("c") == small.ids["c"]
    assert source.resolve(small.ids["c"][:12]) == small.ids["c"]


def test_what_people_read_about_a_commit(small: SmallGit) -> None:
    small.make(LINEAR)
    info = GitSource(small.path).infos([small.ids["c"]], described=[small.ids["c"]])[0]
    assert (info.sha, info.subject, info.author) == (
        small.ids["c"],
        "change c",
        "Ann Author <ann@example.org>",
    )
    assert (info.when, info.describe) == (1_000_000_003.0, "c")
    assert GitSource(small.path).infos([small.ids["c"]])[0].describe == ""


# --- what the user may leave out ----------------------------------------------------------------------------


def test_first_parent_keeps_the_main_line(small: SmallGit) -> None:
    _, graph = graph_of(small, "a\nb: a\nx: a\ny: x\nm: b y\nd: m\n", "a", "d", first_parent=True)
    well_formed(graph)
    assert names(small, graph) == {"b", "m", "d"}
    assert all(len(above) <= 1 for above in graph.parents)


def test_first_parent_with_good_on_a_side_branch_still_knows_who_contains_good(small: SmallGit) -> None:
    text, good, bad = HISTORIES["good merged late"]
    _, graph = graph_of(small, text, good, bad, first_parent=True)
    well_formed(graph)
    assert names(small, graph) == {"x", "y", "m", "d"}
    history = CommitDag(graph)
    above_good = {small.name(s) for i, s in enumerate(graph.shas) if history.is_ancestor(graph.good, i)}
    assert above_good == {"g", "m", "d"}


def test_paths_leave_only_commits_that_touch_them_still_in_one_history(small: SmallGit) -> None:
    text = "a | Makefile Kbuild fs/x mm/x\nb: a | fs/x\nc: b | mm/x\nd: c | fs/y\ne: d | mm/y\nf: e | fs/x\n"
    _, graph = graph_of(small, text, "a", "f", paths=["fs"])
    well_formed(graph)
    assert names(small, graph) == {"b", "d", "f"}
    assert CommitDag(graph).ancestors(graph.bad).all()


def test_a_bad_end_that_touches_no_path_stays_but_is_hardly_the_culprit(small: SmallGit) -> None:
    text = "a | Makefile Kbuild fs/x mm/x\nb: a | fs/x\nx: a | fs/z\nm: b x\nc: m | mm/x\n"
    _, graph = graph_of(small, text, "a", "c", paths=["fs"])
    well_formed(graph)
    assert {"b", "x", "c"} <= names(small, graph)
    assert graph.weights[graph.bad] < 1e-3
    assert CommitDag(graph).ancestors(graph.bad).all()


def test_paths_never_lose_the_way_to_good(small: SmallGit) -> None:
    # git simplifies g's side away: x and g made the same change to fs.
    small.make(
        "o | Makefile Kbuild fs/x mm/x\np: o | mm/x\ng: o | mm/y\nx: p | fs/x\nm: x g | mm/z\nd: m | fs/q\n"
    )
    source = GitSource(small.path)
    graph = source.graph(small.ids["g"], small.ids["d"], paths=["fs"])
    well_formed(graph)
    assert names(small, graph) == {"x", "d"}
    history = CommitDag(graph)
    assert history.is_ancestor(graph.good, graph.bad)
    assert not history.is_ancestor(graph.good, graph.shas.index(small.ids["x"]))


def test_skipped_commits_are_marked_one_or_a_range(small: SmallGit) -> None:
    _, graph = graph_of(small, "a\nb: a\nc: b\nd: c\ne: d\nf: e\n", "a", "f", skip=["b", "c..e"])
    assert names(small, graph, list(graph.untestable)) == {"b", "d", "e"}
    assert all("--skip" in reason for reason in graph.untestable.values())


# --- what cannot be searched --------------------------------------------------------------------------------


def refused(source: GitSource, good: str, bad: str, **options: object) -> RequestError:
    with pytest.raises(RequestError) as caught:
        source.graph(source.resolve(good), source.resolve(bad), **options)  # type: ignore[arg-type]
    assert caught.value.exit_code == 1
    return caught.value


def test_equal_ends(small: SmallGit) -> None:
    small.make(LINEAR)
    assert "same commit" in refused(GitSource(small.path), "b", "b").message


def test_swapped_ends_say_so_and_how_to_swap(small: SmallGit) -> None:
    small.make(LINEAR)
    error = refused(GitSource(small.path), "d", "b")
    assert "swapped" in error.message
    assert f"--good {small.ids['b'][:12]} --bad {small.ids['d'][:12]}" in error.cure


def test_unrelated_ends(small: SmallGit) -> None:
    small.make("a\nb: a\nr\ns: r\n")
    assert "no common ancestor" in refused(GitSource(small.path), "b", "s").message


def test_paths_that_nothing_touches(small: SmallGit) -> None:
    small.make(LINEAR)
    assert (
        "touches kernel/nowhere" in refused(GitSource(small.path), "a", "d", paths=["kernel/nowhere"]).message
    )


@pytest.mark.parametrize(
    ("skip", "words"),
    [
        ("d", "bad end"),
        ("a", "good end"),
        ("b..d", "bad end"),
        ("b...d", "two dots"),
        ("nothing", "names no commit"),
    ],
)
def test_skips_that_cannot_be(small: SmallGit, skip: str, words: str) -> None:
    small.make(LINEAR)
    assert words in refused(GitSource(small.path), "a", "d", skip=[skip]).message


@pytest.mark.parametrize("rev", ["", "--all", "nowhere", "a:Makefile", "a^{tree}", "deadbeef", "a..b"])
def test_what_names_no_commit(small: SmallGit, rev: str) -> None:
    small.make(LINEAR)
    with pytest.raises(RequestError) as caught:
        GitSource(small.path).resolve(rev)
    assert f"'{rev}'" in caught.value.message


def test_a_tag_of_a_file_is_told_as_one(small: SmallGit) -> None:
    small.make(LINEAR)
    small.git("tag", "key", small.git("hash-object", "-w", "--stdin", stdin="a key").strip())
    with pytest.raises(RequestError, match="'key' names a file or folder, no commit"):
        GitSource(small.path).resolve("key")


def test_a_misspelt_tag_is_answered_with_the_nearest(small: SmallGit) -> None:
    small.make(LINEAR)
    small.git("tag", "v6.1-rc4", "b")
    with pytest.raises(RequestError, match=r"did you mean 'v6\.1-rc4'\?"):
        GitSource(small.path).resolve("v6.1rc4")


def test_too_short_an_id_shows_what_it_may_mean(small: SmallGit) -> None:
    small.make("a\n" + "".join(f"x{i}: {'a' if i == 0 else f'x{i - 1}'}\n" for i in range(600)))
    beginnings: dict[str, list[str]] = {}
    for sha in small.ids.values():
        beginnings.setdefault(sha[:4], []).append(sha)
    short, several = next((k, v) for k, v in beginnings.items() if len(v) > 1)
    with pytest.raises(RequestError, match="several ids") as caught:
        GitSource(small.path).resolve(short)
    assert set(several) <= set(caught.value.details.split())


def test_no_folder_no_repository_and_one_without_commits(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no folder"):
        GitSource(tmp_path / "nowhere")
    with pytest.raises(RequestError, match="not in a git repository"):
        GitSource(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "empty")], check=True)
    with pytest.raises(RequestError, match="'HEAD' names no commit"):
        GitSource(tmp_path / "empty").resolve("HEAD")


def test_a_shallow_clone_is_refused_only_where_it_cuts_the_range(small: SmallGit, tmp_path: Path) -> None:
    small.make("a\nb: a\nc: b\nd: c\ne: d\n")
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=3", f"file://{small.path}", str(clone)]
    subprocess.run(command, check=True)
    source = GitSource(clone)
    assert sum(source.graph(source.resolve("c"), source.resolve("e")).candidate) == 2
    with pytest.raises(RequestError, match="the clone is shallow"):
        source.resolve("a")
    subprocess.run(
        ["git", "-C", str(clone), "fetch", "--quiet", "--depth=1", "origin", "tag", "a"], check=True
    )
    error = refused(source, "a", "e")
    assert "shallow clone" in error.message
    assert "--unshallow" in error.cure


def test_a_broken_repository_is_no_wrong_request(small: SmallGit) -> None:
    small.make(LINEAR)
    lost = small.ids["c"]
    (small.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(InfrastructureError, match="git cannot read"):
        GitSource(small.path).graph(small.ids["a"], small.ids["d"])


# --- the user's own things ----------------------------------------------------------------------------------


def test_a_dirty_tree_is_noted_and_left_alone(small: SmallGit) -> None:
    small.make(LINEAR)
    source = GitSource(small.path)
    assert source.notes() == ()
    (small.path / "b").write_text("not committed\n")
    (small.path / "new").write_text("not even added\n")
    before = {p: p.stat().st_mtime_ns for p in small.path.rglob("*") if p.is_file()}
    assert "1 uncommitted" in source.notes()[0]
    source.graph(source.resolve("a"), source.resolve("d"))
    assert {p: p.stat().st_mtime_ns for p in small.path.rglob("*") if p.is_file()} == before


def test_a_hook_s_environment_does_not_lead_elsewhere(
    small: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.make(LINEAR)
    other = SmallGit(tmp_path / "other").make("z\n")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    source = GitSource(small.path)
    assert source.resolve("b") == small.ids["b"]
    assert source.infos([small.ids["b"]])[0].subject == "change b"


def test_linked_worktrees_and_bare_repositories(small: SmallGit, tmp_path: Path) -> None:
    small.make(LINEAR)
    small.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), "b")
    subprocess.run(
        ["git", "clone", "--quiet", "--bare", str(small.path), str(tmp_path / "bare.git")], check=True
    )
    for path in (tmp_path / "linked", tmp_path / "bare.git"):
        source = GitSource(path)
        graph = source.graph(source.resolve("a"), source.resolve("d"))
        assert names(small, graph) == {"b", "c", "d"}
        assert source.notes() == ()


# --- the kept graph -----------------------------------------------------------------------------------------


def test_a_kept_graph_is_the_same_and_a_damaged_one_is_made_again(
    small: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bisector.adapters.git.source._CACHED_CANDIDATES_MIN", 2)
    text, good, bad = HISTORIES["own root merged"]
    small.make(text)
    kept = tmp_path / "graphs"
    first = GitSource(small.path, kept).graph(small.ids[good], small.ids[bad])
    (file,) = kept.iterdir()
    assert GitSource(small.path, kept).graph(small.ids[good], small.ids[bad]) == first
    other = GitSource(small.path, kept).graph(small.ids[good], small.ids[bad], first_parent=True)
    assert names(small, other) == {"m", "d"}
    assert len(list(kept.iterdir())) == 2
    file.write_bytes(file.read_bytes()[:40])
    assert GitSource(small.path, kept).graph(small.ids[good], small.ids[bad]) == first


def test_a_kept_graph_is_read_without_walking_the_history(
    small: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bisector.adapters.git.source._CACHED_CANDIDATES_MIN", 1)
    small.make(LINEAR)
    asked: list[str] = []
    run = Repository.run

    def noted(self: Repository, *words: str, **options: Any) -> GitResult:
        asked.append(words[0])
        return run(self, *words, **options)

    monkeypatch.setattr(Repository, "run", noted)
    source = GitSource(small.path, tmp_path / "graphs")
    source.graph(small.ids["a"], small.ids["d"])
    assert "rev-list" in asked
    assert "merge-base" not in asked, "the list says that a is an ancestor of d"
    asked.clear()
    source.graph(small.ids["a"], small.ids["d"])
    assert {"rev-list", "merge-base", "cat-file"}.isdisjoint(asked)


@pytest.mark.parametrize("how", ["replace", "graft"])
def test_a_graph_is_not_kept_beyond_a_change_of_the_history_of_its_commits(
    small: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("bisector.adapters.git.source._CACHED_CANDIDATES_MIN", 1)
    small.make(LINEAR)
    source = GitSource(small.path, tmp_path / "graphs")
    assert names(small, source.graph(small.ids["a"], small.ids["d"])) == {"b", "c", "d"}
    if how == "replace":
        small.git("replace", "--graft", "d", "b")
    else:
        grafts = small.path / ".git" / "info" / "grafts"
        grafts.parent.mkdir(exist_ok=True)
        grafts.write_text(f"{small.ids['d']} {small.ids['b']}\n")
    assert names(small, source.graph(small.ids["a"], small.ids["d"])) == {"b", "d"}


def test_skips_are_not_kept(small: SmallGit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bisector.adapters.git.source._CACHED_CANDIDATES_MIN", 1)
    small.make(LINEAR)
    source = GitSource(small.path, tmp_path / "graphs")
    assert source.graph(small.ids["a"], small.ids["d"], skip=["b"]).untestable
    assert not source.graph(small.ids["a"], small.ids["d"]).untestable


def test_an_end_whose_tree_is_lost_is_not_one_without_linux(small: SmallGit) -> None:
    small.make(LINEAR)
    tree = small.git("rev-parse", "d^{tree}").strip()
    (small.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    source = GitSource(small.path)
    assert source.holds_linux(small.ids["a"])
    with pytest.raises(InfrastructureError, match=f"has lost the files of {small.ids['d'][:12]}"):
        source.holds_linux(small.ids["d"])

"""The kernel's git repository; only ever read. The builder checks trees out elsewhere.

Anything over a whole range is one plumbing command; the shape of a large range is kept in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bisector.adapters.git.commit_infos import INFO_FORMAT, parse_infos
from bisector.adapters.git.commit_names import explain_unknown, find_commit, names
from bisector.adapters.git.git_errors import lost_tree
from bisector.adapters.git.graph import assemble_graph, candidates_with_own_root, parse_rev_list
from bisector.adapters.git.repository import Repository, find_repository
from bisector.adapters.git.skips import parse_skip, refuse_empty_range, refuse_skipped_ends
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError, RequestError
from bisector.model.commit_graph import CommitGraph
from bisector.model.format import count
from bisector.model.goal import TERMS, Terms
from bisector.ports import CommitInfo
from bisector.schemas import serialization

_CACHED_CANDIDATES_MIN = 2000
"""Candidates from which on reading the graph from the cache is faster than asking git."""
_DESCRIBE_SECONDS = 10
"""`git describe` walks far in a repository with few tags; its answer is only for show."""
_CACHE_FORMAT = "3"
"""Version of the cached graphs; raised when their format changes, or what is read from git."""
_LINUX_NAMES = ("Makefile", "kernel", "Kbuild")
"""Names at the top of every Linux tree: the first, and one of the others (Kbuild came with v2.6.13)."""


class GitSource:
    """ports.Source for a repository on this machine; `cache_dir` None keeps no graphs."""

    def __init__(self, path: Path, cache_dir: Path | None = None) -> None:
        """Open the repository that holds `path`. Raises RequestError if there is none."""
        found = find_repository(path)
        self.path = found.top
        self._common = found.common
        self._bare = found.bare
        self._repository = Repository(found.top)
        self._cache_dir = cache_dir

    def resolve(self, rev: str) -> str:
        """Return the full id of a commit. Raises what `find_commit` raises."""
        return find_commit(self._repository, rev, shallow=bool(self._shallow_ends()))

    def names(self) -> list[str]:
        """Return the names of tags and branches."""
        return names(self._repository)

    def graph(
        self,
        good: str,
        bad: str,
        *,
        first_parent: bool = False,
        paths: Sequence[str] = (),
        skip: Sequence[str] = (),
        terms: Terms = TERMS["regression"],
    ) -> CommitGraph:
        """Return the history between two commits (full ids), as git bisect would search it.

        good: the older end, bad: the newer one, whatever people call them (`terms`).

        Raises RequestError: equal, swapped or unrelated ends, a shallow clone that cuts the range, nothing
        that touches the paths, a skip that names an end.
        """
        if good == bad:
            raise RequestError(
                "good and bad are the same commit", details=good, cure="name two different commits"
            )
        cached = self._cache_path(good, bad, first_parent, paths)
        graph = _load(cached) if cached is not None else None
        if graph is None:
            graph = self._read_graph(good, bad, first_parent, paths, terms)
            if cached is not None and len(graph.shas) >= _CACHED_CANDIDATES_MIN:
                _save(cached, graph)
        skipped = self._resolve_skips(skip, {terms.old: good, terms.new: bad})
        index = {sha: i for i, sha in enumerate(graph.shas)} if skipped else {}
        reasons = {index[sha]: "skipped by the user (--skip)" for sha in skipped if sha in index}
        return replace(graph, untestable={**graph.untestable, **reasons})

    def infos(self, shas: Sequence[str], *, described: Container[str] = ()) -> list[CommitInfo]:
        """Return what a person needs to recognise commits (full ids). Raises RequestError for an unknown one.

        described: those whose place after a tag is wanted.
        """
        if not shas:
            return []
        options = ("--no-walk=unsorted", "--encoding=UTF-8", f"--format={INFO_FORMAT}", "--end-of-options")
        done = self._repository.run("log", *options, *shas, codes=(0, 128))
        if done.code != 0:
            unknown = next((s for s in shas if self._repository.resolve(s) is None), shas[0])
            raise explain_unknown(self._repository, unknown, shallow=bool(self._shallow_ends()))
        found = parse_infos(done.output, shas)
        for sha in found:
            if sha in described:
                found[sha] = replace(found[sha], describe=self._describe(sha))
        return [found[sha] for sha in shas if sha in found]

    def holds_linux(self, sha: str) -> bool:
        """Return whether a commit's tree is a Linux kernel's: it has Makefile and kernel/ or Kbuild."""
        return self._hold_linux([sha])[0]

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know about the repository: that uncommitted changes are not tested."""
        if self._bare:
            return ()
        changes = 0
        with contextlib.suppress(InfrastructureError):  # a work tree that is gone has no changes
            changes = self._repository.count_uncommitted()
        if not changes:
            return ()
        are = "it is" if changes == 1 else "they are"
        return (f"{self.path} has {count(changes, 'uncommitted change')}; {are} not tested",)

    # --- the range --------------------------------------------------------------------------------------

    def _find_merge_bases(self, good: str, bad: str, terms: Terms) -> tuple[str, ...]:
        """Return the merge bases, none if good is an ancestor of bad; refuse ends that cannot be searched."""
        done = self._repository.run("merge-base", "--all", good, bad, silent_codes=(1,))
        bases = tuple(done.output.split())
        if not bases:
            if self._shallow_ends():
                raise self._refuse_shallow()
            raise RequestError(
                "good and bad have no common ancestor",
                details=f"{terms.old:4} {good}\n{terms.new:4} {bad}",
                cure="name two commits of one history",
            )
        if bad in bases:
            raise _swapped(good, bad, terms)
        return () if good in bases else bases

    def _read_graph(
        self, good: str, bad: str, first_parent: bool, paths: Sequence[str], terms: Terms
    ) -> CommitGraph:
        options = ["--topo-order", "--reverse", "--parents", *(["--first-parent"] if first_parent else [])]
        lines = self._repository.run("rev-list", *options, bad, f"^{good}", "--", *paths).output
        parents = parse_rev_list(lines, first_parent=first_parent)
        # To ask for merge bases takes git as long as the list: a good end that is a parent of a candidate is
        # an ancestor of the bad one.
        is_parent = any(good in above for above in parents.values())
        bases = () if is_parent else self._find_merge_bases(good, bad, terms)
        if not parents:
            raise RequestError(
                f"no commit between good and bad touches {', '.join(paths)}", cure="check the paths after --"
            )
        if not self._shallow_ends().isdisjoint(parents):
            raise self._refuse_shallow()
        above: dict[str, set[str]] = {}
        if first_parent or paths:
            for end in bases or (good,):
                between = self._repository.run("rev-list", "--ancestry-path", bad, f"^{end}")
                above[end] = set(between.output.split())
        graph = assemble_graph(parents, good, bad, bases, above)
        return replace(graph, untestable=dict.fromkeys(self._find_foreign_commits(graph), "not a Linux tree"))

    def _find_foreign_commits(self, graph: CommitGraph) -> list[int]:
        """Return the commits whose tree is no Linux: whole histories merged in, with a root of their own.

        Only they can be such; whatever has the boundary among its ancestors has Linux's history.
        """
        suspects = candidates_with_own_root(graph)
        linux = self._hold_linux([graph.shas[n] for n in suspects]) if suspects else []
        return [n for n, is_linux in zip(suspects, linux, strict=True) if not is_linux]

    def _hold_linux(self, shas: Sequence[str]) -> list[bool]:
        """Return for each commit whether its tree has the first of `_LINUX_NAMES` and one of the others.

        Raises InfrastructureError where a tree itself is lost: it is not known what it holds.
        """
        asked = [f"{sha}{of}" for sha in shas for of in ("^{tree}", *(f":{name}" for name in _LINUX_NAMES))]
        stdin = "".join(f"{one}\n" for one in asked)
        lines = self._repository.run("cat-file", "--batch-check=%(objecttype)", stdin=stdin).output
        there = [not line.endswith("missing") for line in lines.splitlines()]
        if len(there) != len(asked):
            raise InfrastructureError("git did not tell of every file that was asked for", cure="git fsck")
        width = 1 + len(_LINUX_NAMES)
        rows = [there[i : i + width] for i in range(0, len(there), width)]
        lost = [sha for sha, (is_there, *_) in zip(shas, rows, strict=True) if not is_there]
        if lost:
            raise lost_tree(self.path, lost[0])
        return [makefile and any(others) for _, makefile, *others in rows]

    def _resolve_skips(self, skip: Sequence[str], ends: Mapping[str, str]) -> set[str]:
        shas: set[str] = set()
        for first, last in map(parse_skip, skip):
            if first:
                between = (f"^{self.resolve(first)}", self.resolve(last))
                found = self._repository.run("rev-list", *between).output.split()
                refuse_empty_range(found, first, last)
                shas.update(found)
            else:
                shas.add(self.resolve(last))
        refuse_skipped_ends(shas, ends, "commit")
        return shas

    # --- small parts ------------------------------------------------------------------------------------

    def _describe(self, sha: str) -> str:
        with contextlib.suppress(InfrastructureError):  # no tag before it, or the deadline
            return self._repository.run("describe", "--tags", sha, timeout=_DESCRIBE_SECONDS).output.strip()
        return ""

    def _shallow_ends(self) -> frozenset[str]:
        """Return the commits at which a shallow clone ends; none for a whole one."""
        return frozenset(_read_if_any(self._common / "shallow").split())

    def _refuse_shallow(self) -> RequestError:
        return RequestError(
            f"{self.path} is a shallow clone that does not hold the whole range",
            cure=f"git -C {self.path} fetch --unshallow --tags",
        )

    def _history_changes(self) -> list[str]:
        """Return what gives one commit another history: replaced objects, grafts, shallow ends."""
        format_ = "--format=%(refname) %(objectname)"
        replaced = self._repository.run("for-each-ref", format_, "refs/replace").output
        return [replaced, _read_if_any(self._common / "info" / "grafts"), *sorted(self._shallow_ends())]

    def _cache_path(self, good: str, bad: str, first_parent: bool, paths: Sequence[str]) -> Path | None:
        if self._cache_dir is None:
            return None
        asked = [good, bad, first_parent, list(paths)]
        name = json.dumps([_CACHE_FORMAT, str(self._common), *asked, *self._history_changes()])
        return self._cache_dir / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.graph"


def _swapped(old: str, new: str, terms: Terms) -> RequestError:
    """Return the error for ends in the wrong order, with a cure for each of the two mistakes it can be."""
    exchanged = f"--{terms.old} {new[:12]} --{terms.new} {old[:12]}"
    if terms is TERMS["regression"]:
        return RequestError(
            "bad is an ancestor of good: the ends look swapped",
            cure=f"{exchanged}; or, to find the commit that made it better: --find fix, with the ends as "
            "they are",
        )
    return RequestError(
        "good is an ancestor of bad: a fix is looked for from bad, the older end, to good",
        cure=f"{exchanged}; or, to find the commit that made it worse: leave --find fix out",
    )


def _read_if_any(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise InfrastructureError(
            f"cannot read {path}: {error.strerror}", cure="mend the rights of the repository's files"
        ) from error


def _load(path: Path) -> CommitGraph | None:
    try:
        return serialization.unpack_graph(path.read_bytes())
    except (OSError, ValueError):  # absent or damaged
        return None


def _save(path: Path, graph: CommitGraph) -> None:
    """Keep a graph for the next time; where it cannot be kept, the next time is slower, no more."""
    with contextlib.suppress(InfrastructureError):
        write_atomically(path, serialization.pack_graph(graph))

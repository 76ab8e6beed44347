"""The kernel's git repository through GitPython; only ever read. The builder checks trees out elsewhere.

Anything over a whole range is one plumbing command; the shape of a large range is kept in the cache.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import git

from bisector.core.model import CommitGraph
from bisector.errors import InfrastructureError, RequestError
from bisector.ports import CommitInfo
from bisector.spec import serial
from bisector.spec.base import nearest

_WORTH_KEEPING = 2000
"""Candidates from which on reading the graph from the cache is faster than asking git."""
_UNLIKELY = 1e-6
"""Prior weight of a bad end that touches none of the paths asked for: in the graph, hardly the culprit."""
_DESCRIBE_SECONDS = 10
"""`git describe` walks far in a repository with few tags; its answer is only for show."""
_FORMAT = "1"
"""Of the kept graphs; raised when what they hold changes."""


class GitSource:
    """ports.Source for a repository on this machine; `cache_dir` None keeps no graphs."""

    def __init__(self, path: Path, cache_dir: Path | None = None) -> None:
        """Open the repository that holds `path`. Raises RequestError if there is none."""
        try:
            self._repo = git.Repo(path, search_parent_directories=True)
        except git.NoSuchPathError as error:
            raise RequestError(f"there is no folder {path}", cure="name a kernel tree with --repo") from error
        except git.InvalidGitRepositoryError as error:
            raise RequestError(
                f"{path} is not in a git repository", cure="name a kernel tree with --repo"
            ) from error
        self.path = Path(self._repo.working_tree_dir or self._repo.git_dir)
        self._cache_dir = cache_dir

    def resolve(self, rev: str) -> str:
        """Return the full id of a commit. Raises RequestError naming near misses."""
        if not rev or rev.startswith("-"):
            raise RequestError(f"'{rev}' is not the name of a commit")
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}").strip()
        except git.GitCommandError as error:
            names = self._git("for-each-ref", "--format=%(refname:short)", "refs/tags", "refs/heads").split()
            shallow = " (the clone is shallow)" if self._shallow() else ""
            raise RequestError(
                f"'{rev}' names no commit in {self.path}{shallow}{nearest(rev, names)}",
                cure="'git tag' and 'git log' there show what exists; 'git fetch --tags' may bring it",
            ) from error

    def graph(
        self,
        good: str,
        bad: str,
        *,
        first_parent: bool = False,
        paths: Sequence[str] = (),
        skip: Sequence[str] = (),
    ) -> CommitGraph:
        """Return the history between two commits (full ids), as git bisect would search it.

        Raises RequestError: equal, swapped or unrelated ends, a shallow clone that cuts the range, nothing
        that touches the paths, a skip that names an end.
        """
        bases = self._merge_bases(good, bad)
        skipped = self._skipped(skip, good, bad)
        kept = self._kept(good, bad, first_parent, paths)
        if kept is not None and kept.exists():
            shape = _load(kept)
        else:
            shape = self._shape(good, bad, bases, first_parent, paths)
            if kept is not None and len(shape.shas) >= _WORTH_KEEPING:
                _save(kept, shape)
        index = {sha: i for i, sha in enumerate(shape.shas)} if skipped else {}
        reasons = {index[sha]: "skipped by the user (--skip)" for sha in skipped if sha in index}
        return CommitGraph(
            shas=shape.shas,
            parents=shape.parents,
            candidate=shape.candidate,
            good=shape.good,
            bad=shape.bad,
            merge_bases=shape.merge_bases,
            untestable={**shape.untestable, **reasons},
            weights=shape.weights,
        )

    def info(self, sha: str) -> CommitInfo:
        """Return what a person needs to recognise the commit."""
        commit = self._repo.commit(sha)
        summary = commit.summary if isinstance(commit.summary, str) else commit.summary.decode()
        author = f"{commit.author.name} <{commit.author.email}>"
        return CommitInfo(commit.hexsha, summary, author, float(commit.authored_date), self._describe(sha))

    def tags_containing(self, sha: str, names: Sequence[str]) -> frozenset[str]:
        """Return those of the named tags that are reachable from the commit."""
        merged = self._git("for-each-ref", f"--merged={sha}", "--format=%(refname:short)", "refs/tags")
        return frozenset(merged.split()) & frozenset(names)

    # --- the range --------------------------------------------------------------------------------------

    def _merge_bases(self, good: str, bad: str) -> tuple[str, ...]:
        """Return the merge bases, none if good is an ancestor of bad; refuse ends that cannot be searched."""
        if good == bad:
            raise RequestError(
                "good and bad are the same commit", details=good, cure="name two different commits"
            )
        try:
            bases = tuple(self._git("merge-base", "--all", good, bad).split())
        except git.GitCommandError as error:
            if error.status != 1:
                raise _trouble(error) from error
            if self._shallow():
                raise self._cut() from error
            raise RequestError(
                "good and bad have no common ancestor", details=f"good {good}\nbad  {bad}"
            ) from error
        if bad in bases:
            raise RequestError(
                "bad is an ancestor of good: the ends look swapped",
                cure=f"--good {bad[:12]} --bad {good[:12]}; to find where something became faster, swap them "
                "too and turn the metric's direction",
            )
        return () if good in bases else bases

    def _shape(
        self, good: str, bad: str, bases: tuple[str, ...], first_parent: bool, paths: Sequence[str]
    ) -> CommitGraph:
        options = ["--topo-order", "--reverse", "--parents", *(["--first-parent"] if first_parent else [])]
        listing = self._git("rev-list", *options, bad, f"^{good}", "--", *paths)
        order: list[str] = []
        parents: dict[str, list[str]] = {}
        for line in listing.splitlines():
            sha, *above = line.split()
            order.append(sha)
            parents[sha] = above[:1] if first_parent else above
        if not order:
            raise RequestError(
                f"no commit between good and bad touches {', '.join(paths)}", cure="check the paths after --"
            )
        if self._shallow() and any(not parents[sha] for sha in order):
            raise self._cut()
        weights: dict[int, float] = {}
        if bad not in parents:  # it touches none of the paths
            inner = {parent for above in parents.values() for parent in above}
            parents[bad] = [sha for sha in order if sha not in inner]
            order.append(bad)
        outside: dict[str, None] = dict.fromkeys((good, *bases))
        for sha in order:
            outside.update((parent, None) for parent in parents[sha] if parent not in parents)
        nodes = [*outside, *order]
        index = {sha: number for number, sha in enumerate(nodes)}
        if paths and parents[bad] and not self._touches(bad, paths):
            weights[index[bad]] = _UNLIKELY
        graph = CommitGraph(
            shas=tuple(nodes),
            parents=((),) * len(outside) + tuple(tuple(index[p] for p in parents[sha]) for sha in order),
            candidate=(False,) * len(outside) + (True,) * len(order),
            good=index[good],
            bad=index[bad],
            merge_bases=tuple(index[base] for base in bases),
            weights=weights,
        )
        foreign = self._foreign(graph)
        return CommitGraph(
            shas=graph.shas,
            parents=graph.parents,
            candidate=graph.candidate,
            good=graph.good,
            bad=graph.bad,
            merge_bases=graph.merge_bases,
            untestable=dict.fromkeys(foreign, "not a Linux tree"),
            weights=weights,
        )

    def _foreign(self, graph: CommitGraph) -> list[int]:
        """Return the commits whose tree is no Linux: whole histories merged in, with a root of their own.

        Only commits that have no boundary among their ancestors can be such; the rest has Linux's history.
        """
        rooted = [not candidate for candidate in graph.candidate]
        for number, above in enumerate(graph.parents):
            rooted[number] = rooted[number] or any(rooted[p] for p in above)
        alone = [number for number, linux in enumerate(rooted) if not linux]
        if not alone:
            return []
        wanted = "".join(
            f"{graph.shas[n]}:{name}\n" for n in alone for name in ("Makefile", "kernel", "Kbuild")
        )
        answer = self._git("cat-file", "--batch-check=%(objecttype)", stdin=wanted).splitlines()
        found = [not line.endswith("missing") for line in answer]
        return [n for i, n in enumerate(alone) if not (found[3 * i] and any(found[3 * i + 1 : 3 * i + 3]))]

    def _skipped(self, skip: Sequence[str], good: str, bad: str) -> set[str]:
        shas: set[str] = set()
        for text in skip:
            if ".." in text:
                first, _, last = text.partition("..")
                between = (f"^{self.resolve(first)}", self.resolve(last.lstrip(".")))
                shas.update(self._git("rev-list", *between).split())
            else:
                shas.add(self.resolve(text))
        for name, end in (("good", good), ("bad", bad)):
            if end in shas:
                raise RequestError(f"--skip covers the {name} end, which must be measured", details=end)
        return shas

    # --- small parts ------------------------------------------------------------------------------------

    def _touches(self, sha: str, paths: Sequence[str]) -> bool:
        return bool(self._git("rev-list", "-1", sha, f"^{sha}^@", "--", *paths).strip())

    def _describe(self, sha: str) -> str:
        try:
            return self._git("describe", "--tags", sha, timeout=_DESCRIBE_SECONDS).strip()
        except git.GitCommandError:
            return ""

    def _shallow(self) -> bool:
        return self._git("rev-parse", "--is-shallow-repository").strip() == "true"

    def _cut(self) -> RequestError:
        return RequestError(
            f"{self.path} is a shallow clone that does not hold the whole range",
            cure=f"git -C {self.path} fetch --unshallow",
        )

    def _kept(self, good: str, bad: str, first_parent: bool, paths: Sequence[str]) -> Path | None:
        if self._cache_dir is None:
            return None
        name = json.dumps([_FORMAT, str(self._repo.common_dir), good, bad, first_parent, list(paths)])
        return self._cache_dir / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.graph"

    def _git(self, *command: str, stdin: str = "", timeout: float | None = None) -> str:
        argv = ["git", "-c", "core.quotePath=false", *command]
        with tempfile.TemporaryFile() as file:
            file.write(stdin.encode())
            file.seek(0)
            return str(self._repo.git.execute(argv, istream=file, kill_after_timeout=timeout))


def _trouble(error: git.GitCommandError) -> InfrastructureError:
    return InfrastructureError("git failed", details=str(error))


def _load(path: Path) -> CommitGraph:
    return serial.graph_from(json.loads(zlib.decompress(path.read_bytes())))


def _save(path: Path, graph: CommitGraph) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(zlib.compress(json.dumps(serial.graph_to_json(graph)).encode(), level=1))
    partial.replace(path)

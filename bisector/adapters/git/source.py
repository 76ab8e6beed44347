"""The kernel's git repository through GitPython; only ever read. The builder checks trees out elsewhere.

Anything over a whole range is one plumbing command; the shape of a large range is kept in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import git

from bisector.adapters.git import graph as git_shape
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError, RequestError, nearest
from bisector.model.records import CommitGraph
from bisector.ports import CommitInfo
from bisector.schemas import serialization

_WORTH_KEEPING = 2000
"""Candidates from which on reading the graph from the cache is faster than asking git."""
_DESCRIBE_SECONDS = 10
"""`git describe` walks far in a repository with few tags; its answer is only for show."""
_FORMAT = "2"
"""Of the kept graphs; raised when what they hold changes."""
_INFO = "%H%x00%s%x00%an <%ae>%x00%at"
_LINUX = ("Makefile", "kernel", "Kbuild")
"""At the top of every Linux tree: the first, and one of the others (Kbuild came with v2.6.13)."""


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
            return self._ask(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"
            ).strip()
        except git.GitCommandError as error:
            raise self._unknown(rev) from error

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
        shape = _load(kept) if kept is not None else None
        if shape is None:
            shape = self._shape(good, bad, bases, first_parent, paths)
            if kept is not None and len(shape.shas) >= _WORTH_KEEPING:
                _save(kept, shape)
        index = {sha: i for i, sha in enumerate(shape.shas)} if skipped else {}
        reasons = {index[sha]: "skipped by the user (--skip)" for sha in skipped if sha in index}
        return replace(shape, untestable={**shape.untestable, **reasons})

    def info(self, sha: str, *, describe: bool = False) -> CommitInfo:
        """Return what a person needs to recognise the commit. Raises RequestError for an unknown one."""
        try:
            text = self._ask("log", "-1", "--encoding=UTF-8", f"--format={_INFO}", "--end-of-options", sha)
        except git.GitCommandError as error:
            raise self._unknown(sha) from error
        full, subject, author, when = text.rstrip("\n").split("\0")
        return CommitInfo(full, subject, author, float(when), self._describe(full) if describe else "")

    def tags_containing(self, sha: str, names: Sequence[str]) -> frozenset[str]:
        """Return those of the named tags that are reachable from the commit."""
        if not names:
            return frozenset()
        wanted = [f"refs/tags/{name}" for name in names]
        try:
            merged = self._ask("for-each-ref", f"--merged={sha}", "--format=%(refname:strip=2)", *wanted)
        except git.GitCommandError as error:
            raise self._unknown(sha) from error
        return frozenset(merged.split()) & frozenset(names)

    def holds_linux(self, sha: str) -> bool:
        """Return whether a commit's tree is a Linux kernel's, by the folders and files every release has."""
        wanted = "".join(f"{sha}:{name}\n" for name in _LINUX)
        makefile, *any_of = self._git("cat-file", "--batch-check=%(objecttype)", stdin=wanted).splitlines()
        return not makefile.endswith("missing") and not all(line.endswith("missing") for line in any_of)

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know about the repository: that uncommitted changes are not tested."""
        if self._repo.bare:
            return ()
        try:
            # Without optional locks git does not even refresh the user's index.
            changed = self._ask("--no-optional-locks", "status", "--porcelain", "--untracked-files=no")
        except git.GitCommandError:
            return ()
        count = len(changed.splitlines())
        return (f"{self.path} has {count} uncommitted changes; they are not tested",) if count else ()

    # --- the range --------------------------------------------------------------------------------------

    def _merge_bases(self, good: str, bad: str) -> tuple[str, ...]:
        """Return the merge bases, none if good is an ancestor of bad; refuse ends that cannot be searched."""
        if good == bad:
            raise RequestError(
                "good and bad are the same commit", details=good, cure="name two different commits"
            )
        try:
            bases = tuple(self._ask("merge-base", "--all", good, bad).split())
        except git.GitCommandError as error:
            if error.status != 1 or str(error.stderr).strip():  # 1 and silent: there is none
                raise _trouble(error) from error
            if self._cut_off():
                raise self._too_shallow() from error
            raise RequestError(
                "good and bad have no common ancestor",
                details=f"good {good}\nbad  {bad}",
                cure="name two commits of one history",
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
        parents = git_shape.parse(listing, first_parent=first_parent)
        if not parents:
            raise RequestError(
                f"no commit between good and bad touches {', '.join(paths)}", cure="check the paths after --"
            )
        if not self._cut_off().isdisjoint(parents):
            raise self._too_shallow()
        above: dict[str, set[str]] = {}
        if first_parent or paths:
            for end in bases or (good,):
                between = self._git("rev-list", "--ancestry-path", bad, f"^{end}")
                above[end] = set(between.split())
        graph = git_shape.assemble(parents, good, bad, bases, above)
        return replace(graph, untestable=dict.fromkeys(self._foreign(graph), "not a Linux tree"))

    def _foreign(self, graph: CommitGraph) -> list[int]:
        """Return the commits whose tree is no Linux: whole histories merged in, with a root of their own.

        Only they can be such; whatever has the boundary among its ancestors has Linux's history.
        """
        suspects = git_shape.alone(graph)
        if not suspects:
            return []
        wanted = "".join(f"{graph.shas[n]}:{name}\n" for n in suspects for name in _LINUX)
        answer = self._git("cat-file", "--batch-check=%(objecttype)", stdin=wanted).splitlines()
        found = iter(not line.endswith("missing") for line in answer)
        return [
            n
            for n, (makefile, *any_of) in zip(suspects, zip(*[found] * len(_LINUX), strict=True), strict=True)
            if not (makefile and any(any_of))
        ]

    def _skipped(self, skip: Sequence[str], good: str, bad: str) -> set[str]:
        shas: set[str] = set()
        for text in skip:
            first, dots, last = text.partition("..")
            if last.startswith("."):
                raise RequestError(f"--skip {text}: a range has two dots", cure=f"--skip {first}..{last[1:]}")
            if dots:
                between = (f"^{self.resolve(first or 'HEAD')}", self.resolve(last or "HEAD"))
                shas.update(self._git("rev-list", *between).split())
            else:
                shas.add(self.resolve(text))
        for name, end in (("good", good), ("bad", bad)):
            if end in shas:
                raise RequestError(
                    f"--skip covers the {name} end, which must be measured",
                    details=end,
                    cure=f"skip less, or choose another commit for --{name}",
                )
        return shas

    # --- small parts ------------------------------------------------------------------------------------

    def _unknown(self, rev: str) -> RequestError:
        """Say why a name is none: ambiguous, another kind of object, behind the edge of a clone, misspelt."""
        if re.fullmatch(r"[0-9a-f]{4,40}", rev):
            several = self._git("rev-parse", f"--disambiguate={rev}").split()
            if len(several) > 1:
                return RequestError(
                    f"'{rev}' is the beginning of several ids",
                    details="\n".join(several),
                    cure="give more digits",
                )
        names = self._git("for-each-ref", "--format=%(refname:short)").split()
        shallow = " (the clone is shallow)" if self._cut_off() else ""
        return RequestError(
            f"'{rev}' names no commit in {self.path}{shallow}{nearest(rev, names)}",
            cure=f"'git -C {self.path} tag' and '... log' show what exists; '... fetch --tags' may bring it",
        )

    def _describe(self, sha: str) -> str:
        try:
            return self._ask("describe", "--tags", sha, timeout=_DESCRIBE_SECONDS).strip()
        except git.GitCommandError:
            return ""

    def _cut_off(self) -> frozenset[str]:
        """Return the commits at which a shallow clone ends; none for a whole one."""
        try:
            return frozenset((Path(self._repo.common_dir) / "shallow").read_text().split())
        except FileNotFoundError:
            return frozenset()

    def _too_shallow(self) -> RequestError:
        return RequestError(
            f"{self.path} is a shallow clone that does not hold the whole range",
            cure=f"git -C {self.path} fetch --unshallow --tags",
        )

    def _kept(self, good: str, bad: str, first_parent: bool, paths: Sequence[str]) -> Path | None:
        if self._cache_dir is None:
            return None
        name = json.dumps([_FORMAT, str(self._repo.common_dir), good, bad, first_parent, list(paths)])
        return self._cache_dir / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.graph"

    def _git(self, *command: str, stdin: str = "") -> str:
        """Run git where nothing but a broken repository can make it fail. Raises InfrastructureError."""
        try:
            return self._ask(*command, stdin=stdin)
        except git.GitCommandError as error:
            raise _trouble(error) from error

    def _ask(self, *command: str, stdin: str = "", timeout: float | None = None) -> str:
        """Run git on this repository, whatever GIT_DIR says; raises git.GitCommandError."""
        argv = [
            "git",
            f"--git-dir={self._repo.git_dir}",
            *("-c", "core.quotePath=false"),
            *("-c", f"safe.directory={self.path}"),  # another user's repository may be read
            *command,
        ]
        with tempfile.TemporaryFile() as file:
            file.write(stdin.encode())
            file.seek(0)
            return str(self._repo.git.execute(argv, istream=file, kill_after_timeout=timeout))


def _trouble(error: git.GitCommandError) -> InfrastructureError:
    words = str(error.stderr).strip().removeprefix("stderr: ")
    return InfrastructureError("git cannot read the repository", details=words, cure="try 'git fsck' there")


def _load(path: Path) -> CommitGraph | None:
    try:
        return serialization.graph_from(json.loads(zlib.decompress(path.read_bytes())))
    except (OSError, ValueError, KeyError, TypeError, zlib.error):  # absent, or cut short by a full disk
        return None


def _save(path: Path, graph: CommitGraph) -> None:
    """Keep a graph for the next time; where it cannot be kept, the next time is slower, no more."""
    text = json.dumps(serialization.graph_to_json(graph))
    with contextlib.suppress(InfrastructureError):
        write_atomically(path, zlib.compress(text.encode(), level=1))

"""Commits that cannot change a kernel of one configuration: by the files that finished builds read.

A build lists every source and header that it read (make's dependency files). A commit that changes none of
the files that the builds around it read leaves the kernel as it was. Some files are in no such list and still
count: all that decides what is compiled and how (Kconfig, makefiles, scripts, linker scripts, tables,
objtool), and a new header with the name of one that was read, since it could be found in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bisector.model.commit_graph import CommitGraph
from bisector.model.records import Irrelevant

_NOT_COMPILED = ("Documentation/", "LICENSES/", "samples/")
_BUILD_TOOLS = ("arch", "build", "include", "lib", "objtool", "scripts")
"""Folders of tools/ that a kernel build uses."""

_ARCH_FOLDERS: Mapping[str, frozenset[str]] = {
    # Until v2.6.24, x86 was three folders that included files of each other.
    "x86_64": frozenset({"x86", "x86_64", "i386"}),
    "arm64": frozenset({"arm64", "arm"}),
    "riscv64": frozenset({"riscv"}),
}
_DOCUMENTATION_NAMES = frozenset(
    {"COPYING", "CREDITS", "MAINTAINERS", "README", "REPORTING-BUGS"}
) | frozenset({".gitignore", ".mailmap", ".gitattributes"})
"""Names of files that no build reads, wherever they lie."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path that a commit changes. added: it did not exist before, or was of another kind."""

    path: str
    added: bool


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What finished builds have read. paths: in the tree; names: of headers, generated ones too."""

    paths: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, builds: Iterable[frozenset[str]]) -> FilesRead:
        """Return all that several builds have read; a path that begins with './' was made by a build."""
        paths = frozenset().union(*builds)
        return cls(
            frozenset(path for path in paths if not path.startswith("./")),
            frozenset(path.rsplit("/", 1)[-1] for path in paths if path.endswith(".h")),
        )


def why(change: Change, read: FilesRead, arch: str) -> str | None:
    """Return why a changed path may change the kernel; None if it cannot. arch: as in recipes."""
    path = change.path
    name = path.rsplit("/", 1)[-1]
    if path in read.paths:
        return "compiled"
    if _is_of_other_architecture(path, arch) or name in _DOCUMENTATION_NAMES:
        return None
    if name.startswith(("Kconfig", "Makefile", "Kbuild")):
        return "makefile or Kconfig"
    if is_never_compiled(path, arch):
        return None
    if path.startswith("tools/") and path.split("/")[1] not in _BUILD_TOOLS:
        return None
    if path.startswith(("scripts/", "tools/")):
        return "script or tool"
    if name.endswith((".lds", ".lds.S", ".lds.h")):
        return "linker script"
    if name.endswith((".c", ".S")):
        return None
    if name.endswith(".h"):
        return "header that may shadow another" if change.added and name in read.names else None
    return "other file"


def is_never_compiled(path: str, arch: str) -> bool:
    """Return whether a path is documentation or of another architecture: no configuration compiles it."""
    name = path.rsplit("/", 1)[-1]
    documentation = path.startswith(_NOT_COMPILED) or name.endswith(".rst") or name in _DOCUMENTATION_NAMES
    return documentation or _is_of_other_architecture(path, arch)


def prune(
    graph: CommitGraph, changes: Mapping[str, Sequence[Change]], builds: Sequence[frozenset[str]], arch: str
) -> Irrelevant:
    """Find the commits of a range that cannot change the kernel.

    changes: commit id -> what it changes; a commit without an entry (a merge) stays. builds: the files that
    builds on both sides of the range, and any inside, have read.
    """
    read = FilesRead.of(builds)
    reasons: Counter[str] = Counter()
    commits = []
    known: dict[Change, str | None] = {}
    for index, sha in enumerate(graph.shas):
        if not graph.candidate[index]:
            continue
        if sha not in changes:
            reasons["merge"] += 1
            continue
        found = None
        for change in changes[sha]:
            if change not in known:
                known[change] = why(change, read, arch)
            if (found := known[change]) is not None:
                break
        if found is None:
            commits.append(index)
        else:
            reasons[found] += 1
    return Irrelevant(tuple(commits), dict(reasons.most_common()), len(builds))


def _is_of_other_architecture(path: str, arch: str) -> bool:
    family = _ARCH_FOLDERS[arch]
    top, _, rest = path.partition("/")
    if top == "arch" and "/" in rest:
        return rest.split("/")[0] not in family
    if path.startswith("include/asm-"):
        arch_name = path.removeprefix("include/asm-").split("/")[0]
        return arch_name not in family | {"generic"}
    return False

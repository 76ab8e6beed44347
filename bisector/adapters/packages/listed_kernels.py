"""The kernels of a list in place of a git repository: each is the child of the one before it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path

from bisector.adapters.git.skips import parse_skip, refuse_empty_range, refuse_skipped_ends
from bisector.errors import RequestError, nearest
from bisector.model.commit_graph import CommitGraph, short_name
from bisector.model.goal import TERMS, Terms
from bisector.ports import CommitInfo
from bisector.schemas.kernel.listed_kernel import ListedKernel


class ListedKernels:
    """ports.Source for kernels in their order. Needs none of their files."""

    def __init__(self, kernels: Sequence[ListedKernel]) -> None:
        self._kernels = tuple(kernels)
        self._place = {kernel.id: place for place, kernel in enumerate(kernels)}

    def resolve(self, rev: str) -> str:
        """Return the id of a kernel: by name, release, package, file, or the unique beginning of the id.

        Raises RequestError naming near misses.
        """
        exact = [kernel.id for kernel in self._kernels if rev in _names_of(kernel) or _is_path(rev, kernel)]
        found = exact or [kernel.id for kernel in self._kernels if rev and kernel.id.startswith(rev)]
        if len(found) == 1:
            return found[0]
        if found:
            raise RequestError(
                f"'{rev}' names several kernels of the list",
                details="\n".join(short_name(sha) for sha in found),
                cure="write one of these names",
            )
        raise RequestError(
            f"'{rev}' names no kernel of the list{nearest(rev, self.names())}",
            details=f"it has: {', '.join(self.names())}",
            cure="name one of those, by its version, release or file",
        )

    def names(self) -> list[str]:
        """Return what the kernels are called, the oldest first."""
        return [short_name(kernel.id) for kernel in self._kernels]

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
        """Return the kernels from one to another (ids), each with the one before as its parent.

        good: the older end, bad: the newer one, whatever people call them (`terms`). Raises RequestError:
        equal or swapped ends, a skip that names an end, what only a git history has.
        """
        if first_parent or paths:
            what = "--first-parent" if first_parent else "a path after --"
            raise RequestError(f"{what} has no meaning in a list of kernels", cure="leave it out")
        start, end = self._place[self.resolve(good)], self._place[self.resolve(bad)]
        if start == end:
            raise RequestError(
                "good and bad are the same kernel", details=short_name(good), cure="name two of the list"
            )
        if start > end:
            other = "--find fix" if terms.old == "good" else "without --find fix"
            raise RequestError(
                f"{short_name(bad)}, the {terms.new} end, is listed before {short_name(good)}, the "
                f"{terms.old} one",
                cure=f"exchange the ends; turn the list round if the newest is first; or search {other}",
            )
        inside = self._kernels[start : end + 1]
        shas = tuple(kernel.id for kernel in inside)
        skipped = self._skipped(skip)
        refuse_skipped_ends(skipped, {terms.old: shas[0], terms.new: shas[-1]}, "kernel")
        places = [number for number, sha in enumerate(shas) if sha in skipped]
        return CommitGraph(
            shas=shas,
            parents=((), *((number,) for number in range(len(shas) - 1))),
            candidate=(False, *(True for _ in shas[1:])),
            good=0,
            bad=len(shas) - 1,
            untestable=dict.fromkeys(places, "skipped by the user (--skip)"),
        )

    def infos(self, shas: Sequence[str], *, described: Container[str] = ()) -> list[CommitInfo]:
        """Return what a person needs to recognise kernels. Raises RequestError for one that is not listed."""
        found = []
        for sha in shas:
            kernel = self._kernels[self._place[self.resolve(sha)]]
            place = short_name(sha) if sha in described else ""
            found.append(CommitInfo(sha, kernel.package, kernel.by, kernel.when, place))
        return found

    def holds_linux(self, sha: str) -> bool:
        """Return True: what holds no kernel is in no list."""
        return sha in self._place

    def notes(self) -> tuple[str, ...]:
        """Return nothing: a list has no changes that are not tested."""
        return ()

    def _skipped(self, skip: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for first, last in map(parse_skip, skip):
            end = self._place[self.resolve(last)]
            start = self._place[self.resolve(first)] + 1 if first else end
            named = [kernel.id for kernel in self._kernels[start : end + 1]]
            refuse_empty_range(named, first, last)
            found.update(named)
        return found


def _is_path(rev: str, kernel: ListedKernel) -> bool:
    """Return whether it is the path of one of a kernel's files, as a shell completes it: the end counts."""
    parts = tuple(part for part in Path(rev).parts if part != "..")
    return bool(parts) and any(Path(file).parts[-len(parts) :] == parts for file in kernel.files)


def _names_of(kernel: ListedKernel) -> set[str]:
    """Return what a kernel may be called without its id."""
    return {kernel.id, short_name(kernel.id), kernel.release, kernel.package, kernel.version} - {""}

"""Trees of kernels as git objects: which tree a commit with its patches is, and how it gets to a builder.

Everything is plumbing on objects: no checkout, no index of the user's, nothing is written to the user's
repository. Patched trees live in an object folder of our own that borrows the user's objects.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.git.backports import find_needed, write_patch
from bisector.adapters.git.git_errors import lacks_objects, lost_tree
from bisector.adapters.git.repository import Repository, find_repository
from bisector.adapters.system.files import write_atomically, writing
from bisector.errors import RequestError, SourceFailed
from bisector.model.format import count
from bisector.ports import Fix
from bisector.schemas.kernel.fixup import Fixup, apply_fixups, edited_paths
from bisector.schemas.kernel.release import Release, release_of


def patched_trees(cache: Path) -> Path:
    """Return our own object folder below perfbisect's cache folder."""
    return cache / "builder" / "patched.git"


@dataclass(frozen=True, slots=True)
class KernelTrees:
    """The user's repository (only read) and a bare repository of ours beside the cache."""

    repository: Path
    own: Path

    def tree(self, sha: str, patches: Sequence[Path] = (), fixes: Sequence[Fix] = ()) -> str:
        """Return the id of the tree to build: the commit's own, or with fixes and patches applied in order.

        Raises RequestError for a commit or patch file that is not there, InfrastructureError for a commit
        whose tree is lost, SourceFailed if a patch, or a fix that the commit needs, does not apply to it.
        """
        tree = self._theirs.resolve(sha, "tree")
        if tree is None:
            if self._theirs.resolve(sha) is not None:
                raise lost_tree(self.repository, sha)
            find_repository(self.repository)  # a folder that is gone, or no repository, says so
            raise RequestError(
                f"'{sha}' is not a commit of {self.repository}",
                cure="give the git tree of the kernel with --repo",
            )
        for one in find_needed(self.repository, sha, fixes):
            tree = self._apply_fix(sha, tree, one)
        return self._apply_patches(sha, tree, patches) if patches else tree

    def require_files(self, good: str, bad: str) -> None:
        """Raise RequestError for a partial clone without some of the files of good, or of good..bad.

        A build would meet it, hours later. What is on a side branch as it was where that began is not looked
        for: git leaves it out of the list.
        """
        promisors = ("config", "--get-regexp", r"^remote\..*\.promisor$")
        if not self._theirs.run(*promisors, codes=(0, 1)).output:
            return
        listed = ("rev-list", "--objects", "--no-object-names", "--missing=print")
        lacks: set[str] = set()
        for commits in (("--max-count=1", good), (bad, f"^{good}")):
            lines = self._theirs.run(*listed, *commits).output.splitlines()
            lacks.update(line for line in lines if line.startswith("?"))
        if lacks:
            what = count(len(lacks), "object")
            raise lacks_objects(self.repository, f"{what} of {good[:12]}..{bad[:12]} or of its good end")

    def release(self, tree: str) -> Release:
        """Return the age of a tree (or a commit): the release that its Makefile names.

        Raises SourceFailed for a tree that is no Linux.
        """
        makefile = ("cat-file", "blob", f"{tree}:Makefile")
        done = self._theirs.run(*makefile, codes=(0, 128))
        if done.code != 0:  # a tree of ours, with patches in it, or none that has a Makefile
            done = self._open_own().run(*makefile, codes=(0, 128))
        release = release_of(done.output) if done.code == 0 else None
        if release is None:
            raise SourceFailed(
                f"{tree[:12]} holds no Linux kernel",
                details="its top Makefile, if it has one, names no release",
            )
        return release

    def fixed(self, tree: str, fixups: Sequence[Fixup], where: str) -> str:
        """Return the tree with edits made to it; the same tree if there is nothing to edit.

        Raises SourceFailed naming the edit that no longer applies. where: names the commit in errors.
        """
        if not fixups:
            return tree
        own = self._open_own()
        # A checkout would run the filters that attributes name, and lead out of its folder by links.
        lines = []
        for path, mode, blob in self._files(tree, edited_paths(fixups)):
            # Latin-1 gives every byte back as it was, whatever encoding a file of 2006 has.
            text = (
                own.run("cat-file", "blob", blob).output.encode("utf-8", "surrogateescape").decode("latin-1")
            )
            edited = (
                apply_fixups(fixups, path, text, where).encode("latin-1").decode("utf-8", "surrogateescape")
            )
            new = own.run("hash-object", "-w", "--stdin", stdin=edited).output.strip()
            lines.append(f"{mode} {new}\t{path}\0")
        with tempfile.TemporaryDirectory(prefix="pb-fixups-") as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            own.run("read-tree", tree, env=env)
            own.run("update-index", "-z", "--index-info", stdin="".join(lines), env=env)
            return own.run("write-tree", env=env).output.strip()

    def edited(self, tree: str, fixups: Sequence[Fixup]) -> frozenset[str]:
        """Return the names of the edits that would change something in a tree."""
        own = self._open_own()
        found = self._files(tree, edited_paths(fixups))
        texts = {path: own.run("cat-file", "blob", blob).output for path, _, blob in found}
        return frozenset(
            row.name
            for row in fixups
            for path in row.files
            if path in texts and row.edit(texts[path]) != texts[path]
        )

    def _files(self, tree: str, paths: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return path, mode and blob of those of the paths that are files of a tree; links are none."""
        lines = self._open_own().run("ls-tree", "-r", "-z", tree, "--", *paths).output.split("\0")[:-1]
        rows = ((path, *head.split()) for head, path in (line.split("\t", 1) for line in lines))
        return [
            (path, mode, blob)
            for path, mode, _, blob in rows
            if path in paths and mode in ("100644", "100755")
        ]

    def defines(self, tree: str, option: str) -> bool:
        """Return whether any Kconfig file of a tree defines an option (named without CONFIG_)."""
        pattern = rf"^[[:space:]]*(menu)?config {option}[[:space:]]*$"
        done = self._open_own().run("grep", "-qE", pattern, tree, "--", "*Kconfig*", codes=(0, 1))
        return done.code == 0

    def object_folders(self) -> tuple[Path, ...]:
        """Return the folders in which git finds the objects of all trees, the user's first."""
        own = self.own / "objects"
        return (self._theirs.objects(), *((own,) if own.is_dir() else ()))

    def pack(self, tree: str, have: Sequence[str], target: Path) -> None:
        """Write a pack of the tree's objects without those of the trees in `have` (for a remote builder)."""
        own = self._open_own()
        known = [other for other in have if own.run("cat-file", "-e", other, codes=(0, 1, 128)).code == 0]
        wanted = "".join(f"{line}\n" for line in (tree, *(f"^{other}" for other in known)))
        stem = target.absolute().with_suffix("")
        done = own.run("pack-objects", "--revs", "--quiet", "--delta-base-offset", str(stem), stdin=wanted)
        made = Path(f"{stem}-{done.output.strip().splitlines()[-1]}.pack")
        with writing(target):
            made.replace(target)
            for rest in (".idx", ".rev"):
                made.with_suffix(rest).unlink(missing_ok=True)

    def _apply_fix(self, sha: str, tree: str, fix: Fix) -> str:
        """Return a tree with a fix cherry-picked; the same tree if the change is there under another name."""
        own = self._open_own()
        with tempfile.TemporaryDirectory(prefix="pb-fix-") as folder:
            patch = Path(folder) / "fix.patch"
            write_patch(self.repository, fix, patch)
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            own.run("read-tree", tree, env=env)
            undo = ("--check", "--reverse", str(patch))
            if own.run("apply", "--cached", *undo, env=env, codes=(0, 1, 128)).code == 0:
                return tree
            done = own.run("apply", "--cached", "--3way", str(patch), env=env, codes=(0, 1, 128))
            if done.code != 0:
                raise SourceFailed(
                    f"the fix {fix.sha[:12]} does not apply to {sha[:12]}",
                    details=done.error,
                    cure="leave it out of --with-fix, or give a patch that applies there with --apply",
                )
            return own.run("write-tree", env=env).output.strip()

    def _apply_patches(self, sha: str, tree: str, patches: Sequence[Path]) -> str:
        own = self._open_own()
        with tempfile.TemporaryDirectory(prefix="pb-index-") as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            own.run("read-tree", tree, env=env)
            for patch in patches:
                if not patch.is_file():
                    raise RequestError(f"{patch}: no such patch", cure="name a patch file that is there")
                done = own.run("apply", "--cached", str(patch.absolute()), env=env, codes=(0, 1, 128))
                if done.code != 0:
                    raise SourceFailed(
                        f"the patch {patch.name} does not apply to {sha[:12]}",
                        details=done.error,
                        cure="give a patch that applies to this commit",
                    )
            return own.run("write-tree", env=env).output.strip()

    @property
    def _theirs(self) -> Repository:
        return Repository(self.repository)

    def _open_own(self) -> Repository:
        """Return our own repository, which borrows the objects of the user's."""
        theirs = str(self._theirs.objects())
        if not (self.own / "objects").is_dir():
            with writing(self.own):
                self.own.mkdir(parents=True, exist_ok=True)
            Repository(self.own).run("init", "--quiet", "--bare", "--template=", ".")
        file = self.own / "objects" / "info" / "alternates"
        with writing(self.own):
            # A cache may serve several repositories at once; of one that has gone git would warn for ever.
            known = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            present = [line for line in known if Path(line).is_dir()]
            if present != known or theirs not in present:
                lines = dict.fromkeys((*present, theirs))
                write_atomically(file, "".join(f"{line}\n" for line in lines))
        return Repository(self.own)

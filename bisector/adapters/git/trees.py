"""Trees of kernels as git objects: which tree a commit with its patches is, and how it gets to a builder.

Everything is plumbing on objects: no checkout, no index of the user's, nothing is written to the user's
repository. Patched trees live in an object folder of our own that borrows the user's objects.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.git.backports import needed, write_patch
from bisector.adapters.system.command import CompletedCommand, run_command
from bisector.adapters.system.files import write_atomically, write_error
from bisector.errors import RequestError, SourceFailed
from bisector.ports import Fix
from bisector.schemas.kernel.fixup import Fixup, apply_fixups, edited_paths
from bisector.schemas.kernel.release import Release, release_of

_GIT_SECONDS = 600.0
"""Packing a whole kernel tree for a remote builder takes a minute or two."""


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

        Raises RequestError for a commit or patch file that is not there, SourceFailed if a patch, or a fix
        that the commit needs, does not apply to it.
        """
        done = self._git(["rev-parse", "--verify", "--quiet", f"{sha}^{{tree}}"])
        if done.code != 0:
            raise RequestError(
                f"'{sha}' is not a commit of {self.repository}",
                details=done.output.strip(),
                cure="give the git tree of the kernel with --repo",
            )
        tree = done.output.strip()
        for one in needed(self.repository, sha, fixes):
            tree = self._mended(sha, tree, one)
        return self._patched(sha, tree, patches) if patches else tree

    def release(self, tree: str) -> Release:
        """Return the age of a tree (or a commit): the release that its Makefile names.

        Raises SourceFailed for a tree that is no Linux.
        """
        makefile = ["cat-file", "blob", f"{tree}:Makefile"]
        done = self._git(makefile)
        if done.code != 0:  # a tree of ours, with patches in it, or none that has a Makefile
            self._open_own()
            done = self._git(makefile, own=True)
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
        self._open_own()
        with tempfile.TemporaryDirectory(prefix="pb-fixups-") as name:
            folder = Path(name)
            env = {"GIT_INDEX_FILE": str(folder / "index"), "GIT_WORK_TREE": str(folder / "tree")}
            (folder / "tree").mkdir()
            self._git(["read-tree", tree], own=True, env=env, check=True)
            listed = self._git(["ls-files", "--", *edited_paths(fixups)], own=True, env=env, check=True)
            paths = listed.output.splitlines()
            self._git(["checkout-index", "--", *paths], own=True, env=env, check=True)
            for path in paths:
                file = folder / "tree" / path
                # Latin-1 gives every byte back as it was, whatever encoding a file of 2006 has.
                text = file.read_bytes().decode("latin-1")
                file.write_bytes(apply_fixups(fixups, path, text, where).encode("latin-1"))
            self._git(["update-index", "--", *paths], own=True, env=env, check=True)
            return self._git(["write-tree"], own=True, env=env, check=True).output.strip()

    def edited(self, tree: str, fixups: Sequence[Fixup]) -> frozenset[str]:
        """Return the names of the edits that would change something in a tree."""
        self._open_own()
        texts: dict[str, str] = {}
        for path in edited_paths(fixups):
            done = self._git(["cat-file", "blob", f"{tree}:{path}"], own=True)
            if done.code == 0:
                texts[path] = done.output
        return frozenset(
            row.name
            for row in fixups
            for path in row.files
            if path in texts and row.edit(texts[path]) != texts[path]
        )

    def defines(self, tree: str, option: str) -> bool:
        """Return whether any Kconfig file of a tree defines an option (named without CONFIG_)."""
        pattern = rf"^[[:space:]]*(menu)?config {option}[[:space:]]*$"
        self._open_own()
        done = self._git(["grep", "-qE", pattern, tree, "--", "*Kconfig*"], own=True)
        return done.code == 0

    def object_folders(self) -> tuple[Path, ...]:
        """Return the folders in which git finds the objects of all trees, the user's first."""
        done = self._git(["rev-parse", "--path-format=absolute", "--git-path", "objects"], check=True)
        folders = [Path(done.output.strip())]
        if (self.own / "objects").is_dir():
            folders.append(self.own / "objects")
        return tuple(folders)

    def pack(self, tree: str, have: Sequence[str], target: Path) -> None:
        """Write a pack of the tree's objects without those of the trees in `have` (for a remote builder)."""
        self._open_own()
        known = [other for other in have if self._git(["cat-file", "-e", other], own=True).code == 0]
        wanted = "".join(f"{line}\n" for line in (tree, *(f"^{other}" for other in known)))
        stem = target.with_suffix("")
        done = self._git(
            ["pack-objects", "--revs", "--quiet", "--delta-base-offset", str(stem)],
            own=True,
            check=True,
            stdin=wanted,
        )
        made = Path(f"{stem}-{done.output.strip().splitlines()[-1]}.pack")
        try:
            made.replace(target)
            for rest in (".idx", ".rev"):
                made.with_suffix(rest).unlink(missing_ok=True)
        except OSError as error:
            raise write_error(target, error) from error

    def _mended(self, sha: str, tree: str, mending: Fix) -> str:
        """Return a tree with a fix cherry-picked; the same tree if the change is there under another name."""
        self._open_own()
        with tempfile.TemporaryDirectory(prefix="pb-fix-") as folder:
            patch = Path(folder) / "fix.patch"
            write_patch(self.repository, mending, patch)
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._git(["read-tree", tree], own=True, env=env, check=True)
            apply = ["apply", "--cached"]
            if self._git([*apply, "--check", "--reverse", str(patch)], own=True, env=env).code == 0:
                return tree
            done = self._git([*apply, "--3way", str(patch)], own=True, env=env)
            if done.code != 0:
                raise SourceFailed(
                    f"the fix {mending.sha[:12]} does not apply to {sha[:12]}",
                    details=done.output.strip(),
                    cure="leave it out of --with-fix, or give a patch that applies there with --apply",
                )
            return self._git(["write-tree"], own=True, env=env, check=True).output.strip()

    def _patched(self, sha: str, tree: str, patches: Sequence[Path]) -> str:
        self._open_own()
        with tempfile.TemporaryDirectory(prefix="pb-index-") as folder:
            env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._git(["read-tree", tree], own=True, env=env, check=True)
            for patch in patches:
                if not patch.is_file():
                    raise RequestError(f"{patch}: no such patch")
                done = self._git(["apply", "--cached", str(patch)], own=True, env=env)
                if done.code != 0:
                    raise SourceFailed(
                        f"the patch {patch.name} does not apply to {sha[:12]}", details=done.output.strip()
                    )
            return self._git(["write-tree"], own=True, env=env, check=True).output.strip()

    def _open_own(self) -> None:
        if not (self.own / "objects").is_dir():
            run_command(["git", "init", "--quiet", "--bare", self.own])
        theirs = self._git(["rev-parse", "--path-format=absolute", "--git-path", "objects"], check=True)
        file = self.own / "objects" / "info" / "alternates"
        try:
            # A cache may serve several repositories at once; of one that has gone git would warn for ever.
            known = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            kept = [line for line in known if Path(line).is_dir()]
            if kept != known or theirs.output.strip() not in kept:
                lines = dict.fromkeys((*kept, theirs.output.strip()))
                write_atomically(file, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            raise write_error(self.own, error) from error

    def _git(
        self,
        arguments: Sequence[str],
        *,
        own: bool = False,
        env: dict[str, str] | None = None,
        check: bool = False,
        stdin: str | None = None,
    ) -> CompletedCommand:
        where = ["--git-dir", str(self.own)] if own else ["-C", str(self.repository)]
        # Another user's repository may be read; ours needs no such word.
        command = ["git", "-c", f"safe.directory={self.repository}", *where, *arguments]
        return run_command(
            command, env={"LC_ALL": "C.UTF-8", **(env or {})}, timeout=_GIT_SECONDS, check=check, stdin=stdin
        )

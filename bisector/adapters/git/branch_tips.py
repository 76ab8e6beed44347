"""The tip of a branch that others push to, and what lies behind it.

Nothing that the repository's owner looks at is moved: what is fetched is kept below `refs/perfbisect/`, tags
aside, which are added as `git fetch` does.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from bisector.adapters.git.fetching import KEPT, fetch, remotes
from bisector.adapters.git.repository import Repository, find_repository
from bisector.errors import InfrastructureError, RequestError


class BranchTips:
    """A branch of a repository, of one of its remotes ('origin/master'), or a pattern of tags ('v6.*')."""

    def __init__(self, repo: Path, branch: str) -> None:
        """Raises RequestError: there is no repository, or the name cannot be one of a branch."""
        if not branch or branch.startswith(("-", "^", ":")) or any(c.isspace() for c in branch):
            raise RequestError(
                f"'{branch}' cannot be the name of a branch",
                cure="name a branch, such as 'origin/master', or tags, such as 'v6.*'",
            )
        self._repository = Repository(find_repository(repo).top)
        self._branch = branch
        known = remotes(self._repository)
        remote, _, rest = branch.partition("/")
        self._remote, self._name = (remote, rest) if remote in known and rest else ("", branch)
        if self._is_pattern and known:
            self._remote = known[0]

    @property
    def name(self) -> str:
        """The branch as its own repository calls it, without a remote; '' for a pattern of tags."""
        return "" if self._is_pattern else self._name

    @property
    def remote(self) -> str:
        """The remote whose branch it is; '' for one of the repository itself."""
        return self._remote

    @property
    def _is_pattern(self) -> bool:
        return "*" in self._branch

    @property
    def _kept_ref(self) -> str:
        return f"{KEPT}/{self._remote}/{self._name}"

    def fetch(self) -> None:
        """Get what is new. Does nothing for a branch of the repository itself.

        Raises InfrastructureError: the server cannot be reached; RequestError: it has no such branch.
        """
        if not self._remote:
            return
        what = "refs/tags/*:refs/tags/*" if self._is_pattern else f"+refs/heads/{self._name}:{self._kept_ref}"
        done = fetch(self._repository, self._remote, what, (0, 1, 128))  # 1: a tag was moved there alone
        if "couldn't find remote ref" in done.error:
            folder = self._repository.folder
            raise RequestError(
                f"the remote '{self._remote}' of {folder} has no branch '{self._name}'",
                cure=f"'git -C {folder} ls-remote --heads {self._remote}' shows its branches",
            )
        if done.code == 128 or (done.code == 1 and not self._is_pattern):
            raise InfrastructureError(
                f"'{self._branch}' cannot be fetched into {self._repository.folder}",
                details=done.error.strip(),
                cure=f"see what 'git -C {self._repository.folder} fetch {self._remote}' says",
            )

    def tip(self) -> str:
        """Return the full id of the newest commit, as of the last fetch. Raises RequestError: none."""
        if self._is_pattern:
            listed = ("--sort=-creatordate", "--format=%(refname:short)", "refs/tags")
            names = self._repository.run("for-each-ref", *listed).output.split()
            newest = next((name for name in names if fnmatch.fnmatchcase(name, self._branch)), None)
            if newest is None:
                raise RequestError(
                    f"no tag of {self._repository.folder} matches '{self._branch}'",
                    cure=f"'git -C {self._repository.folder} tag' shows them",
                )
            rev = f"refs/tags/{newest}"
        else:
            rev = self._kept_ref if self._remote else f"refs/heads/{self._name}"
        found = self._repository.resolve(rev)
        if found is None and not self._remote:  # HEAD, a tag; a tag of a branch's name would never move
            found = self._repository.resolve(self._name)
        if found is None:
            raise RequestError(
                f"there is no branch '{self._branch}' in {self._repository.folder}",
                cure="name one of its branches, with its remote where it has one, such as 'origin/master'",
            )
        return found

    def contains(self, tip: str, earlier: str) -> bool:
        """Return whether a commit is part of the history of another; False where git has it no more."""
        done = self._repository.run("merge-base", "--is-ancestor", earlier, tip, codes=(0, 1, 128))
        return done.code == 0

    def between(self, after: str, tip: str) -> Sequence[str]:
        """Return the commits of the branch itself after one up to another, oldest first."""
        listed = self._repository.run("rev-list", "--first-parent", "--reverse", tip, f"^{after}")
        return listed.output.split()

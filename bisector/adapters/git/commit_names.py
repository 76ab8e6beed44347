"""Names of commits: the commit that one names, or why it names none or several."""

from __future__ import annotations

import re

from bisector.adapters.git.git_errors import lost
from bisector.adapters.git.repository import GitResult, Repository
from bisector.errors import PerfbisectError, RequestError, nearest

_KINDS = ("refs/tags", "refs/heads", "refs/remotes")
"""Where git looks for a short name, in this order: gitrevisions(7)."""
_UNKNOWN = "Needed a single revision"
"""git's reason where it has none."""


def find_commit(repository: Repository, rev: str, *, shallow: bool) -> str:
    """Return the full id of a commit. shallow: the clone is.

    Raises RequestError for a name of none, with near misses, and for one of several; InfrastructureError
    where the repository has lost what it stands for.
    """
    if not rev or rev.startswith(("-", "^")):
        raise RequestError(f"'{rev}' is not the name of a commit", cure="name one commit: a tag or an id")
    # ':/words' takes all that follows for words: only the id that it stands for can be asked for its commit.
    found = repository.resolve(rev) or repository.resolve(_ask(repository, rev).output.strip())
    if found is None:
        raise explain_unknown(repository, rev, shallow=shallow)
    _require_one(repository, rev)
    return found


def names(repository: Repository) -> list[str]:
    """Return the names of tags and branches."""
    return repository.run("for-each-ref", "--format=%(refname:short)").output.split()


def explain_unknown(repository: Repository, rev: str, *, shallow: bool) -> PerfbisectError:
    """Say why a name is no commit: ambiguous, another kind of object, lost, cut off by a clone, misspelt."""
    folder = repository.folder
    if re.fullmatch(r"[0-9a-f]{4,40}", rev):
        several = repository.run("rev-parse", f"--disambiguate={rev}").output.split()
        if len(several) > 1:
            return RequestError(
                f"'{rev}' is the beginning of several ids",
                details="\n".join(several),
                cure="give more digits",
            )
    known = _ask(repository, rev)
    sha = known.output.strip()
    if repository.resolve(sha, "object") is not None:
        return RequestError(
            f"'{rev}' names a file or folder, no commit", cure="name one commit: a tag or an id"
        )
    if sha not in ("", rev):  # a full id is believed, whatever is there
        return lost(folder, f"the commit of '{rev}'", sha)
    at_edge = " (the clone is shallow)" if shallow else ""
    return RequestError(
        f"'{rev}' names no commit in {folder}{at_edge}{nearest(rev, names(repository))}",
        details="" if _UNKNOWN in known.error else known.error.strip(),
        cure=f"'git -C {folder} tag' and '... log' show what exists; '... fetch --tags' may bring it",
    )


def _ask(repository: Repository, rev: str) -> GitResult:
    """Return what git says of a name: the id that it stands for, whatever that is, or a reason."""
    done = repository.run("rev-parse", "--verify", "--end-of-options", rev, codes=(0, 1, 128))
    return done if done.code == 0 else GitResult(done.code, "", done.error)


def _require_one(repository: Repository, rev: str) -> None:
    """Refuse a name that a tag and a branch have, of two commits: git would take the tag, and just warn."""
    name = re.split(r"[~^]|@\{", rev, maxsplit=1)[0]
    if not name:
        return
    asked = [f"{kind}/{name}" for kind in _KINDS]
    listed = repository.run("for-each-ref", "--format=%(refname)", *asked).output.splitlines()
    meant = {ref: repository.resolve(ref + rev.removeprefix(name)) for ref in asked if ref in listed}
    if len(set(meant.values())) > 1:
        raise RequestError(
            f"'{rev}' is the name of {len(meant)} commits in {repository.folder}",
            details="\n".join(f"{sha}  {ref}" for ref, sha in meant.items()),
            cure=f"say which one: {' or '.join(ref + rev.removeprefix(name) for ref in meant)}",
        )

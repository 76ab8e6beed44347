"""Git's complaints about a repository, as errors that say what to do."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from bisector.adapters.system.disk_usage import DISK_FULL
from bisector.errors import InfrastructureError, RequestError


def refusal(folder: Path, reason: str) -> RequestError | None:
    """Return the error where git gave up for a reason that the user can mend. folder: of the repository."""
    if "dubious ownership" in reason:
        return RequestError(
            f"the repository at {folder} belongs to another user, so git does not read it",
            details=reason,
            cure="say --trust-repo if you want it read (git's command above where there is no such option); "
            "no program that it names is run even then",
        )
    if "promisor remote" in reason or "lazy fetching disabled" in reason:
        return lacks_objects(folder, reason)
    if "outside repository" in reason or "pathspec" in reason:
        return RequestError(
            f"a path is not one of the repository {folder}",
            details=reason,
            cure="give paths as they are in the kernel's tree, e.g. mm/ or kernel/sched/",
        )
    return None


def cure_of(folder: Path, reason: str) -> str:
    """Return what to do where git cannot go on. folder: of the repository."""
    if re.search(DISK_FULL, reason):
        return f"free some space where it is, and in {tempfile.gettempdir()} (TMPDIR)"
    return f"see what 'git -C {folder} fsck' says"


def lacks_objects(clone: Path, details: str) -> RequestError:
    """Return the error for a partial clone; nothing is fetched for it, as that would run what it names."""
    return RequestError(
        f"{clone} is a partial clone that lacks what is needed here",
        details=details,
        cure=f"fetch all of it: git -C {clone} fetch --refetch --no-filter",
    )


def lost_tree(folder: Path, sha: str) -> InfrastructureError:
    """Return the error for a commit that has lost its tree; that says nothing of the commit."""
    return lost(folder, f"the files of {sha[:12]}")


def lost(folder: Path, what: str, details: str = "") -> InfrastructureError:
    """Return the error for what a repository names and has not. what: in words."""
    return InfrastructureError(
        f"the repository {folder} has lost {what}",
        details=details,
        cure=f"see what 'git -C {folder} fsck' says",
    )

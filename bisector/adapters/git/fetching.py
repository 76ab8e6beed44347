"""Fetches what the repository lacks, without running any program that the repository's configuration names.

What is fetched is kept below `refs/perfbisect/`: the branches that people look at stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from bisector.adapters.git.repository import GitResult, Repository, find_repository
from bisector.errors import InfrastructureError

KEPT = "refs/perfbisect"
_FETCH_SECONDS = 1800.0
"""Deadline of a fetch: a month of mainline takes a minute, a first fetch of another tree several."""
_SAFE_SETTINGS = {
    "core.sshCommand": "ssh",
    "core.askPass": "",
    "core.alternateRefsCommand": "true",
    "credential.helper": "",
    "fetch.writeCommitGraph": "false",
}
"""In place of the repository's own, which may name programs."""
_NO_PROXY = {"GIT_PROXY_COMMAND": ""}
"""Overrides core.gitProxy, which an option cannot: git takes the first of its values, the repository's
own."""
_TRANSPORTS = "file:git:http:https:ssh"
_OPTIONS = (
    "--quiet",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
    "--no-write-fetch-head",
    "--refmap=",  # without it git would also move the remote-tracking branches
    "--upload-pack=git-upload-pack",
    "--no-tags",
)


def fetch(repository: Repository, remote: str, what: str, codes: Collection[int]) -> GitResult:
    """Fetch from a remote. what: a refspec; codes: exit codes that are answers (`Repository.run`)."""
    env = {"GIT_ALLOW_PROTOCOL": _TRANSPORTS, "GIT_CONFIG_COUNT": str(len(_SAFE_SETTINGS)), **_NO_PROXY}
    for number, (key, value) in enumerate(_SAFE_SETTINGS.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return repository.run("fetch", *_OPTIONS, remote, what, env=env, codes=codes, timeout=_FETCH_SECONDS)


def remotes(repository: Repository) -> list[str]:
    """Return the names of a repository's remotes, 'origin' first; none that git would take for an option."""
    names = repository.run("remote").output.split()
    return sorted((one for one in names if not one.startswith("-")), key=lambda name: name != "origin")


def fetch_commits(repo: Path, shas: Iterable[str]) -> None:
    """Get those commits (full ids) that a repository lacks, with their history, from a remote that has them.

    Another host may have them from a branch that has moved on since: each is asked for by its id.
    Raises RequestError: there is no repository; InfrastructureError: no remote gives one of them.
    """
    repository = Repository(find_repository(repo).top)
    for sha in shas:
        if repository.resolve(sha) is not None:
            continue
        errors = []
        for remote in remotes(repository):
            done = fetch(repository, remote, f"+{sha}:{KEPT}/commits/{sha}", (0, 1, 128))
            if done.code == 0:
                break
            errors.append(f"{remote}: {done.error.strip()}")
        else:
            raise InfrastructureError(
                f"the repository {repository.folder} has no commit {sha[:12]}, nor has a remote of it",
                details="\n".join(errors),
                cure=f"fetch it there, from where it is: git -C {repository.folder} fetch REMOTE {sha}",
            )

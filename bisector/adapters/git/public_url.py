"""The address of a repository that people elsewhere can fetch from, as mails name it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from bisector.adapters.git.fetching import KEPT, remotes
from bisector.adapters.git.repository import Repository, find_repository

_MAX_CHARACTERS = 200
"""Longest address that is named. Those of known servers have at most 100; a cut one would lead nowhere."""
_PATH = r"[A-Za-z0-9._~/+%-]+"
_URL = re.compile(rf"(?:https?|git|ssh)://[!-~]*/{_PATH}")
_SHORT = re.compile(rf"(?:[^@/\s]*@)?([A-Za-z0-9.-]+):(?!//)({_PATH})")
"""'git@host:path', as ssh takes it."""
_UNKNOWN = 129
"""What git ends with if it does not have the commit that --contains names."""


def public_url(repo: Path, remote: str, sha: str) -> str:
    """Return the address of a repository's remote; '' where it has none that others could use.

    remote: '' for its first one; sha: of a commit, which a branch of the remote must contain. Raises
    RequestError, InfrastructureError: the repository cannot be read.
    """
    repository = Repository(find_repository(repo).top)
    known = remotes(repository)
    remote = remote or (known[0] if known else "")
    if remote not in known or not _may_have(repository, remote, sha):
        return ""
    done = repository.run("remote", "get-url", remote, codes=(0, 2))
    return without_secrets(done.output.rstrip("\n")) if done.code == 0 else ""


def without_secrets(url: str) -> str:
    """Return an address without user, password and query; '' if it is invalid, or only leads inside a lab.

    What is returned has no character that means more than text in a mail or on a terminal.
    """
    if len(url) > _MAX_CHARACTERS:
        return ""
    bare = re.split(r"[?#]", url, maxsplit=1)[0]
    if short := _SHORT.fullmatch(bare):
        return ":".join(short.groups()) if _is_public(short[1]) else ""
    if not _URL.fullmatch(bare):
        return ""
    try:
        parts = urlsplit(bare)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not re.fullmatch(_PATH, parts.path) or not _is_public(host):
        return ""
    return f"{parts.scheme}://{host}{f':{port}' if port is not None else ''}{parts.path}"


def _is_public(host: str) -> bool:
    """Return whether a host has a full name; a number, or a name without a domain, is a lab's own."""
    return re.fullmatch(r"([a-z0-9-]+\.)+[a-z][a-z0-9-]*", host.lower()) is not None


def _may_have(repository: Repository, remote: str, sha: str) -> bool:
    """Return whether a remote has a commit, as of the last fetch; without branches of it, it may."""
    kept = (f"refs/remotes/{remote}/", f"{KEPT}/{remote}/")
    if not repository.run("for-each-ref", "--count=1", *kept).output:
        return True
    codes = (0, _UNKNOWN)
    return bool(repository.run("for-each-ref", "--count=1", f"--contains={sha}", *kept, codes=codes).output)

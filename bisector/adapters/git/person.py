"""The person that git's configuration of a repository names."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.git.repository import Repository, find_repository


def person_of(repo: Path) -> str:
    """Return 'A Name <a@x>' as `git config` has it, for the repository or for all; '' without an address.

    Raises RequestError, InfrastructureError: the repository cannot be read.
    """
    repository = Repository(find_repository(repo).top)
    name, address = (
        repository.run("config", "--get", key, silent_codes=(1,)).output.strip()
        for key in ("user.name", "user.email")
    )
    return f"{name} <{address}>".strip() if address else ""

"""Values of an inventory that only Ansible resolves: templates, and what its Vault encrypts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bisector.errors import RequestError
from bisector.schemas.documents.document import key_text, shown_path

_TEMPLATES = ("{{", "{%")
_VAULT = "__ansible_vault"
"""How `ansible-inventory --list` writes a value that is encrypted."""


def refuse_unresolved(host: str, variables: Mapping[str, Any], inventory: Path) -> None:
    """Raise RequestError for the first such value. variables: of the host, those that perfbisect reads.

    `ansible-inventory --list` gives a template as it was written, and perfbisect's own SSH looked for a
    machine of that name. Words of commands are left alone: other programs have such templates, too.
    """
    for key, problem, cure in _unresolved((), variables):
        raise RequestError(
            f"{shown_path(inventory)}: host '{host}': variable '{key_text(key)}': {problem}", cure=cure
        )


def _unresolved(key: tuple[str, ...], value: object) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield the key of each such value, what it is, and what would be right."""
    if isinstance(value, str) and any(mark in value for mark in _TEMPLATES):
        yield key, "is a template, which perfbisect does not resolve", "write there what it stands for"
    elif isinstance(value, list):
        for number, one in enumerate(value):
            if not isinstance(one, str):
                yield from _unresolved((*key, str(number)), one)
    elif isinstance(value, Mapping):
        if _VAULT in value:
            yield (
                key,
                "is encrypted by Ansible Vault, which perfbisect does not open",
                "write the value itself; passwords belong into a file of mode 600 (password_file) or a "
                "variable of the environment (password_env)",
            )
        else:
            for name, one in value.items():
                yield from _unresolved((*key, str(name)), one)

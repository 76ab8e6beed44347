"""Ansible's variables that OpenSSH follows and perfbisect's own connections cannot."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
"""In the order in which Ansible gives them to `ssh`."""

KNOWN_HOSTS = "userknownhostsfile"


def ssh_options(text: object) -> Mapping[str, str]:
    """Return the options that arguments of `ssh` set: '-J HOST' is proxyjump, as '-o ProxyJump=HOST' is.

    Names are in small letters, for OpenSSH takes either. Of an option that is there twice, the first counts,
    as in OpenSSH. Nothing is returned of what is no text or has an open quote.
    """
    found: dict[str, str] = {}
    try:
        words = iter(shlex.split(text) if isinstance(text, str) else ())
    except ValueError:
        return found
    for word in words:
        if word[:2] == "-J":
            found.setdefault("proxyjump", word[2:] or next(words, ""))
        elif word[:2] == "-o":
            name, value = _option(word[2:] or next(words, ""))
            found.setdefault(name, value)
    return found


def all_options(variables: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the variable, the option and its value of all arguments of a host."""
    for variable in ARGUMENTS:
        for option, value in ssh_options(variables.get(variable)).items():
            yield variable, option, value


def known_hosts_of(variables: Mapping[str, Any]) -> Path | None:
    """Return the first file of UserKnownHostsFile in the arguments of a host.

    None where there is none, or its name has OpenSSH's tokens or variables (ssh_config(5)), or depends on a
    current folder.
    """
    files = next((value for _, option, value in all_options(variables) if option == KNOWN_HOSTS), "")
    try:
        first = next(iter(shlex.split(files)), "")
        path = Path(first).expanduser()
    except (ValueError, RuntimeError):
        return None
    return path if path.is_absolute() and "%" not in first and "$" not in first else None


def _option(text: str) -> tuple[str, str]:
    """Split 'Name=value' or 'Name value'."""
    name, _, value = text.strip().replace("=", " ", 1).partition(" ")
    return name.lower(), value.strip()

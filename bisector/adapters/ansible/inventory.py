"""Reads the lab through `ansible-inventory`; remembers the answer until a file changes: it takes 1 to 2 s."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError, RequestError
from bisector.resources import resource
from bisector.schemas.documents.document import (
    MAX_JSON_BYTES,
    NO_SUCH_FILE,
    WrongValueError,
    exists,
    is_file,
    key_text,
    read_bytes,
    read_document,
    shortened,
    shown_path,
    why_no_file,
)
from bisector.schemas.documents.json_reader import parse_json, read_own_json
from bisector.schemas.documents.yaml_reader import check_yaml, yaml_lines
from bisector.schemas.lab import HOST_NAME, Lab, lab_from_inventory, no_host_name

TIMEOUT_SECONDS = 60.0
"""Timeout of reading an inventory. Ansible itself takes 2 s; a program may have to ask a database of
machines."""

_RANGE = re.compile(r"\[[A-Za-z0-9]*(:[A-Za-z0-9]+)+\]")
"""A range of hosts as Ansible writes it, such as box[01:16], which stands for a name each."""

_KEPT_ANSWERS = 16
"""Answers of Ansible that are kept: each change of an inventory makes another. People have a few inventories;
an older answer costs two seconds to have again."""


def default_inventory() -> Path:
    """Return the lab of this one machine."""
    return resource("playbooks") / "inventory" / "laptop.yml"


def read_lab(inventory: Path, cache_dir: Path | None = None, *, may_lack_testbeds: bool = False) -> Lab:
    """Read and check a lab. cache_dir: where the answer is kept while the inventory's files do not change.

    may_lack_testbeds: for the command that adds the first one; all others need one.
    Raises RequestError for what is wrong in the inventory, InfrastructureError if Ansible does not run or a
    program does not answer.
    """
    inventory = inventory.absolute()
    if not exists(inventory):
        why = why_no_file(inventory)
        raise RequestError(
            f"{shown_path(inventory)}: {'no such inventory' if why == NO_SUCH_FILE else why}",
            cure="see playbooks/inventory/laptop.yml",
        )
    if not (inventory.is_dir() or inventory.is_file()):
        raise RequestError(
            f"{shown_path(inventory)}: is neither a file nor a folder",
            cure="see playbooks/inventory/laptop.yml",
        )
    cached = None
    program = is_file(inventory) and os.access(inventory, os.X_OK)  # may answer differently each time
    if cache_dir is not None and not program:
        cached = cache_dir / f"inventory-{_fingerprint(inventory)}.json"
        _hide(cache_dir)
        hosts = read_own_json(cached, ("_meta",))
        if hosts is not None and _is_inventory(hosts):
            return lab_from_inventory(hosts, inventory, may_lack_testbeds=may_lack_testbeds)
    _check_syntax(inventory, program=program)
    hosts = _run_ansible_inventory(inventory)
    lab = lab_from_inventory(hosts, inventory, may_lack_testbeds=may_lack_testbeds)
    if cached is not None:
        write_atomically(cached, json.dumps(hosts), mode=0o600)  # commands there may hold passwords
        _forget_older(cached.parent)
    return lab


def _forget_older(cache_dir: Path) -> None:
    """Remove all but the newest answers."""
    with suppress(OSError):  # another process does the same
        kept = sorted(cache_dir.glob("inventory-*.json"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-_KEPT_ANSWERS]:
            path.unlink(missing_ok=True)


def _hide(cache_dir: Path) -> None:
    """Close files that earlier versions left readable for everybody: commands there may hold passwords."""
    with suppress(OSError):  # another user's, in a folder that is shared
        for path in cache_dir.glob("inventory-*.json"):
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)


def _check_syntax(inventory: Path, *, program: bool) -> None:
    """Say where a YAML file is broken: Ansible would take it for another format and find no hosts."""
    if not program and inventory.is_file():
        read_bytes(inventory, MAX_JSON_BYTES)  # no pipe, and no larger than Ansible reads within a minute
    for path in _files(inventory):
        if path.suffix in (".yml", ".yaml", ".json") and not (program and path == inventory):
            text = read_document(path)
            if not text.startswith("$ANSIBLE_VAULT"):
                check_yaml(text, shown_path(path))


def _run_ansible_inventory(inventory: Path) -> dict[str, Any]:
    name = shown_path(inventory)
    try:
        with tempfile.TemporaryDirectory(prefix="perfbisect-") as temporary:
            done = run_command(
                [Path(sys.executable).parent / "ansible-inventory", "-i", inventory, "--list"],
                env={
                    "ANSIBLE_CONFIG": str(resource("playbooks") / "ansible.cfg"),
                    # A broken file is an error, not an empty lab.
                    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
                    # Its own is ~/.ansible/tmp: a home may be read-only, or none.
                    "ANSIBLE_LOCAL_TEMP": temporary,
                    "ANSIBLE_NOCOLOR": "1",
                    "LC_ALL": "C.UTF-8",
                },
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
    except InfrastructureError as error:
        raise InfrastructureError(
            f"{name}: Ansible does not read this inventory: {error.message}",
            details=error.details,
            cure="'ansible-inventory --list' on it must end sooner; so must each program that it asks",
        ) from error
    ignored = re.search(r"Skipping unexpected .*", done.output)
    if done.code != 0 or ignored:
        _refuse_host_names(inventory, name)
        reason = f": {ignored[0]}" if ignored else _find_reason(done.output)
        raise RequestError(
            f"{name}: Ansible cannot read this inventory{reason}",
            details=_plain(done.output[-3000:]),
            cure="'ansible-inventory --list -i' on it shows the same; see playbooks/inventory/laptop.yml",
        )
    document = re.search(r"^\{$.*^\}$", done.output, re.MULTILINE | re.DOTALL)
    hosts = _parse_hosts(document[0], name) if document else None
    if not isinstance(hosts, dict) or not _is_inventory(hosts):
        raise InfrastructureError(
            "'ansible-inventory' printed no inventory",
            details=done.output[-3000:],
            cure="'ansible-inventory --version' may show another version than perfbisect's",
        )
    return hosts


def _parse_hosts(document: str, name: str) -> object:
    """Return what Ansible prints. Raises RequestError that names host and variable, which its users wrote."""
    try:
        return parse_json(document, f"{name}, as Ansible reads it")
    except WrongValueError as error:
        if error.key[:2] != ("_meta", "hostvars") or len(error.key) < 4:
            raise
        host, variable = error.key[2], key_text(error.key[3:])
        raise RequestError(
            f"{name}: host '{shortened(host)}': variable '{variable}': {error.what}", cure=error.cure
        ) from error


def _refuse_host_names(inventory: Path, name: str) -> None:
    """Raise RequestError for a key of 'hosts' in a YAML file that can name no host.

    Ansible takes brackets for a range. Its own message about a malformed one only makes sense in its source.
    """
    if inventory.suffix not in (".yml", ".yaml", ".json") or not inventory.is_file():
        return
    for key, line in yaml_lines(read_document(inventory)):
        if key[-2:-1] == ("hosts",) and not HOST_NAME.fullmatch(_RANGE.sub("0", key[-1])):
            raise no_host_name(f"{name}:{line}", key[-1])


def _is_inventory(data: Mapping[str, Any]) -> bool:
    """Return whether a document has the form of Ansible's: groups, and variables of hosts."""
    variables = data["_meta"].get("hostvars") if isinstance(data.get("_meta"), dict) else None
    groups = [group for name, group in data.items() if name != "_meta"]
    return (
        isinstance(variables, dict)
        and all(isinstance(one, dict) for one in (*variables.values(), *groups))
        and all(isinstance(group.get(key, []), list) for group in groups for key in ("hosts", "children"))
    )


def _find_reason(output: str) -> str:
    """Return ': ' and why no plugin could read the inventory: a script's own reason, else the first one."""
    found = re.findall(r"Failed to parse inventory with '[\w.]*?(\w+)' plugin: (.+)", output)
    reason = dict(found).get("script") or next((text for _, text in found), "")
    place = re.search(r"Origin: \S+:(\d+):\d+", output)
    return f": {_plain(reason)}{f' (line {place[1]})' if place else ''}" if reason else ""


def _plain(text: str) -> str:
    """Return Ansible's words without the names of Python's classes."""
    return re.sub(r"\"?<class '[^']*'>\"?", "something else", text)


def _files(inventory: Path) -> list[Path]:
    """Return all files that Ansible reads for an inventory, sorted."""
    root = inventory if inventory.is_dir() else inventory.parent
    files = [] if inventory.is_dir() else [inventory]
    folders = [root] if inventory.is_dir() else [root / "group_vars", root / "host_vars"]
    return sorted([*files, *(path for folder in folders for path in folder.rglob("*") if is_file(path))])


def _fingerprint(inventory: Path) -> str:
    """Hash of the names, sizes and times of all files that Ansible reads for this inventory."""
    digest = hashlib.sha256(os.fsencode(inventory))
    for path in _files(inventory):
        info = path.stat()
        digest.update(os.fsencode(path) + f" {info.st_size} {info.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]

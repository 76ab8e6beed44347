"""Reads the lab through `ansible-inventory`; remembers the answer until a file changes: it takes 1 to 2 s."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError, RequestError
from bisector.resources import resource
from bisector.schemas.lab import Lab, lab_from_inventory

_TIMEOUT_SECONDS = 60.0
"""An inventory may be a program that asks a machine database."""


def default_inventory() -> Path:
    """Return the lab of this one machine."""
    return resource("playbooks") / "inventory" / "laptop.yml"


def read_lab(inventory: Path, cache_dir: Path | None = None) -> Lab:
    """Read and check a lab. cache_dir: where the answer is kept while the inventory's files do not change.

    Raises RequestError for what is wrong in the inventory, InfrastructureError if Ansible does not run.
    """
    inventory = inventory.absolute()
    if not inventory.exists():
        raise RequestError(f"{inventory}: no such inventory", cure="see playbooks/inventory/laptop.yml")
    cached = None
    program = inventory.is_file() and os.access(inventory, os.X_OK)  # may answer differently each time
    if cache_dir is not None and not program:
        cached = cache_dir / f"inventory-{_fingerprint(inventory)}.json"
        hosts = _load_cached(cached)
        if hosts is not None:
            return lab_from_inventory(hosts, inventory)
    _check_syntax(inventory)
    hosts = _run_ansible_inventory(inventory)
    lab = lab_from_inventory(hosts, inventory)
    if cached is not None:
        write_atomically(cached, json.dumps(hosts))
    return lab


def _check_syntax(inventory: Path) -> None:
    """Say where a YAML file is broken: Ansible would take it for another format and find no hosts."""
    if inventory.suffix not in (".yml", ".yaml", ".json"):
        return
    try:
        yaml.compose(inventory.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{inventory}:{mark.line + 1}" if mark else str(inventory)
        raise RequestError(f"{where}: not valid YAML", details=str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{inventory}: cannot be read", details=str(error)) from error


def _run_ansible_inventory(inventory: Path) -> dict[str, Any]:
    program = Path(sys.executable).parent / "ansible-inventory"
    done = run_command(
        [program, "-i", inventory, "--list"],
        env={
            "ANSIBLE_CONFIG": str(resource("playbooks") / "ansible.cfg"),
            # A broken file is an error, not an empty lab.
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
            "ANSIBLE_NOCOLOR": "1",
            "LC_ALL": "C.UTF-8",
        },
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    start = done.output.find("{")
    if done.code != 0 or start < 0:
        raise RequestError(
            f"{inventory}: Ansible cannot read this inventory{_find_reason(done.output)}",
            details=done.output[-3000:],
        )
    try:
        hosts: dict[str, Any]  # a document that begins with '{' is an object
        hosts, _ = json.JSONDecoder().raw_decode(done.output[start:])
    except ValueError as error:
        raise InfrastructureError(
            "'ansible-inventory' printed no JSON", details=done.output[-3000:]
        ) from error
    return hosts


def _find_reason(output: str) -> str:
    """Return ': ' and why no plugin could read the inventory: a script's own reason, else the first one."""
    found = re.findall(r"Failed to parse inventory with '[\w.]*?(\w+)' plugin: (.+)", output)
    reason = dict(found).get("script") or next((text for _, text in found), "")
    return f": {reason}" if reason else ""


def _fingerprint(inventory: Path) -> str:
    """Hash of the names, sizes and times of all files that Ansible reads for this inventory."""
    root = inventory if inventory.is_dir() else inventory.parent
    files = [inventory] if inventory.is_file() else []
    folders = [root] if inventory.is_dir() else [root / "group_vars", root / "host_vars"]
    files += [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    digest = hashlib.sha256(str(inventory).encode())
    for path in sorted(files):
        info = path.stat()
        digest.update(f"{path} {info.st_size} {info.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _load_cached(cached: Path) -> dict[str, Any] | None:
    try:
        hosts = json.loads(cached.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return hosts if isinstance(hosts, dict) else None

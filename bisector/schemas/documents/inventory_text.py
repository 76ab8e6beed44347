"""Text of YAML inventories: a host as lines, and a host added to a file that people wrote.

What is there stays as it is, comments and all: lines are inserted. The new text is parsed and must be the old
inventory plus this host, or nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from bisector.errors import RequestError
from bisector.schemas.documents.document import shown_path
from bisector.schemas.documents.yaml_reader import check_yaml, parse_yaml

GROUP = "testbeds"
_BUILDERS = "builders"
_GROUPS = (("all", "children"), ())
"""Where the groups of an inventory are."""
_STEP = 2
"""Columns from one level to the next where the inventory does not show its own: usual in YAML."""


def host_lines(name: str, variables: Mapping[str, Any], indent: int = 8, step: int = _STEP) -> list[str]:
    """Return a host and its variables as lines of YAML. Values are JSON, which is YAML too."""
    pad = " " * indent
    lines = [f"{pad}{_word(name)}:{'' if variables else ' {}'}"]
    return lines + [f"{pad}{' ' * step}{key}: {_word(value)}" for key, value in variables.items()]


def is_yaml(text: str) -> bool:
    """Return whether an inventory is a mapping in YAML: Ansible reads its own format and programs, too."""
    try:
        return isinstance(parse_yaml(text, "this"), dict)
    except RequestError:
        return False


def new_inventory(name: str, variables: Mapping[str, Any]) -> str:
    """Return an inventory of one testbed, for a file of its own."""
    lines = ["all:", "  children:", f"    {GROUP}:", "      hosts:", *host_lines(name, variables)]
    return "\n".join(lines) + "\n"


def add_host(text: str, path: Path, name: str, variables: Mapping[str, Any]) -> str:
    """Return an inventory's text with one testbed more. Raises RequestError where that cannot be done."""
    check_yaml(text, shown_path(path))
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    added = _behind_hosts(root, text, name, variables) or _behind_groups(root, text, name, variables)
    if added is None:
        raise _by_hand(path, name, variables, "has no 'hosts' in blocks of lines in its group 'testbeds'")
    if _below(_at(root, *added.keys), name) is not None:
        raise RequestError(
            f"{shown_path(path)} has a testbed '{name}' already", cure="give the new one another name"
        )
    if not _is_plus_one(text, added):
        raise _by_hand(path, name, variables, "is written in a way that a host cannot be added to safely")
    return added.text


@dataclass(frozen=True, slots=True)
class _Added:
    """A new text, which must mean the old one with `name: value` below these keys, and nothing else."""

    text: str
    keys: tuple[str, ...]
    name: str
    value: Mapping[str, Any]


def _behind_hosts(
    root: yaml.Node | None, text: str, name: str, variables: Mapping[str, Any]
) -> _Added | None:
    """Add a host behind those of the group 'testbeds'; None where there are none in blocks of lines."""
    for keys in ((*groups, GROUP, "hosts") for groups in _GROUPS):
        hosts = _block(root, *keys)
        if hosts is not None:
            lines = host_lines(name, variables, _column(hosts), _step_of(hosts))
            return _Added(_with_lines_behind(hosts, text, lines), keys, name, variables)
    return None


def _behind_groups(
    root: yaml.Node | None, text: str, name: str, variables: Mapping[str, Any]
) -> _Added | None:
    """Add a group 'testbeds' with this host behind the other groups.

    None where it is there already, or there is no group 'builders' in blocks of lines.
    """
    for keys in _GROUPS:
        groups = _block(root, *keys)
        if groups is not None and _below(groups, GROUP) is None and _below(groups, _BUILDERS) is not None:
            column, step = _column(groups), _step_of(groups)
            lines = [f"{' ' * column}{GROUP}:", f"{' ' * (column + step)}hosts:"]
            lines += host_lines(name, variables, column + 2 * step, step)
            return _Added(
                _with_lines_behind(groups, text, lines), keys, GROUP, {"hosts": {name: dict(variables)}}
            )
    return None


def _with_lines_behind(node: yaml.Node, text: str, added: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True)
    at = _last_line(node) + 1
    if lines[at - 1 : at] and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    lines[at:at] = [f"{line}\n" for line in added]
    return "".join(lines)


def _step_of(mapping: yaml.MappingNode) -> int:
    """Return by how many columns the values of a mapping in block style are indented."""
    inner = [_column(value) for _, value in mapping.value if _is_block(value)]
    return inner[0] - _column(mapping) if inner else _STEP


def _column(mapping: yaml.MappingNode) -> int:
    column: int = mapping.value[0][0].start_mark.column
    return column


def _block(root: yaml.Node | None, *keys: str) -> yaml.MappingNode | None:
    """Return the mapping below these keys, None where there is none in block style."""
    found = _at(root, *keys)
    return found if _is_block(found) else None


def _is_block(node: yaml.Node | None) -> TypeGuard[yaml.MappingNode]:
    return isinstance(node, yaml.MappingNode) and not node.flow_style and bool(node.value)


def _at(node: yaml.Node | None, *keys: str) -> yaml.Node | None:
    for key in keys:
        node = _below(node, key)
    return node


def _below(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for one, value in node.value if one.value == key), None)


def _last_line(node: yaml.Node) -> int:
    """Return the number of the last line with content of a node, from 0 on."""
    if _is_block(node):
        return max(_last_line(part) for pair in node.value for part in pair)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(map(_last_line, node.value))
    end: int = node.end_mark.line
    return end - 1 if node.end_mark.column == 0 and end > node.start_mark.line else end


def _is_plus_one(old: str, added: _Added) -> bool:
    """Return whether the new text means what it must."""
    try:
        check_yaml(added.text, "")
    except RequestError:
        return False
    root = yaml.compose(added.text, Loader=yaml.SafeLoader)
    place = _at(root, *added.keys)
    wanted = yaml.compose(json.dumps(dict(added.value)), Loader=yaml.SafeLoader)
    if not isinstance(place, yaml.MappingNode) or _meaning(_below(place, added.name)) != _meaning(wanted):
        return False
    place.value = [pair for pair in place.value if pair[0].value != added.name]
    return bool(_meaning(root) == _meaning(yaml.compose(old, Loader=yaml.SafeLoader)))


def _meaning(node: yaml.Node | None) -> Any:  # noqa: ANN401 - nested tuples
    """Return tags and values without places, styles and comments."""
    if isinstance(node, yaml.MappingNode):
        return node.tag, [(_meaning(key), _meaning(value)) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return node.tag, [_meaning(value) for value in node.value]
    return (node.tag, node.value) if node is not None else None


def _word(value: object) -> str:
    """Return a value as JSON, plain words without quotes."""
    text = json.dumps(value)
    if isinstance(value, str):
        try:
            plain = (
                yaml.safe_load(value) == value
                and value.replace("/", "").replace("_", "").replace("-", "").replace(".", "").isalnum()
            )
        except yaml.YAMLError:
            plain = False
        return value if plain else text
    return text


def _by_hand(path: Path, name: str, variables: Mapping[str, Any], why: str) -> RequestError:
    return RequestError(
        f"{shown_path(path)} {why}",
        details="\n".join(host_lines(name, variables, 0)),
        cure="add these lines to its testbeds by hand; or use a folder as inventory: all its files count",
    )

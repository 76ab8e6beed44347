"""Text of YAML inventories: a host as lines, and a host added to a file that people wrote.

What is there stays as it is, comments and all: lines are inserted. The new text is parsed and must be the old
inventory plus this host, or nothing is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bisector.errors import RequestError
from bisector.schemas.documents.document import shown_path
from bisector.schemas.documents.yaml_reader import check_yaml, parse_yaml

GROUP = "testbeds"
_BUILDERS = "builders"
_STEP = 2


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
    hosts = _find_hosts(text, path)
    if hosts is None:
        first = _with_first_host(text, name, variables)
        if first is not None:
            return first
        raise _by_hand(path, name, variables, "has no 'hosts' in blocks of lines in its group 'testbeds'")
    if any(key.value == name for key, _ in hosts.value):
        raise RequestError(
            f"{shown_path(path)} has a testbed '{name}' already", cure="give the new one another name"
        )
    column = hosts.value[0][0].start_mark.column
    new = _with_lines_behind(hosts, text, host_lines(name, variables, column, _step_of(hosts)))
    if not _is_plus_one(text, new, path, name, variables):
        raise _by_hand(path, name, variables, "is written in a way that a host cannot be added to safely")
    return new


def _with_first_host(text: str, name: str, variables: Mapping[str, Any]) -> str | None:
    """Return the text with a group 'testbeds' behind its other groups, in which this host is.

    None where it has such a group, or no group 'builders' in blocks of lines, or cannot be added to safely.
    """
    for keys in (("all", "children"), ()):
        groups = _at(yaml.compose(text, Loader=yaml.SafeLoader), *keys)
        if not isinstance(groups, yaml.MappingNode) or not _is_block(groups):
            continue
        names = [key.value for key, _ in groups.value]
        if GROUP in names or _BUILDERS not in names:
            continue
        column, step = groups.value[0][0].start_mark.column, _step_of(groups)
        pad, inner = " " * column, " " * (column + step)
        added = [f"{pad}{GROUP}:", f"{inner}hosts:", *host_lines(name, variables, column + 2 * step, step)]
        new = _with_lines_behind(groups, text, added)
        wanted = yaml.compose(json.dumps({GROUP: {"hosts": {name: dict(variables)}}}), Loader=yaml.SafeLoader)
        try:
            root = yaml.compose(new, Loader=yaml.SafeLoader)
        except yaml.YAMLError:
            return None
        groups = _at(root, *keys)
        if not isinstance(groups, yaml.MappingNode) or _meaning(_at(groups, GROUP)) != _meaning(
            _at(wanted, GROUP)
        ):
            return None
        groups.value = groups.value[:-1]
        return new if _meaning(root) == _meaning(yaml.compose(text, Loader=yaml.SafeLoader)) else None
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
    column = mapping.value[0][0].start_mark.column
    inner = [value.value[0][0].start_mark.column for _, value in mapping.value if _is_block(value)]
    return inner[0] - column if inner else _STEP


def _find_hosts(text: str, path: Path) -> yaml.MappingNode | None:
    """Return the hosts of the group 'testbeds' itself, None where there are none in block style."""
    check_yaml(text, shown_path(path))
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for keys in (("all", "children", GROUP, "hosts"), (GROUP, "hosts")):
        found = _at(node, *keys)
        if isinstance(found, yaml.MappingNode) and _is_block(found):
            return found
    return None


def _is_block(node: yaml.Node) -> bool:
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
    if isinstance(node, yaml.MappingNode) and _is_block(node):
        return max(_last_line(part) for pair in node.value for part in pair)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(map(_last_line, node.value))
    end: int = node.end_mark.line
    return end - 1 if node.end_mark.column == 0 and end > node.start_mark.line else end


def _is_plus_one(old: str, new: str, path: Path, name: str, variables: Mapping[str, Any]) -> bool:
    """Return whether the new text means the old inventory with this host, and nothing else."""
    try:
        check_yaml(new, shown_path(path))
        hosts = _find_hosts(new, path)
        added = yaml.compose(json.dumps(dict(variables)), Loader=yaml.SafeLoader)
        root = yaml.compose(new, Loader=yaml.SafeLoader)
    except (RequestError, yaml.YAMLError):
        return False
    value = _below(hosts, name)
    if hosts is None or value is None or _meaning(value) != _meaning(added):
        return False
    place = _find_same(root, hosts)
    if place is None:
        return False
    place.value = [pair for pair in place.value if pair[0].value != name]
    return bool(_meaning(root) == _meaning(yaml.compose(old, Loader=yaml.SafeLoader)))


def _find_same(root: yaml.Node | None, hosts: yaml.Node) -> yaml.MappingNode | None:
    """Return the node of another parse of the same text that stands where `hosts` does."""
    if isinstance(root, yaml.MappingNode):
        if root.start_mark.index == hosts.start_mark.index and len(root.value) == len(hosts.value):
            return root
        for _, value in root.value:
            found = _find_same(value, hosts)
            if found is not None:
                return found
    return None


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

"""YAML: manifests and inventories. PyYAML parses it; its composer is given limits, and refuses keys twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from bisector.errors import RequestError
from bisector.schemas.documents.document import (
    LARGEST_NUMBER,
    MAX_DEPTH,
    MAX_VALUES,
    Key,
    check_values,
    duplicate_key,
    nearest_line,
    shown,
    syntax_error,
    too_deep,
    too_many_digits,
)

_WORDS = {
    "mapping values are not allowed": "a ':' where no key can be",
    "cannot start any token": "a tab, or one of @ ` %, at the begin of a value",
    "did not find expected node content": "a value is missing, or a bracket too many",
    "did not find expected '-' indicator": "this line is indented as the list above, but has no '-'",
    "did not find expected key": "a key was expected in this column",
    "did not find expected ',' or": "a list or mapping in brackets does not end",
    "found unexpected end of stream": "a text in quotes does not end",
    "found undefined alias": "there is no anchor of this name before it",
    "found another document": "a second document begins; a file must hold one",
    "could not find expected ':'": "there is no ':' behind a key",
    "found duplicate anchor": "an anchor is there twice",
    "escape": "a backslash in double quotes that begins no escape",
    "hexdecimal": "an escape of a character needs hexadecimal digits",
    "block entries are not allowed": "a '-' where no list can begin",
    "unhashable": "a key must be a word, not a list or a mapping",
    "for merging": "'<<' must be followed by an alias of a mapping",
}
"""Parts of PyYAML's messages, and our words for them."""


class _Loader(Composer, CParser, SafeConstructor, Resolver):
    """PyYAML's safe loader with libyaml's scanner and Python's composer, whose hooks keep the limits."""

    def __init__(self, text: str, where: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._where = where
        self._levels = 0
        self._sizes: dict[int, tuple[int, int]] = {}  # id of a finished node -> (values, levels), expanded

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node. Raises RequestError for one that exceeds a limit, or has a key twice."""
        event: Any = self.peek_event()
        place = f"{self._where}:{event.start_mark.line + 1}"
        self._levels += 1
        if self._levels > MAX_DEPTH:
            raise too_deep(place)
        node = super().compose_node(parent, index)
        self._levels -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise RequestError(
                    f"{place}: the alias '*{event.anchor}' stands within what it stands for",
                    cure="write out the value that is meant",
                )
        elif node is not None:
            self._sizes[id(node)] = self._measure(node, place)
        return node

    def _measure(self, node: yaml.Node, place: str) -> tuple[int, int]:
        """Return how many values and levels a node has once its aliases are expanded."""
        if isinstance(node, yaml.ScalarNode):
            return 1, 1
        children = node.value
        if isinstance(node, yaml.MappingNode):
            children = [one for pair in node.value for one in pair]
            self._take_keys_as_text(node)
        sizes = [self._sizes[id(child)] for child in children]
        values, levels = 1 + sum(size for size, _ in sizes), 1 + max((deep for _, deep in sizes), default=0)
        if values > MAX_VALUES:
            raise RequestError(
                f"{place}: more than {MAX_VALUES:,} values, with those that its aliases stand for",
                cure="look at its aliases ('*name')",
            )
        if levels > MAX_DEPTH:
            raise too_deep(place)
        return values, levels

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401 - YAML values
        """Construct the value of a node. Raises RequestError for a value that is not of its type."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError) as error:
            place = f"{self._where}:{node.start_mark.line + 1}"
            if "digits" in str(error):  # of int(): "Exceeds the limit (4300 digits)"
                raise too_many_digits(place) from error
            raise RequestError(f"{place}: {shown(node.value)} is no such value", cure=_NO_TAG) from error

    def _number(self, node: yaml.ScalarNode) -> int | float | str:
        """Return a number, or its text where Python would write it otherwise: 010, 0x10, 1:30, 1.10.

        A command gets what its manifest says: `taskset 0x10` is not `taskset 16`. What needs a number takes
        the text of one, and refuses the others, whose value depends on the version of YAML.
        """
        is_int = node.tag == "tag:yaml.org,2002:int"
        value: int | float = (self.construct_yaml_int if is_int else self.construct_yaml_float)(node)
        return node.value if abs(value) <= LARGEST_NUMBER and str(value) != node.value else value

    def _refuse_tag(self, node: yaml.Node) -> None:
        place = f"{self._where}:{node.start_mark.line + 1}"
        raise RequestError(f"{place}: the tag {shown(node.tag)} is not understood", cure=_NO_TAG)

    def _take_keys_as_text(self, node: yaml.MappingNode) -> None:
        """Take keys as they are written, so that a message quotes `yes` and `null`, and refuse one twice."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            if key.tag != "tag:yaml.org,2002:merge":
                key.tag = "tag:yaml.org,2002:str"
            if key.value in seen:
                raise duplicate_key(self._where, (key.value,), seen[key.value], line)
            seen[key.value] = line


_NO_TAG = "leave out the word with the '!', and put text in quotes"

_Loader.yaml_constructors = {
    **{
        f"tag:yaml.org,2002:{tag}": getattr(SafeConstructor, f"construct_yaml_{tag}")
        for tag in ("null", "bool", "str", "seq", "map")
    },
    **dict.fromkeys(("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"), _Loader._number),
    # Dates are text: no key takes one, and a version may look like one.
    **dict.fromkeys(
        ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"), SafeConstructor.construct_yaml_str
    ),
    None: _Loader._refuse_tag,
}


def parse_yaml(text: str, where: str) -> Any:  # noqa: ANN401 - YAML values
    """Return the value of a text, None if it has none. where: names it in errors (RequestError)."""
    loader, node = _compose(text, where)
    try:
        value = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text, where) from error
    check_values(value, lambda key: f"{where}:{nearest_line(dict(yaml_lines(text)), key)}")
    return value


def check_yaml(text: str, where: str) -> None:
    """Raise RequestError where a text is not YAML within the limits, whatever its tags and values mean."""
    _compose(text, where)


def yaml_lines(text: str) -> Iterator[tuple[Key, int]]:
    """Yield the path and line of each key and list element of a text that can be parsed."""
    _, node = _compose(text, "")
    if node is not None:
        yield from _lines_below(node, ())


def _lines_below(node: yaml.Node, prefix: Key) -> Iterator[tuple[Key, int]]:
    pairs: list[tuple[str, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        pairs = [(str(key.value), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        pairs = [(str(number), value, value) for number, value in enumerate(node.value)]
    for name, start, value in pairs:
        yield (*prefix, name), start.start_mark.line + 1
        yield from _lines_below(value, (*prefix, name))


def _compose(text: str, where: str) -> tuple[_Loader, yaml.Node | None]:
    loader = _Loader(text, where)
    try:
        return loader, loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _malformed(error, text, where) from error
    except yaml.YAMLError as error:  # of the reader: a character that YAML does not have
        raise syntax_error("YAML", where, text, 1, "it holds a character that is not allowed") from error


def _malformed(error: yaml.MarkedYAMLError, text: str, where: str) -> RequestError:
    mark = error.problem_mark or error.context_mark
    words = next(
        (ours for theirs, ours in _WORDS.items() if theirs in str(error.problem)), "not understood here"
    )
    return syntax_error("YAML", where, text, mark.line + 1 if mark is not None else 1, words)

"""The last match of regular expressions in what a workload printed, and whether one cuts a number in two.

An expression may backtrack for years, and one of `re` cannot be stopped in a thread: a process does it.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from bisector.adapters.system.command import run_command
from bisector.errors import InfrastructureError

_MATCH_SECONDS = 10.0
"""An honest expression takes 0.1 s for the mebibyte that a run may print."""

_MATCH = """
import collections, json, re, sys
text, patterns = json.load(open(sys.argv[1]))
found = {}
for name, pattern in patterns.items():
    for last in collections.deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1):
        found[name] = [last.groups(""), last.span(), last.span(1)]
print(json.dumps(found))
"""

_CONTEXT = 40
"""Characters around a number that are looked at: more than any has digits."""

_BEFORE = re.compile(r"[\d.,]*(?:\d|\d\.|\d[eE][-+]?)\Z")
_AFTER = re.compile(r"(?:\d|\.\d|[eE][-+]?\d)[\d.,]*(?:[eE][-+]?\d+)?")
"""What shows that a match cut a number in two, whatever the expression matched around it: '.*([0-9]+)' takes
3 of 123, and '([0-9.]+)' takes 9.5 of 9.5e-05."""
_BEFORE_MATCH = re.compile(r"(?:(?<![\w.])-|(?<![\d.,])\d{1,3}(?:,\d{3})*,)\Z")
_AFTER_MATCH = re.compile(r"(?:,\d{3})+(?![\d,])")
"""What shows it only outside of the whole match: an expression with '-?' or ',' expects these characters."""


@dataclass(frozen=True, slots=True)
class LastMatch:
    """Where an expression matched last. number, unit: its groups, '' for one that is not there; whole: the
    longer number that `number` was cut out of, '' where it is one of its own."""

    number: str
    unit: str
    whole: str


def last_matches(text: str, patterns: Mapping[str, str]) -> dict[str, LastMatch]:
    """Return the last match of each expression that matches, by name. patterns: with one group or two.

    Raises InfrastructureError where they take too long: that says nothing about the kernel.
    """
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="ascii") as file:
            file.write(json.dumps([text, dict(patterns)]))
            file.flush()
            done = run_command([sys.executable, "-I", "-S", "-c", _MATCH, file.name], timeout=_MATCH_SECONDS)
    except InfrastructureError as error:
        raise InfrastructureError(
            f"'parse: regex' does not end within {_MATCH_SECONDS:.0f} s on what the workload printed",
            details="\n".join(f"{name}: {pattern}" for name, pattern in patterns.items()),
            cure="write expressions without a repetition inside another, such as '(a+)+', in the manifest",
        ) from error
    return {
        name: LastMatch(groups[0], groups[1] if len(groups) > 1 else "", _whole(text, match, number))
        for name, (groups, match, number) in json.loads(done.output).items()
    }


def _whole(text: str, match: tuple[int, int], number: tuple[int, int]) -> str:
    """Return the number that the group is a part of, '' where it is all of it. match, number: from, to."""
    begin, end = number
    taken = text[begin:end]
    if not taken or not (taken[0].isdigit() or taken[0] == "."):
        return ""
    before, after = text[max(0, begin - _CONTEXT) : begin], text[end : end + _CONTEXT]
    front = _BEFORE.search(before) or (_BEFORE_MATCH.search(before) if match[0] == begin else None)
    back = _AFTER.match(after) or (_AFTER_MATCH.match(after) if match[1] == end else None)
    if front is None and back is None:
        return ""
    return f"{front[0] if front else ''}{taken}{back[0] if back else ''}"

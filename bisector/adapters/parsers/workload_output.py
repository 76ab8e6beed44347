"""From what a workload printed to its numbers; pure, one parser a format.

Every parser raises `OutputError` with words a user can act on: no such metric, not a number, not finite.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence, Set

from bisector.adapters.parsers.input_text import NUMBER, cut, shown
from bisector.adapters.parsers.key_values import of_known_key
from bisector.adapters.parsers.last_matches import LastMatch, last_matches
from bisector.errors import RequestError
from bisector.model.format import whole_number
from bisector.ports import MetricSpec
from bisector.schemas.documents.document import LARGEST_NUMBER
from bisector.schemas.documents.json_reader import parse_json
from bisector.schemas.workload.metric import PRINTED_UNIT
from bisector.stats.units import factor, to_base

_MINUTES = re.compile(rf"(?:(?P<hours>[0-9]+)h)?(?P<minutes>[0-9]+)m(?P<seconds>{NUMBER})s")


_DOCUMENT = re.compile(r"(?:\A\s*|(?<=[\n\r]))[{\[]")
"""Where a document of JSON may begin: what is indented behind other lines may be part of one."""
_OBJECT = re.compile(r"\{\s*\"|\[\s*\{")
"""Text that certainly begins a document; '[INFO]' and '[12:30:01]' do not."""
_END_OF_LINE = re.compile(r"\s*?(?:\n|\Z)")


class OutputError(ValueError):
    """The output does not hold what the manifest promises."""


def parse(kind: str, text: str, metrics: Sequence[MetricSpec]) -> dict[str, float]:
    """Return every metric's value, in its own unit; optional ones if they are there.

    kind: as in the manifest. Raises OutputError when one is missing, no finite number, or in another unit.
    """
    try:
        parser = _PARSERS[kind]
    except KeyError as error:
        raise OutputError(f"unknown kind of output '{kind}' (known: {', '.join(_PARSERS)})") from error
    found: dict[str, object] = {}
    parts = _parts(text, {metric.point for metric in metrics})
    printed = [metric for metric in metrics if metric.ratio is None]
    for point in {metric.point: None for metric in printed}:
        if point in parts or not point:
            found.update(parser(parts[point] if point else text, [m for m in printed if m.point == point]))
    values: dict[str, float] = {}
    for metric in printed:
        if metric.name not in found:
            if metric.optional:
                continue
            raise OutputError(f"the output has no metric '{metric.name}'")
        values[metric.name] = _finite(metric.name, found[metric.name])
    return values | ratios(values, metrics)


def ratios(values: Mapping[str, float], metrics: Sequence[MetricSpec]) -> dict[str, float]:
    """Return the metrics that are computed; an optional one is left out where it has no value."""
    found = {}
    for metric in metrics:
        if metric.ratio is None:
            continue
        over, under = metric.ratio
        missing = [name for name in metric.ratio if name not in values]
        if not missing and values[under] != 0:
            value = values[over] / values[under]
            if not metric.optional:
                _finite(metric.name, value)
            if abs(value) <= LARGEST_NUMBER:
                found[metric.name] = value
        elif not metric.optional:
            why = f"the output has no '{missing[0]}'" if missing else f"'{under}' is 0"
            raise OutputError(f"the metric '{metric.name}' is '{over}' / '{under}', and {why}")
    return found


def _parts(text: str, labels: Set[str]) -> dict[str, str]:
    """Return what each point of a parameter matrix printed: the text behind its line '== LABEL'.

    A line '== results ==' of the workload itself separates nothing.
    """
    parts: dict[str, list[str]] = {}
    here: list[str] = []
    for line in text.splitlines(keepends=True):
        label = line[3:].strip() if line.startswith("== ") else ""
        if label and label in labels:
            here = parts.setdefault(label, [])
        else:
            here.append(line)
    return {label: "".join(lines) for label, lines in parts.items()}


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise OutputError(
            f"the metric '{name}' is not a number: {shown(value) if isinstance(value, str) else cut(value)}"
        )
    try:
        number = float(value)
    except ValueError as error:
        raise OutputError(
            f"the metric '{name}' is not a number: {shown(value) if isinstance(value, str) else cut(value)}"
        ) from error
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise OutputError(f"the metric '{name}' is not a finite number: {cut(value)}")
    if abs(number) > LARGEST_NUMBER:
        raise OutputError(f"the metric '{name}' is larger than {LARGEST_NUMBER:g}: {cut(value)}")
    return number


def _key_value(text: str, metrics: Sequence[MetricSpec]) -> Mapping[str, object]:
    """Lines 'key: value', 'key = value' or 'key value', each with or without a unit; each metric once."""
    wanted = {metric.at or metric.name: metric for metric in metrics}
    found: dict[str, object] = {}
    for line in text.splitlines():
        pair = of_known_key(line, wanted)
        if pair is None:
            continue
        metric = wanted[pair.key]
        if pair.unit not in ("", metric.unit):
            raise OutputError(
                f"the metric '{metric.name}' is in {shown(pair.unit)}, its manifest says '{metric.unit}'"
            )
        _add(found, metric.name, pair.value)
    return found


def _time(text: str, metrics: Sequence[MetricSpec]) -> Mapping[str, object]:
    """What `time` prints: 'real 0m1.234s' (bash, ksh) or 'real 1.23' (POSIX, time -p); in seconds."""
    wanted = {metric.at or metric.name: metric for metric in metrics}
    found: dict[str, object] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 2 or words[0] not in wanted:
            continue
        match = _MINUTES.fullmatch(words[1])
        value: object = words[1]
        if match is not None:
            value = 3600 * float(match["hours"] or 0) + 60 * float(match["minutes"]) + float(match["seconds"])
        _add(found, wanted[words[0]].name, value)
    return found


def _add(found: dict[str, object], name: str, value: object) -> None:
    """Take a value; refuse another one of the same metric, for nobody knows which of them is meant."""
    if found.setdefault(name, value) != value:
        raise OutputError(
            f"the metric '{name}' is printed twice, as {cut(found[name])} and as {cut(value)}; "
            "print it once, or choose the line with 'parse: regex'"
        )


def _json(text: str, metrics: Sequence[MetricSpec]) -> Mapping[str, object]:
    """The last JSON document of the output; `at` is a dotted path, numbers index lists.

    A key may hold dots itself, as fio's 'percentile.99.000000' does: the longest key that is there is taken.
    """
    document = _last_document(text)
    found: dict[str, object] = {}
    for metric in metrics:
        try:
            found[metric.name] = _at(document, metric.at or metric.name)
        except LookupError as error:
            if not metric.optional:
                raise OutputError(
                    f"the output has no metric '{metric.name}': nothing at '{metric.at or metric.name}'"
                ) from error
    return found


def _at(document: object, path: str) -> object:
    here, parts = document, path.split(".")
    while parts:
        keys = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
        key = next((key for key in keys if isinstance(here, dict) and key in here), parts[0])
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and (at := whole_number(key)) is not None and at < len(here):
            here = here[at]
        else:
            raise LookupError(path)
        parts = parts[key.count(".") + 1 :]
    return here


def _last_document(text: str) -> object:
    """Return the last document that begins a line and has the rest of its last line to itself.

    Other lines may stand before and behind. What is indented is a part of a document, never one. One that is
    broken is refused: a whole one before it is of an earlier time, and one behind it may be a part of it.
    """
    decoder, found, at = json.JSONDecoder(), "", 0
    while (start := _DOCUMENT.search(text, at)) is not None:
        begin = start.end() - 1
        try:
            _, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            if _is_broken(text, begin, error):
                found = text[begin:]
                break
            at = start.end()
            continue
        if _END_OF_LINE.match(text, at):
            found = text[begin:at]
    if not found:
        raise OutputError("the output holds no JSON document")
    try:
        return parse_json(found, "output")
    except RequestError as error:
        raise OutputError(f"the output holds no JSON document: {error.message}") from error


def _is_broken(text: str, begin: int, error: ValueError | RecursionError) -> bool:
    """Return whether what begins there, and is no document, was meant as one: by its head, or by its end."""
    if _OBJECT.match(text, begin) or not isinstance(error, json.JSONDecodeError):
        return True
    return not text[error.pos :].strip()


def _regex(text: str, metrics: Sequence[MetricSpec]) -> Mapping[str, object]:
    """The first group of each metric's expression, its last match; lines are matched as a whole text.

    A second group is the unit, from which the number is converted: a program may print 950 us, then 1.2 ms.
    Raises InfrastructureError as `last_matches`.
    """
    found = last_matches(text, {metric.name: metric.at for metric in metrics})
    return {m.name: _in_its_unit(m, found[m.name]) for m in metrics if m.name in found}


def _in_its_unit(metric: MetricSpec, match: LastMatch) -> object:
    if match.whole:
        raise OutputError(
            f"the expression of the metric '{metric.name}' takes {shown(match.number)} out of "
            f"{shown(match.whole)}: let its group match the whole number"
        )
    unit = match.unit.strip("()[]")
    if not unit:
        return match.number
    by = to_base(unit) if metric.unit == PRINTED_UNIT else factor(unit, metric.unit)
    if by is None:
        raise OutputError(
            f"the metric '{metric.name}' is in {shown(unit)}, which is no amount of '{metric.unit}'"
        )
    return _finite(metric.name, match.number) * by.numerator / by.denominator


_PARSERS: Mapping[str, Callable[[str, Sequence[MetricSpec]], Mapping[str, object]]] = {
    "key-value": _key_value,
    "time": _time,
    "json": _json,
    "regex": _regex,
}

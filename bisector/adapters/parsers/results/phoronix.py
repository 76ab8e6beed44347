"""Result files of the Phoronix Test Suite: its composite.xml, and what `result-file-to-json` makes of it.

Both hold tests, each with its unit ("scale"), which way is better ("proportion": HIB or LIB) and an entry for
each system that ran it: the mean, and where there were several executions their values ("raw").
"""

from __future__ import annotations

import contextlib
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bisector.adapters.parsers.input_text import json_list, malformed, parse_number, shown
from bisector.errors import RequestError
from bisector.model.goal import Direction
from bisector.schemas.documents.json_reader import parse_json
from bisector.stats.samples import SampleSeries, SampleSet

COMPOSITE = "composite.xml"
"""The file name of a result, in the folder that has the result's name."""

_BETTER: Mapping[str, Direction] = {"HIB": "higher", "LIB": "lower"}
_ROOT = "PhoronixTestSuite"


@dataclass(frozen=True, slots=True)
class _SystemResult:
    """One system's result of one test.

    raw: the values of its executions, as text; details: what else the suite says of them.
    """

    system: str
    test: str
    description: str
    scale: str
    proportion: str
    value: str
    raw: tuple[str, ...]
    details: object

    @property
    def failure(self) -> str:
        """Return why there is no value, in the suite's words where it has some."""
        error = self.details.get("error") if isinstance(self.details, dict) else None
        return str(error) if error else "the test gave no result"

    @property
    def metric(self) -> str:
        """Return 'pts/stream: Type: Copy': the test without its version, and its options."""
        name, _, version = self.test.rpartition("-")
        name = name if name and version.replace(".", "").isdigit() else self.test
        return f"{name}: {self.description}" if self.description else name


def looks_like_xml(text: str) -> bool:
    """Return whether a text is a composite.xml."""
    start = text.lstrip()
    return start.startswith("<") and f"<{_ROOT}" in start[:2000]


def looks_like_json(document: object) -> bool:
    """Return whether a JSON document is what `result-file-to-json` writes."""
    return (
        isinstance(document, dict)
        and isinstance(document.get("systems"), dict | list)
        and isinstance(document.get("results"), dict | list)
    )


def read_xml(text: str, where: str) -> list[SampleSet]:
    """Return one set for each system of a composite.xml. Raises RequestError."""
    try:
        root = xml.fromstring(text)  # noqa: S314 - expat refuses entities that grow without end
    except xml.ParseError as error:
        line = error.position[0]
        raise malformed(
            f"{where}:{line}",
            "the XML ends in the middle or is not valid",
            "run the test again: the Phoronix Test Suite was interrupted while it wrote",
            str(error),
        ) from error
    return _sets(_xml_entries(root), where)


def read_json(document: Mapping[str, Any], where: str) -> list[SampleSet]:
    """Return one set for each system of an exported result file. Raises RequestError."""
    return _sets(_json_entries(document, where), where)


def _xml_entries(root: xml.Element) -> Iterator[_SystemResult]:
    for result in root.iterfind("Result"):
        for entry in result.iterfind("Data/Entry"):
            raw = _text(entry, "RawString")
            yield _SystemResult(
                _text(entry, "Identifier"),
                _text(result, "Identifier") or _text(result, "Title"),
                _text(result, "Description"),
                _text(result, "Scale"),
                _text(result, "Proportion"),
                _text(entry, "Value"),
                tuple(raw.split(":")) if raw else (),
                _object(_text(entry, "JSON")),
            )


def _json_entries(document: Mapping[str, Any], where: str) -> Iterator[_SystemResult]:
    for result in _values(document["results"], where):
        if not isinstance(result, dict):
            raise malformed(where, "a test's result is no object", "export it again: result-file-to-json")
        entries = result.get("results") or {}
        if not isinstance(entries, dict):
            raise malformed(
                where, "the results of a test are no object", "export it again: result-file-to-json"
            )
        for system, entry in entries.items():
            entry = entry if isinstance(entry, dict) else {}
            yield _SystemResult(
                str(system),
                str(result.get("identifier") or result.get("title") or ""),
                str(result.get("description", "")),
                str(result.get("scale", "")),
                str(result.get("proportion", "")),
                str(entry.get("value", "")),
                tuple(str(value) for value in _values(entry.get("raw_values") or [], where)),
                entry.get("details"),
            )


def _values(found: object, where: str) -> Iterable[Any]:
    """Return the values of a mapping, which PHP writes as a list where it is empty."""
    return found.values() if isinstance(found, dict) else json_list(found, where)


def _object(text: str) -> object:
    with contextlib.suppress(RequestError):
        return parse_json(text, "")
    return None


def _text(element: xml.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _sets(entries: Iterable[_SystemResult], where: str) -> list[SampleSet]:
    series: dict[str, dict[str, SampleSeries]] = {}
    missing: dict[str, dict[str, str]] = {}
    for entry in entries:
        mine, absent = series.setdefault(entry.system, {}), missing.setdefault(entry.system, {})
        place = f"{where}: {shown(entry.metric)} of {shown(entry.system)}"
        if entry.metric in mine:
            raise malformed(place, "is there twice", "keep one of them: remove-results-from-result-file")
        if not entry.value:
            absent[entry.metric] = entry.failure
        elif entry.proportion not in _BETTER:
            absent[entry.metric] = f"'{entry.value[:20]}' is no measurement (neither HIB nor LIB)"
        else:
            values = tuple(parse_number(text, place) for text in entry.raw or (entry.value,))
            mine[entry.metric] = SampleSeries((values,), entry.scale, _BETTER[entry.proportion])
    found = [
        SampleSet(system or where, mine, missing=missing[system]) for system, mine in series.items() if mine
    ]
    if not found:
        why = "\n".join(f"{m}: {w}" for absent in missing.values() for m, w in absent.items())
        raise malformed(
            where,
            "the Phoronix Test Suite measured nothing",
            "look at its own messages: phoronix-test-suite list-test-errors",
            why,
        )
    notes = tuple(
        f"{shown(system or where)} in the same file is left out: no test of it gave a result"
        for system, mine in series.items()
        if not mine
    )
    return [replace(found[0], notes=notes), *found[1:]]

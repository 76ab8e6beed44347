"""Results in any form: the program that wrote them is recognised by the content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bisector.adapters.parsers.elf_sections import is_elf, sections
from bisector.adapters.parsers.input_text import malformed, read_standard_input, read_text
from bisector.adapters.parsers.results import (
    fio,
    google_benchmark,
    hyperfine,
    json_documents,
    lkp,
    mmtests,
    perf_stat,
    phoronix,
    plain_numbers,
    pytest_benchmark,
)
from bisector.schemas.documents.document import MAX_NAME_CHARACTERS, exists, shortened, why_no_file
from bisector.schemas.documents.json_reader import parse_documents
from bisector.stats.samples import SampleSet

FORMS = (
    "numbers (an empty line begins the next boot)",
    "'name: value' lines",
    'JSON {"metric": [run, ...]} (a list of lists: boots of runs)',
    "the output of time, perf stat (text or -j), fio --output-format=json, size",
    "hyperfine --export-json, pytest --benchmark-json, a Google Benchmark's --benchmark_format=json",
    "an MMTests run's folder or extract-mmtests.pl --print-json, an lkp result folder",
    "a Phoronix Test Suite result: composite.xml or result-file-to-json",
    "a kernel's vmlinux (its sizes)",
)


def read(place: str) -> list[SampleSet]:
    """Return the sets in a file, a folder or standard input ('-'): one a testbed, or one a file of `size`.

    Raises RequestError that says where what is wrong.
    """
    found = _read(place)
    for one in found:
        _refuse_long_names(one, "stdin" if place == "-" else place)
    return found


def _refuse_long_names(found: SampleSet, where: str) -> None:
    """Raise RequestError for a name, a unit or a reason that would fill every line that repeats it."""
    texts = [found.name, found.testbed, *found.series, *found.sizes]
    texts += [series.unit for series in found.series.values()]
    texts += [text for pair in found.missing.items() for text in pair]
    for text in texts:
        if len(text) > MAX_NAME_CHARACTERS:
            raise malformed(
                where,
                f"a name of {len(text):,} characters: '{shortened(text)}'",
                f"names, units and reasons have at most {MAX_NAME_CHARACTERS}",
            )


def _read(place: str) -> list[SampleSet]:
    if place == "-":
        return _named(_text(read_standard_input(), "stdin"), "stdin")
    path = Path(place)
    if path.is_dir():
        return _folder(path)
    if not exists(path):
        raise malformed(place, why_no_file(path), "a file, a folder, or - for standard input")
    if is_elf(path):
        return [SampleSet(_short(path), {}, sizes=sections(path))]
    return _named(_text(read_text(path), place), place)


def _folder(path: Path) -> list[SampleSet]:
    composite = path / phoronix.COMPOSITE
    if composite.exists():
        return phoronix.read_xml(read_text(composite), str(composite))
    if mmtests.looks_like(path):
        return [mmtests.read(path)]
    if lkp.looks_like(path):
        return [lkp.read(path)]
    raise malformed(
        str(path),
        "this folder holds no results that are known",
        "an MMTests run (it has iter-0), an lkp result (it has stats.json, 0/stats.json or matrix.json), or "
        "one of the Phoronix Test Suite (it has composite.xml)",
    )


def _text(text: str, where: str) -> list[SampleSet]:
    if not text.strip():
        raise malformed(where, "there is nothing in it", "; ".join(FORMS))
    start = text.lstrip()
    if start.startswith(("{", "[")):
        return _json(text, where)
    if phoronix.looks_like_xml(text):
        return phoronix.read_xml(text, where)
    if perf_stat.looks_like(text):
        return [perf_stat.text(text, where)]
    if plain_numbers.looks_sized(text):
        return plain_numbers.sized(text, where)
    if plain_numbers.looks_timed(text):
        return [plain_numbers.timed(text, where)]
    if "\n{" in text:  # fio and perf write messages before their JSON
        lines = text.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("{"))
        return _json("\n" * first + "\n".join(lines[first:]), where)
    if plain_numbers.looks_keyed(text):
        return [plain_numbers.keyed(text, where)]
    return [plain_numbers.plain(text, where)]


def _json(text: str, where: str) -> list[SampleSet]:
    found = parse_documents(text, where)
    if not found:
        raise malformed(where, "there is nothing in it", f"expected {json_documents.FORM}")
    if all(isinstance(d, dict) and "counter-value" in d for d in found):
        return [perf_stat.json_lines(found, where)]
    if all(fio.looks_like(d) for d in found):
        return [fio.read(found, where)]
    if len(found) > 1:
        raise malformed(
            where, f"{len(found)} JSON documents, of which only perf's and fio's may follow each other"
        )
    if phoronix.looks_like_json(found[0]):
        return phoronix.read_json(found[0], where)
    if hyperfine.looks_like(found[0]):
        return [hyperfine.read(found[0], where)]
    if google_benchmark.looks_like(found[0]):
        return [google_benchmark.read(found[0], where)]
    if pytest_benchmark.looks_like(found[0]):
        return [pytest_benchmark.read(found[0], where)]
    if mmtests.looks_extracted(found[0]):
        return [mmtests.extracted(found[0], where)]
    return json_documents.read(found[0], where)


def _named(sets: list[SampleSet], where: str) -> list[SampleSet]:
    """Give sets that are called as their file its name alone, without folder and ending."""
    return [replace(s, name=_short(Path(where))) if s.name == where else s for s in sets]


def _short(path: Path) -> str:
    return path.name if path.suffix in ("", ".0") or not path.stem else path.name.removesuffix(path.suffix)

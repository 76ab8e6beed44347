"""Bare numbers, 'name: value' lines, what `time` prints, and what `size` prints."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from bisector.adapters.parsers.input_text import NUMBER, malformed, parse_number
from bisector.adapters.parsers.key_values import separated
from bisector.schemas.documents.document import LARGEST_NUMBER
from bisector.stats.samples import SampleSeries, SampleSet

FORM = "numbers (an empty line begins the next boot), or 'name: value' lines"

_TIME = re.compile(r"\s*(?P<name>real|user|sys)\s+(?:(?:(?P<h>\d+)h)?(?P<m>\d+)m)?(?P<s>[\d.,]+)s?\s*")
_GNU = re.compile(
    r"(?<![\d.])(?P<user>[\d.]++)user\s+(?P<sys>[\d.]+)system\s+(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>[\d.]+)elapsed"
)
_VERBOSE = (
    ("user", re.compile(r"\s*User time \(seconds\): (?P<s>[\d.]+)")),
    ("sys", re.compile(r"\s*System time \(seconds\): (?P<s>[\d.]+)")),
    ("real", re.compile(r"\s*Elapsed \(wall clock\) time .*: (?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>[\d.]+)")),
)
_MAYBE_TIMED = re.compile(r"^\s*(?:real|user|sys)\s+\d|[eE]lapsed", re.MULTILINE)
_NUMBERS_ONLY = re.compile(r"[0-9.eE+\- \t\n]*")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_KEYED_LINE = re.compile(
    rf"^[ \t]*([^\s:=#]+)[ \t]*[:=][ \t]*({NUMBER})(?:[ \t]+([^\s#]+))?[ \t]*$", re.MULTILINE
)

_LINES_THAT_TELL = 1_000
"""Lines by which a text of 'name: value' lines is recognised; what another line holds is refused later."""

_SIZE_HEAD = re.compile(r"\s*text\s+data\s+bss\s+dec\s+hex\s+filename\s*")


def plain(text: str, where: str) -> SampleSet:
    """Read numbers; the metric is called 'value'. '#' begins a comment. Raises RequestError."""
    if quick := _numbers_only(text.replace("\r\n", "\n")):
        return SampleSet(where, {"value": SampleSeries(quick)})
    boots: list[list[float]] = [[]]
    for at, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].split()
        if not line:
            if boots[-1] and not raw.strip():
                boots.append([])
            continue
        boots[-1] += [parse_number(word, f"{where}:{at}", right=f"expected {FORM}") for word in line]
    full = tuple(tuple(boot) for boot in boots if boot)
    if not full:
        raise malformed(where, "there is no number in it", f"expected {FORM}")
    return SampleSet(where, {"value": SampleSeries(full)})


def _numbers_only(text: str) -> tuple[tuple[float, ...], ...]:
    """Return the boots of a text of nothing but numbers, quickly; () where there is anything to say."""
    if _NUMBERS_ONLY.fullmatch(text) is None:
        return ()
    try:
        boots = [tuple(map(float, part.split())) for part in _BLANK_LINES.split(text)]
    except ValueError:
        return ()
    return tuple(filter(None, boots)) if all(map(_in_range, boots)) else ()


def _in_range(values: Sequence[float]) -> bool:
    """Return whether all are numbers that `parse_number` takes; it says what is wrong with another."""
    return max(map(abs, values), default=0.0) <= LARGEST_NUMBER


def looks_keyed(text: str) -> bool:
    """Return whether most lines that say anything are 'name: value'."""
    data_lines = (x for x in text.splitlines() if x.strip() and not x.lstrip().startswith("#"))
    lines = list(itertools.islice(data_lines, _LINES_THAT_TELL))
    keyed = [x for x in lines if (pair := separated(x)) and re.fullmatch(NUMBER, pair.value)]
    return len(keyed) * 2 > len(lines)


def keyed(text: str, where: str) -> SampleSet:
    """Read 'name: value [unit]' lines, as lkp writes them; a name that comes again is the next run."""
    if quick := _one_metric(text) or _keyed_only(text):
        return SampleSet(where, quick)
    found: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for at, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0]
        if not line.strip():
            continue
        pair = separated(line)
        if pair is None:
            raise malformed(f"{where}:{at}", f"'{line.strip()[:60]}' is no 'name: value'", f"expected {FORM}")
        found.setdefault(pair.key, []).append(parse_number(pair.value, f"{where}:{at}"))
        if units.setdefault(pair.key, pair.unit) != pair.unit:
            raise malformed(
                f"{where}:{at}",
                f"'{pair.key}' is in '{pair.unit or 'no unit'}' here and in "
                f"'{units[pair.key] or 'no unit'}' above",
                "give every value of a metric in one unit",
            )
    return SampleSet(where, {name: SampleSeries((tuple(v),), units[name]) for name, v in found.items()})


def _one_metric(text: str) -> dict[str, SampleSeries]:
    """Return the metric of a text whose lines differ in nothing but their numbers; {} for any other."""
    text = text.removesuffix("\n")
    first = _KEYED_LINE.match(text)
    if first is None:
        return {}
    before, after = text[: first.start(2)], text[first.end(2) : first.end()]
    number = text.count("\n") + 1
    # A line without the unit, or with another name, makes one of the counts differ.
    if f"\n{text}".count(f"\n{before}") != number or f"{text}\n".count(f"{after}\n") != number:
        return {}
    values = f"\n{text}\n".replace(f"\n{before}", "\n").replace(f"{after}\n", "\n")[1:-1]
    one_a_line = " " not in values and "\t" not in values and "\n\n" not in f"\n{values}\n"
    found = _numbers_only(values) if one_a_line else ()
    return {first[1]: SampleSeries(found, first[3] or "")} if found else {}


def _keyed_only(text: str) -> dict[str, SampleSeries]:
    """Return the metrics of a text of nothing but such lines, quickly; {} where there is anything to say."""
    found: dict[tuple[str, str], list[float]] = {}
    lines = 0
    for match in _KEYED_LINE.finditer(text):
        key, value, unit = match.groups("")
        found.setdefault((key, unit), []).append(float(value))
        lines += 1
    names = [key for key, _ in found]
    quick = (
        lines == len(text.splitlines())
        and len(set(names)) == len(names)
        and all(map(_in_range, found.values()))
    )
    return (
        {key: SampleSeries((tuple(values),), unit) for (key, unit), values in found.items()} if quick else {}
    )


def looks_timed(text: str) -> bool:
    """Return whether this is what some `time` prints."""
    if _MAYBE_TIMED.search(text) is None:
        return False
    return any(_TIME.fullmatch(x) or _GNU.search(x) or _VERBOSE[2][1].match(x) for x in text.splitlines())


def timed(text: str, where: str) -> SampleSet:
    """Read the output of bash's, POSIX's or GNU's time; every 'real' is one run; seconds.

    A decimal comma is taken as one here: 0m5,328s has no other reading.
    """
    found: dict[str, list[float]] = {}
    for name, value in _timed(text, where):
        found.setdefault(name, []).append(value)
    if "real" not in found:
        raise malformed(
            where, "the output of time has no 'real' line", "time -p COMMAND prints real, user and sys"
        )
    order = [name for name in ("real", "user", "sys") if name in found]
    return SampleSet(where, {name: SampleSeries((tuple(found[name]),), "s", "lower") for name in order})


def _timed(text: str, where: str) -> Iterator[tuple[str, float]]:
    for at, line in enumerate(text.splitlines(), start=1):
        match = _TIME.fullmatch(line)
        if match is not None:
            yield match["name"], _seconds(match, f"{where}:{at}")
            continue
        match = _GNU.search(line)
        if match is not None:
            yield "real", _seconds(match, f"{where}:{at}")
            yield "user", parse_number(match["user"], f"{where}:{at}")
            yield "sys", parse_number(match["sys"], f"{where}:{at}")
            continue
        for name, pattern in _VERBOSE:
            match = pattern.match(line)
            if match is not None:
                yield name, _seconds(match, f"{where}:{at}")


def _seconds(match: re.Match[str], where: str) -> float:
    parts = match.groupdict()
    whole = 3600 * parse_number(parts.get("h") or "0", where) + 60 * parse_number(
        parts.get("m") or "0", where
    )
    return whole + parse_number(match["s"].replace(",", "."), where)


def looks_sized(text: str) -> bool:
    """Return whether this is what `size` prints."""
    return "filename" in text and any(_SIZE_HEAD.fullmatch(x) for x in text.splitlines())


def sized(text: str, where: str) -> list[SampleSet]:
    """Read the output of `size vmlinux...`: one set for each file, in bytes."""
    rows = [x.split(None, 5) for x in text.splitlines() if x.strip() and not _SIZE_HEAD.fullmatch(x)]
    out = []
    for row in rows:
        if len(row) != 6:
            raise malformed(where, f"'{' '.join(row)}' is not a line of `size`", "size vmlinux")
        names = ("text", "data", "bss")
        sizes = {name: int(parse_number(word, where)) for name, word in zip(names, row, strict=False)}
        out.append(SampleSet(row[5], {}, sizes=sizes))
    return out

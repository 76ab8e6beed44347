"""Read the arguments of `perfbisect compare` as columns of samples: files, folders, stdin, commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bisector.app.machines.one_firmware import require_one_firmware
from bisector.errors import PerfbisectError, RequestError, nearest
from bisector.interfaces.cli import ask
from bisector.interfaces.cli.comparisons.repeated_inputs import Place, by_full_ids, refuse_repeated
from bisector.model.facts import KernelFacts
from bisector.model.goal import MODELLED, Direction
from bisector.report import kernel_differences
from bisector.schemas.documents.document import (
    MAX_NAME_CHARACTERS,
    NO_SUCH_FILE,
    exists,
    shortened,
    why_no_file,
)
from bisector.stats.samples import (
    SampleSeries,
    SampleSet,
    halves,
    models_differ,
    name_one_testbed,
    with_ratios,
)
from bisector.stats.units import convert

Column = list[SampleSet]

_SETTINGS_NAMED = 5
"""Settings of the machine that a note names, so that it stays two lines; 'perfbisect show' has them all."""

_NAMES_LISTED = 20
"""Metrics that an error names: lkp measures thousands."""

_LABELLED = re.compile(r"(?P<label>[^=@]+)(?:@(?P<testbed>[^=]+))?=(?P<place>.+)")
_STORED = re.compile(r"(?P<bisection>[a-z0-9][\w.-]*):(?P<rev>.+)")


def read_columns(wanted: Sequence[str], bisection: str | None, unit: str = "") -> tuple[list[Column], bool]:
    """Return one column for each kernel, and whether a kernel is compared with itself.

    unit: of numbers without one. Every metric is in one unit, that of the first place that has it.
    The same place twice is one kernel, whose boots are divided into two halves. Places with the same label
    are one kernel on several testbeds, or in more boots. Raises RequestError.
    """
    places = [_split(argument) for argument in wanted]
    if bisection is not None and all(is_input(p) or parse_stored_commit(p) for _, _, p in places):
        raise RequestError("--bisection has no effect: no input is a commit of it", cure="leave it out")
    refuse_two_inputs([place for _, _, place in places])
    same = by_full_ids([None if is_input(p) else _commit_of(p, bisection) for _, _, p in places])
    keys = [
        (label, testbed, full or place) for (label, testbed, place), full in zip(places, same, strict=True)
    ]
    if len(places) == 2 and keys[0] == keys[1]:
        pairs = [halves(s) for s in _in_one_unit([_read(places[0][2], bisection)], unit)[0]]
        return [[p[0] for p in pairs], [p[1] for p in pairs]], True
    refuse_repeated(places, keys)
    by_label: dict[str, Column] = {}
    labels = _labels(places)
    found = _in_one_unit([_read(place, bisection) for _, _, place in places], unit)
    own = [{s.name for s in sets} for sets in found]
    named = all(len(names) == 1 for names in own) and len(set.union(*own)) == len(set(labels))
    for (given, testbed, _), label, sets in zip(places, labels, found, strict=True):
        several = named or len({s.name for s in sets}) > 1  # `size` of two kernels in one file
        for one in sets:
            name = one.name if several and given is None else label
            one = replace(one, name=name, testbed=testbed if testbed is not None else one.testbed)
            _add(by_label.setdefault(name, []), one)
    found_columns = list(by_label.values())
    if all(testbed is None for _, testbed, _ in places):
        found_columns = name_one_testbed(found_columns)
    require_one_firmware(found_columns)
    _note_settings(found_columns)
    return [[with_ratios(s) for s in column] for column in found_columns], False


def _note_settings(found: list[Column]) -> None:
    """Add a note to each column whose machine had other settings than the base's on the same testbed."""
    for column in found[1:]:
        for i, one in enumerate(column):
            base = next((s for s in found[0] if s.testbed == one.testbed), None)
            if base is None or not (base.facts and one.facts):
                continue
            seen = kernel_differences.compare(KernelFacts(), KernelFacts(), base.facts, one.facts)
            changes = [*seen.settings, *seen.mitigations, *seen.sysctls]
            if changes:
                named = [f"{name}: {before} -> {after}" for name, before, after in changes[:_SETTINGS_NAMED]]
                if len(changes) > _SETTINGS_NAMED:
                    named.append(f"and {len(changes) - _SETTINGS_NAMED} more")
                note = f"its machine was set otherwise than {base.name}'s: {'; '.join(named)}"
                column[i] = replace(one, notes=(*one.notes, note))


def parse_stored_commit(place: str) -> tuple[str, str] | None:
    """Return (bisection, rev) if a place is written as a commit of a bisection."""
    match = _STORED.fullmatch(place)
    return (match["bisection"], match["rev"]) if match is not None else None


def _in_one_unit(found: list[Column], default: str) -> list[Column]:
    """Return the sets with every metric in the unit in which it comes first. Raises RequestError.

    default: the unit of numbers without one.
    """
    if default and all(series.unit for sets in found for s in sets for series in s.series.values()):
        raise RequestError("--unit has no effect: every number has a unit", cure="leave it out")
    first: dict[str, tuple[str, str]] = {}

    def one(where: str, metric: str, series: SampleSeries) -> SampleSeries:
        series = replace(series, unit=series.unit or default)
        unit, before = first.setdefault(metric, (series.unit, where))
        try:
            return series if series.unit == unit else convert(series, unit)
        except ValueError as error:
            shown = [f"in '{u}'" if u else "without a unit" for u in (unit, series.unit)]
            known = unit or series.unit
            raise RequestError(
                f"'{shortened(metric)}' is {shown[0]} in {before} and {shown[1]} in {where}",
                cure="give both in one unit"
                + (
                    ""
                    if unit and series.unit
                    else f"; --unit {known} says that numbers without one are in it"
                ),
            ) from error

    return [
        [replace(s, series={n: one(s.name, n, series) for n, series in s.series.items()}) for s in sets]
        for sets in found
    ]


def with_directions(found: list[Column], better: Mapping[str, Direction]) -> list[Column]:
    """Return the columns with the directions that the command line gives; '' is for every metric."""

    def with_direction(name: str, series: SampleSeries) -> SampleSeries:
        way = better.get(name, better.get("", series.better))
        return replace(series, better=way)

    known = {name for column in found for s in column for name in s.series}
    for name in better:
        if name and name not in known:
            raise unknown_metric("--better", name, sorted(known))
    return [
        [replace(s, series={n: with_direction(n, x) for n, x in s.series.items()}) for s in c] for c in found
    ]


def require_metrics(columns: Sequence[Column], names: Iterable[str]) -> None:
    """Raise RequestError for a metric that no column has."""
    known = dict.fromkeys(name for column in columns for samples in column for name in samples.series)
    for name in names:
        if name not in known:
            raise unknown_metric("--metric", name, known)


def unknown_metric(option: str, name: str, known: Iterable[str]) -> RequestError:
    """Return the refusal of a metric that nothing has measured."""
    names = list(known)
    return RequestError(
        f"{option}: there is no metric '{shortened(name)}'{nearest(name, names)}",
        details=f"metrics measured: {listed(names) or 'none'}",
        cure="name one that was measured",
    )


def listed(names: Sequence[str]) -> str:
    """Return names for the details of an error, at most 20 and on one line."""
    more = f" and {len(names) - _NAMES_LISTED:,} more" if len(names) > _NAMES_LISTED else ""
    return ", ".join(map(shortened, names[:_NAMES_LISTED])) + more


def refuse_two_inputs(places: Sequence[str]) -> None:
    """Raise RequestError where several arguments are '-'."""
    if places.count("-") > 1:
        raise RequestError("standard input can be read only once", cure="write it to a file first")


def refuse_overwriting(option: str, out: Path | None, places: Iterable[str]) -> None:
    """Raise RequestError where the file of a result is one that is read: what was measured would be lost."""
    if out is None or not exists(out):
        return
    for place in places:
        if place != "-" and exists(Path(place)) and out.samefile(place):
            raise RequestError(
                f"{option}: {shortened(str(out))} is one of the inputs, which it would replace",
                cure="name another file",
            )


def place_of(argument: str) -> str:
    """Return an argument without its label and testbed. Raises RequestError."""
    return _split(argument)[2]


def _split(argument: str) -> Place:
    match = _LABELLED.fullmatch(argument)
    if match is None or argument == "-" or exists(Path(argument)):
        return None, None, argument
    if "/" in argument[: match.start("place")] and not exists(Path(match["place"])):
        return None, None, argument  # the path of a file that is not there, rather than '10000/1000=file'
    for part in (match["label"], match["testbed"] or ""):
        if len(part) > MAX_NAME_CHARACTERS:
            raise RequestError(
                f"the label '{shortened(part)}' has {len(part):,} characters",
                cure=f"write at most {MAX_NAME_CHARACTERS}",
            )
    return match["label"], match["testbed"], match["place"]


def is_input(place: str) -> bool:
    """Return whether a place is none that could be a commit: something is there, readable or not."""
    return place == "-" or why_no_file(Path(place)) != NO_SUCH_FILE


def _commit_of(place: str, bisection: str | None) -> tuple[str | None, str]:
    return parse_stored_commit(place) or (bisection, place)


def _read(place: str, bisection: str | None) -> list[SampleSet]:
    from bisector.app.import_results import read_results

    if is_input(place):
        return read_results(place)
    stored = parse_stored_commit(place)
    try:
        return ask.operations().samples(*_commit_of(place, bisection))
    except PerfbisectError as error:
        if bisection is not None or stored is not None:
            raise
        raise RequestError(
            f"{place}: there is no such file, and no commit of the latest bisection has that name",
            details=error.message,
            cure="give a file, a folder, '-', or BISECTION:REV ('perfbisect list' shows bisections)",
        ) from error


def _add(column: Column, one: SampleSet) -> None:
    """Add a set to its column. Where the column has the testbed already, the boots are appended to it."""
    for i, known in enumerate(column):
        if known.testbed == one.testbed:
            require_one_firmware([[known], [one]])
            _require_one_model(known, one)
            series = dict(known.series)
            for name, new in one.series.items():
                old = series.get(name)
                series[name] = replace(old, boots=(*old.boots, *new.boots)) if old is not None else new
            missing = {k: v for k, v in {**one.missing, **known.missing}.items() if k not in series}
            column[i] = replace(
                known,
                series=series,
                missing=missing,
                notes=(*known.notes, *one.notes),
                sizes={**one.sizes, **known.sizes},
                facts={**one.facts, **known.facts},
                modelled=known.modelled or one.modelled,
            )
            return
    column.append(one)


def _require_one_model(known: SampleSet, one: SampleSet) -> None:
    """Raise RequestError for boots of one kernel whose misses or cycles are of two models."""
    series = (*known.series.values(), *one.series.values())
    if models_differ(known, one) and any(each.unit.startswith(MODELLED) for each in series):
        raise RequestError(
            f"{known.name}: some of its numbers are of two models: {known.modelled} and {one.modelled}",
            cure="give each model a label of its own",
        )


def _labels(places: Sequence[Place]) -> list[str]:
    """Return a name for each place: the label it was given, else its file's name, else its whole path."""
    short = [Path(place).name if exists(Path(place)) else place for _, _, place in places]
    stems = [
        Path(s).stem if Path(p).is_file() and Path(s).stem else s
        for s, (_, _, p) in zip(short, places, strict=True)
    ]
    for names in (stems, short):
        if len(set(names)) == len(set(places)):
            break
    else:
        names = [place for _, _, place in places]
    return [
        given or ("stdin" if name == "-" else name) for (given, _, _), name in zip(places, names, strict=True)
    ]

"""Named sets of samples. A metric is a list of boots of runs, or a published mean.

No file formats are here (adapters/parsers/results), and no statistics (comparison.py).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bisector.model.goal import MODELLED, Direction, worse_sign

Boots = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class SampleSeries:
    """One metric of one set.

    boots: values of runs, boot by boot, in `unit`. Where only a mean was published it is the one value,
    `error` is its relative standard error (perf stat's +-%) and `repeats` the number of its runs (0: not
    known). better None: the source does not say which way is better.
    """

    boots: tuple[tuple[float, ...], ...]
    unit: str = ""
    better: Direction | None = None
    error: float | None = None
    repeats: int = 0

    @property
    def values(self) -> tuple[float, ...]:
        """All finite runs, boots one after the other."""
        runs = self.boots[0] if len(self.boots) == 1 else tuple(itertools.chain.from_iterable(self.boots))
        return runs if all(map(math.isfinite, runs)) else tuple(filter(math.isfinite, runs))

    @property
    def published(self) -> bool:
        """Whether this is a mean without the runs behind it."""
        return self.error is not None or self.repeats > 1


@dataclass(frozen=True, slots=True)
class SampleSet:
    """All that was measured of one kernel on one testbed.

    missing: metric -> why there is no number ('not supported'); notes: what the reader of its file found odd;
    sizes: bytes of the kernel's sections (text, data, bss), empty if not known; facts: of the machine as it
    was measured (clocksource, sysctls, mount options), empty if not collected; modelled: the processor of the
    model that numbers with such a unit are of, in words, '' if not known.
    """

    name: str
    series: Mapping[str, SampleSeries]
    testbed: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    modelled: str = ""


def name_one_testbed(columns: Sequence[Sequence[SampleSet]]) -> list[list[SampleSet]]:
    """Return the columns where sets without a testbed's name have the only name that others have.

    Those of other programs have none, nor those of a bisection on a single testbed. Of several names nothing
    tells which one it is; and a column that has that one stays as it is.
    """
    names = {one.testbed for column in columns for one in column} - {""}
    if len(names) != 1:
        return [list(column) for column in columns]
    (name,) = names
    return [
        list(column) if any(one.testbed for one in column) else [replace(one, testbed=name) for one in column]
        for column in columns
    ]


def models_differ(a: SampleSet, b: SampleSet) -> bool:
    """Return whether what two sets have of a model is of two models, and does not compare."""
    return bool(a.modelled and b.modelled and a.modelled != b.modelled)


_HIGHER_IS_BETTER_NAME = re.compile(
    r"(^|[._\- /])(iops|bw|bw_bytes|bandwidth|throughput|[kmgt]?(fl)?ops|bogoops|jops|tps|qps|score|hits?|"
    r"ipc)$"
    r"|per_?sec(ond)?$|_per_s$|/s(ec)?$|insn[s_ ]*per[_ ]cycle",
    re.IGNORECASE,
)
"""Names of quantities of which more is better, as fio, MMTests, lkp and SPEC write them."""
_RATE_UNIT = re.compile(r"^[A-Za-z]*/s(ec)?$|^(ops|jOPs|tps|IOPS)$", re.IGNORECASE)
_PER_SECOND = re.compile(r"[._\- /]?(per_?sec(ond)?|per_s|/s(ec)?)$", re.IGNORECASE)
_COST = re.compile(
    r"(?<![a-z])(drop(s|ped)?|err(s|ors?)?|faults?|miss(es|ed)?|lost|loss(es)?|retrans[a-z]*|stall(s|ed)?|"
    r"time-?outs?|over(run|flow)s?|fail(s|ed|ures?)?|abort(s|ed)?|conflicts?|collisions?|reject(s|ed|ions)?|"
    r"discard(s|ed)?|retr(y|ies)|switches|migrations|latenc(y|ies)|delays?)(?![a-z])",
    re.IGNORECASE,
)
"""Names of what costs, also where it is counted by the second."""


def direction(name: str, series: SampleSeries) -> Direction:
    """Return which way the metric is better: as its source says, else by unit and name, else 'lower'.

    Most metrics are costs (time, cycles, misses, bytes), and a rate of costs is one: drops per second.
    """
    if series.better is not None:
        return series.better
    if _is_cost(name, series.unit):
        return "lower"
    return "higher" if _RATE_UNIT.search(series.unit) or _HIGHER_IS_BETTER_NAME.search(name) else "lower"


def _is_cost(name: str, unit: str) -> bool:
    """Return whether the last part of a name, or its unit, says so: 'fault.ops' counts what a test did."""
    last = _PER_SECOND.sub("", name).rpartition(".")[2]
    return _COST.search(last) is not None or _COST.search(unit) is not None


_SPEED_UNIT = re.compile(
    r"^(s|sec|secs|seconds?|ms|msec|us|usec|µs|ns|nsec|min|minutes?)(/[a-z]+)?$"
    r"|/s(ec)?$|(?<![a-z])([kmgt]?(fl)?|bogo|j)ops$|^tps$",
    re.IGNORECASE,
)
_TIME_NAME = re.compile(
    r"(^|[._\- ])(real|user|sys|elapsed|seconds|time|latency|lat|clat|slat|duration|value|mean)([._\- ]|$)",
    re.IGNORECASE,
)
_NAMED_AFTER_NOTHING = re.compile(r"value|mean", re.IGNORECASE)
"""Names that say nothing: a 'value' in dB is no time."""


def word(change: float, name: str, series: SampleSeries, better: Direction) -> str:
    """Return what a relative change of the number means: 'slower', 'faster', 'more, worse', 'less, better'.

    Times and rates are slower or faster; of anything else (cycles, drops per second) there is more or less.
    """
    if change == 0:
        return "the same"
    worse = change * worse_sign(better) > 0
    amount = f"{'more' if change > 0 else 'less'}, {'worse' if worse else 'better'}"
    if _RATE_UNIT.search(series.unit) and _is_cost(name, series.unit):
        return amount
    timed = _TIME_NAME.search(name) and (not series.unit or _NAMED_AFTER_NOTHING.fullmatch(name) is None)
    if _SPEED_UNIT.search(series.unit) or _RATE_UNIT.search(series.unit) or timed:
        return "slower" if worse else "faster"
    if better == "higher" and not series.unit and _HIGHER_IS_BETTER_NAME.search(name):
        return "slower" if worse else "faster"
    return amount


RATIOS: tuple[tuple[str, str, str, Direction], ...] = (
    ("ipc", "instructions", "cycles", "higher"),
    ("L1-miss-ratio", "L1-dcache-load-misses", "L1-dcache-loads", "lower"),
    ("cache-miss-ratio", "cache-misses", "cache-references", "lower"),
    ("branch-miss-ratio", "branch-misses", "branches", "lower"),
)
"""(name, numerator, denominator, better): the ratios of counters that perf itself prints beside them."""


def with_ratios(found: SampleSet, wanted: Sequence[tuple[str, str, str, Direction]] = RATIOS) -> SampleSet:
    """Return the set with the ratios of its metrics; run by run where runs pair, else of the means.

    The relative errors of published means add in squares, as independent errors do.
    """
    series = dict(found.series)
    for name, over, under, better in wanted:
        if name in series or over not in series or under not in series:
            continue
        top, bottom = series[over], series[under]
        if any(v == 0 for v in bottom.values) or not bottom.values or not top.values:
            continue
        boots = _paired(top.boots, bottom.boots) or ((_mean(top.values) / _mean(bottom.values),),)
        error = None
        if top.error is not None and bottom.error is not None:
            error = math.hypot(top.error, bottom.error)
        modelled = any(one.unit.startswith(MODELLED) for one in (top, bottom))
        unit = f"{MODELLED}ratio" if modelled else ""
        series[name] = SampleSeries(boots, unit, better, error, min(top.repeats, bottom.repeats))
    return replace(found, series=series)


def _paired(top: Boots, bottom: Boots) -> tuple[tuple[float, ...], ...]:
    """Return the ratios of the boots that have as many runs of both; none where boots do not pair."""
    if len(top) != len(bottom):
        return ()
    pairs = [(a, b) for a, b in zip(top, bottom, strict=True) if a and len(a) == len(b)]
    return tuple(tuple(x / y for x, y in zip(a, b, strict=True)) for a, b in pairs)


def halves(found: SampleSet) -> tuple[SampleSet, SampleSet]:
    """Return every other boot (or run of the only boot) as two sets: a kernel against itself."""

    def half(part: int) -> dict[str, SampleSeries]:
        return {name: replace(s, boots=_every_other(s.boots, part)) for name, s in found.series.items()}

    return (
        replace(found, name=f"{found.name} (1st half)", series=half(0), sizes={}),
        replace(found, name=f"{found.name} (2nd half)", series=half(1), sizes={}),
    )


def _every_other(boots: Boots, part: int) -> tuple[tuple[float, ...], ...]:
    full = [tuple(b) for b in boots if b]
    return tuple(full[part::2]) if len(full) > 1 else tuple(b[part::2] for b in full)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)

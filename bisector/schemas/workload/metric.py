"""A metric of a manifest: its unit, direction, threshold and place in the output."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from bisector.errors import nearest
from bisector.model.goal import Direction, Metric, TestbedClock, Threshold
from bisector.schemas.documents.document import LARGEST_NUMBER, shortened
from bisector.schemas.loading import Distinct, Spec, matching, regular_expression
from bisector.schemas.refusal import WrongKeyError

_THRESHOLD = re.compile(r"\s*(?P<value>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)\s*(?P<unit>\S.*?)?\s*")
PERCENT_RANGE = (1e-6, 1e4)
"""From what counted instructions can show (1 of 10^8) to a change to the hundredfold."""

UNIT_GROUP = "unit"
"""The name of a second group of 'at': the unit that is printed behind the number."""
PRINTED_UNIT = "units"
"""The unit of a metric without a unit of its own: the printed one without its prefix (us: s, KiB/s: B/s)."""
_UNIT_CHARACTERS = 40
"""Longest unit: chosen, so that a line of a table still has room for the number."""

_SECONDS = ("s", "sec", "secs", "second", "seconds")

_RATIO = re.compile(r"(?P<over>[A-Za-z][\w.-]*)\s*/\s*(?P<under>[A-Za-z][\w.-]*)")


class MetricManifest(Spec):
    """One number of each run."""

    name: Annotated[
        str, matching(r"[A-Za-z][A-Za-z0-9_.-]{0,99}", "up to 100 of letters, digits, '.', '_' and '-'")
    ] = Field(description="as the workload prints it, unless 'at' says otherwise")
    unit: str = Field(
        min_length=1, max_length=_UNIT_CHARACTERS, description="as the workload prints it: 's', 'ops/s', ..."
    )
    better: Direction = Field(description="'lower' or 'higher'")
    threshold: str = Field(description="smallest change worth blaming: '5%', or absolute with unit: '0.1 s'")
    decides: bool = Field(default=False, description="the metric that the search follows; one for each clock")
    clocks: Distinct[TestbedClock] = Field(
        default=("wall", "instructions"), min_length=1, description="the clocks under which it can decide"
    )
    optional: bool = Field(default=False, description="a run without it is a good run; it cannot decide")
    at: str = Field(
        default="",
        description="its place in the output, if not under its name: a dotted path (json), a regular "
        "expression with one group, and '(?P<unit>...)' behind it for the unit (regex), the key (key-value, "
        "time), the name in 'compare' (results)",
    )

    ratio: str = Field(
        default="", description="'A / B': computed from two other metrics of the same run, not printed"
    )

    @field_validator("ratio")
    @classmethod
    def _two_names(cls, value: str) -> str:
        if value and _RATIO.fullmatch(value) is None:
            raise ValueError("write the names of two metrics, as in 'cycles / instructions'")
        return value

    @property
    def operands(self) -> tuple[str, str] | None:
        """Numerator and denominator of a ratio, by name."""
        match = _RATIO.fullmatch(self.ratio)
        return (match["over"], match["under"]) if match is not None else None

    @field_validator("threshold", mode="before")
    @classmethod
    def _with_unit(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError("a threshold needs a unit: '5%' of the good level, or an amount such as '0.1 s'")
        return value

    @field_validator("threshold", mode="after")
    @classmethod
    def _understood(cls, value: str, info: ValidationInfo) -> str:
        if "unit" in info.data:  # a wrong unit has its own error
            parse_threshold(value, info.data["unit"])
        return value

    def metric(self) -> Metric:
        """Return the metric for the search."""
        return Metric(self.name, self.unit, self.better, parse_threshold(self.threshold, self.unit))


def parse_threshold(text: str, unit: str) -> Threshold:
    """Read '5%' or '0.1 s' for a metric in `unit`. Raises ValueError that says what would be right."""
    match = _THRESHOLD.fullmatch(text)
    right = f"write '5%' (of the good level) or an amount in the metric's unit, such as '0.1 {unit}'"
    if match is None:
        raise ValueError(f"the threshold '{shortened(text)}' is not a number with a unit; {right}")
    value, found = float(match["value"]), match["unit"]
    if found is None:
        raise ValueError(f"the threshold '{shortened(text)}' has no unit; {right}")
    if value <= 0:
        raise ValueError(f"the threshold '{shortened(text)}' must be above zero; {right}")
    least, most = PERCENT_RANGE if found == "%" else (1 / LARGEST_NUMBER, LARGEST_NUMBER)
    if found in ("%", unit) and not least <= value <= most:
        raise ValueError(f"the threshold '{shortened(text)}' must be from {least:g} to {most:g} {found}")
    if found == "%":
        return Threshold(value / 100.0, relative=True)
    if found != unit:
        raise ValueError(f"the threshold '{shortened(text)}' is not in the metric's unit '{unit}'; {right}")
    return Threshold(value, relative=False)


def unit_of_threshold(text: str) -> str:
    """Return the unit of an absolute threshold; nothing for '5%' and for what `parse_threshold` refuses."""
    match = _THRESHOLD.fullmatch(text)
    found = match["unit"] or "" if match is not None else ""
    return found if found != "%" and len(found) <= _UNIT_CHARACTERS else ""


def check_ratio(
    ratio: MetricManifest,
    metrics: tuple[MetricManifest, ...],
    counted: tuple[str, ...] = (),
    *,
    one_point: bool = True,
) -> None:
    """Raise ValueError unless both metrics of a ratio are there, in every run if it is not optional.

    counted: those of them that emulated guests count, of a whole run; all others must be printed. one_point:
    whether a run executes one combination of parameters.
    """
    printed = {metric.name: metric for metric in metrics if not metric.ratio}
    if ratio.at:
        raise ValueError(f"metric '{ratio.name}' is a ratio and has no place in the output: leave 'at' out")
    if counted and ratio.clocks != ("instructions",):
        raise ValueError(
            f"metric '{ratio.name}' needs 'clocks: [instructions]': only emulated guests count '{counted[0]}'"
        )
    if counted and not one_point:
        raise ValueError(f"'{counted[0]}' is counted in a whole run: parameters need one value each")
    for name in ratio.operands or ():
        if name in counted:
            continue
        if name not in printed:
            raise ValueError(f"metric '{ratio.name}': no metric '{name}' is printed{nearest(name, printed)}")
        if printed[name].optional and not ratio.optional:
            raise ValueError(f"metric '{ratio.name}' must be optional, because '{name}' is")


def check_pattern(metric: MetricManifest) -> None:
    """Raise ValueError unless `at` is a regular expression with one group, or one more for the unit."""
    found = regular_expression(metric.at)
    if found.groups != 1 and not (found.groups == 2 and found.groupindex.get(UNIT_GROUP) == 2):
        raise ValueError(f"metric '{metric.name}': 'at' needs exactly one group, the number")


def check_seconds(parse: str, metrics: tuple[MetricManifest, ...]) -> None:
    """Raise WrongKeyError unless what is read as seconds is in seconds, and of 'elapsed' one metric is it.

    Nothing converts these numbers: in 'ms' 0.1 seconds would be 0.1 ms.
    """
    if parse not in ("time", "elapsed"):
        return
    timed = [(number, metric) for number, metric in enumerate(metrics) if not metric.ratio]
    if parse == "elapsed" and len(timed) > 1:
        number, other = timed[1]
        raise WrongKeyError(
            f"'parse: elapsed' gives one number, the seconds of '{timed[0][1].name}', and no '{other.name}'",
            *("metrics", str(number)),
            cure="take it out, or print all metrics and leave 'parse: elapsed' out",
        )
    for number, metric in timed:
        if metric.unit not in _SECONDS:
            raise WrongKeyError(
                f"'parse: {parse}' gives seconds, which '{metric.name}' in '{metric.unit}' is not",
                *("metrics", str(number), "unit"),
                cure="write 'unit: s', and a threshold that is no percentage in it",
            )

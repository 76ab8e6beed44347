"""What the repetitions of a boot differ by where each boot repeats it, as under the instruction clock.

The first runs of a boot execute more than later ones. A mean over one run against a mean over three would
compare how often was run: as in the search, repetition k is compared with repetition k.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

_DIGITS = 12
"""Significant digits of a level: a double has 16, and of these the last ones would tell equal runs apart."""


@dataclass(frozen=True, slots=True)
class RepetitionPattern:
    """How far each repetition lies from the one that levels are of.

    reference: that one; None without a pattern. steps: repetition -> its ratio to the reference where all
    values are positive (ratios), else its difference.
    """

    reference: int | None = None
    steps: Mapping[int, float] = field(default_factory=dict)
    ratios: bool = False

    def level(self, repetition: int, value: float) -> float:
        """Return what the reference repetition would have read; the value where that is unknown."""
        step = self.steps.get(repetition)
        if step is None:
            return value
        return float(f"{value / step if self.ratios else value - step:.{_DIGITS}g}")

    @property
    def words(self) -> str:
        """What a mean is of, to follow it: ' as of run 1'; '' where runs are taken as they are."""
        return "" if self.reference is None else f" as of run {self.reference}"


NO_PATTERN = RepetitionPattern()
"""All runs are taken as they are."""


def find(boots: Iterable[Sequence[tuple[int, float]]]) -> RepetitionPattern:
    """Return the pattern of boots: (repetition, value) of the runs that count.

    The reference is the repetition that most boots have, the earliest of these; a step is the median over
    the boots that have both. None is looked for where all boots have the same repetitions: their means
    compare as they are.
    """
    finite = [found for boot in boots if (found := {k: v for k, v in boot if math.isfinite(v)})]
    having = Counter(k for boot in finite for k in boot)
    if set(having.values()) <= {len(finite)}:
        return NO_PATTERN
    reference = min(having, key=lambda k: (-having[k], k))
    ratios = all(value > 0 for boot in finite for value in boot.values())
    steps: dict[int, list[float]] = {}
    for boot in finite:
        if reference in boot:
            own = boot[reference]
            for k, value in boot.items():
                steps.setdefault(k, []).append(value / own if ratios else value - own)
    return RepetitionPattern(reference, {k: median(found) for k, found in steps.items()}, ratios)

"""How one synthetic testbed differs from the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TestbedTraits:
    """Factors on a testbed's noise of runs and boots, and on the effects of the culprits there.

    shown: share of the boots that show effects, 1/shown times as large: their mean is the same.
    """

    __test__ = False  # not a pytest class

    testbed: str
    noise: float = 1.0
    effect: float = 1.0
    shown: float = 1.0

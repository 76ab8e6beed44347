"""How one synthetic testbed differs from the others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TestbedTraits:
    """Factors on a testbed's noise of runs and boots, and on the effects of the culprits there."""

    __test__ = False  # not a pytest class

    testbed: str
    noise: float = 1.0
    effect: float = 1.0

"""The kinds of noise and drift of the simulator, with the texts that its help prints, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bisector.errors import RequestError

NoiseKind = Literal["gauss", "t3", "lognormal", "bimodal", "ar1", "outliers"]
DriftKind = Literal["none", "linear", "walk", "step"]

NOISE_KINDS: Mapping[str, str] = {
    "gauss": "normal",
    "t3": "Student t with 3 degrees of freedom, scaled to the stated deviation: heavy tails on both sides",
    "lognormal": "lognormal of shape 0.6 (skewness 2.3), centred, scaled to the stated deviation: slow tail",
    "bimodal": "each boot is in a fast (70%) or a slow (30%) mode, 1.75 deviations of the whole apart; runs "
    "spread 0.6 of the stated deviation around their mode; the total is the stated deviation",
    "ar1": "neighbouring runs of a boot correlate by 0.5, stationary with the stated deviation",
    "outliers": "normal with the stated deviation, and 5% of the runs slower by 10 deviations on top",
}
"""What each kind of run noise means."""

DRIFT_KINDS: Mapping[str, str] = {
    "none": "testbeds never change",
    "linear": "every testbed moves at a steady pace, by SIZE in the time of 100 visits (build, boot and run)",
    "walk": "every testbed does a random walk of deviation SIZE over the time of 100 visits",
    "step": "every testbed jumps once by SIZE, up or down, at a random time within the first 50 visits",
}
"""What each kind of drift means; SIZE is in percent."""
MAX_DRIFT = 100
"""Largest SIZE, up or down, in percent."""
MAX_COST = 1_000_000_000
"""Most seconds of a build, a boot or a run: thirty years, so beyond any lab."""


def require_within(name: str, value: float, low: float, high: float, unit: str) -> None:
    """Raise RequestError, naming the option, for a number outside its bounds, or none. name: of the field."""
    if not low <= value <= high:  # false for NaN as well
        label = name.replace("_seconds", " cost").replace("_", "-")
        raise RequestError(f"{label} is {value:g}", cure=f"between {low:g} and {high:g} ({unit})")

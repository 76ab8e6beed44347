"""The simulator: the real planner on synthetic histories, in virtual time.

A user learns from it, before burning lab time, whether an effect can be found under a noise and what it will
cost; the search benchmark and the calibration tests run on it.
"""

from bisector.model.goal import Budget
from bisector.model.goal import TestbedClock as Clock
from bisector.simulation.batch import simulate, simulate_all
from bisector.simulation.estimate import Estimate, estimate
from bisector.simulation.noise_model import LabModel
from bisector.simulation.scenario import (
    Culprit,
    History,
    Scenario,
    parse_costs,
    parse_culprits,
    parse_probability,
    read_samples,
)
from bisector.simulation.summary import Distribution, Report, Share, Summary

__all__ = [
    "Budget",
    "Clock",
    "Culprit",
    "Distribution",
    "Estimate",
    "History",
    "LabModel",
    "Report",
    "Scenario",
    "Share",
    "Summary",
    "estimate",
    "parse_costs",
    "parse_culprits",
    "parse_probability",
    "read_samples",
    "simulate",
    "simulate_all",
]

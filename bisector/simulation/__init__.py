"""The simulator: the real planner on synthetic histories, in virtual time.

A user learns from it, before burning lab time, whether an effect can be found under a noise and what it will
cost; the search benchmark and the calibration tests run on it.
"""

from bisector.adapters.fakes_lab import LabModel
from bisector.core.model import Budget
from bisector.core.model import TestbedClock as Clock
from bisector.simulation.estimate import Estimate, estimate
from bisector.simulation.real import real_graph
from bisector.simulation.run import run_trials, simulate
from bisector.simulation.scenario import (
    Culprit,
    History,
    Scenario,
    parse_costs,
    parse_culprits,
    parse_probability,
    read_samples,
)
from bisector.simulation.summary import Report, Share, Spread, Summary

__all__ = [
    "Budget",
    "Clock",
    "Culprit",
    "Estimate",
    "History",
    "LabModel",
    "Report",
    "Scenario",
    "Share",
    "Spread",
    "Summary",
    "estimate",
    "parse_costs",
    "parse_culprits",
    "parse_probability",
    "read_samples",
    "real_graph",
    "run_trials",
    "simulate",
]

"""The rivals, as they would be asked after every night: an alert is (night, first bad night).

After an alert a rival starts afresh with the nights from the change on.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
from scipy import stats

from bisector.model.dag import Floats

BACK_VALUES, MIN_BACK_VALUES, FORE_VALUES, T_THRESHOLD, ALERT_PERCENT = 24, 12, 12, 7.0, 2.0
"""Treeherder's defaults: PERFHERDER_ALERTS_MAX_BACK_WINDOW, MIN_BACK_WINDOW, FORE_WINDOW, the threshold of t
in its `detect_changes`, PERFHERDER_REGRESSION_THRESHOLD."""
WINDOW, P_VALUE, LEAST_PERCENT = 60, 1e-4, 1.0
"""Of our e-divisive: nights looked at; p-value and change from which a split is an alert."""

Alert = tuple[int, int]


def perfherder(boots: Floats) -> list[Alert]:
    """Return the alerts of Treeherder's rule for nights of boots (N, B), percent of the level.

    A t value compares the values of the nights before with those from the night on; nights weigh less the
    farther they are, linearly; the variance is that of all values about the weighted mean. A night is an
    alert if its t exceeds the threshold and its neighbours', once both windows are full. Its limit to
    two weeks of data is left out: it would see hardly any nightly series.
    """
    size = boots.shape[1]
    back, fore = BACK_VALUES // size, FORE_VALUES // size
    alerts: list[Alert] = []
    start = 0
    for n in range(len(boots)):
        for i in (n - fore + 1, n - fore):  # the window is full since tonight; the next night's since then
            if i - start < MIN_BACK_VALUES // size:
                continue

            def t_at(j: int, n: int = n, start: int = start) -> tuple[float, float]:
                before = boots[max(start, j - back) : j][::-1]
                return _weighted_t(before, boots[j : min(j + fore, n + 1)])

            t, change = t_at(i)
            if t > T_THRESHOLD and abs(change) >= ALERT_PERCENT and max(t_at(i - 1)[0], t_at(i + 1)[0]) <= t:
                alerts.append((n, i))
                start = i + 1
                break
    return alerts


def _weighted_t(before: Floats, after: Floats) -> tuple[float, float]:
    """Return |t| and the difference of two windows (nights, boots), the night nearest to the change first."""
    if not len(before) or not len(after):
        return 0.0, 0.0
    means, errors = [], []
    for side in (before, after):
        weight = np.arange(len(side), 0, -1.0)
        mean = float((weight @ side).sum() / weight.sum() / side.shape[1])
        means.append(mean)
        errors.append(float(((side - mean) ** 2).sum()) / (side.size - 1) / side.size)
    return abs(means[1] - means[0]) / max(sum(errors) ** 0.5, 1e-12), means[1] - means[0]


def e_divisive(boots: Floats) -> list[Alert]:
    """Return the alerts of e-divisive on nightly means (Matteson and James 2014), one split at a time.

    The split of the last WINDOW nights with the largest energy distance is an alert if Student's t-test of
    its two sides has p below P_VALUE and they differ by LEAST_PERCENT: the t-test in place of permutations is
    Hunter's (Fleming et al. 2023). Hunter's merging of weak change points is left out.
    """
    level = boots.mean(axis=1)
    alerts: list[Alert] = []
    start = 0
    for n in range(len(level)):
        first = max(start, n + 1 - WINDOW)
        x = level[first : n + 1]
        if len(x) < 8:
            continue
        total = np.zeros((len(x) + 1, len(x) + 1))
        total[1:, 1:] = np.abs(x[:, None] - x).cumsum(axis=0).cumsum(axis=1)
        k = np.arange(2, len(x) - 1)
        rest = len(x) - k
        left, all_left = total[k, k], total[k, -1]
        right = total[-1, -1] - 2 * all_left + left
        energy = 2 * (all_left - left) / (k * rest) - left / (k * (k - 1)) - right / (rest * (rest - 1))
        split = int(k[np.argmax(energy * k * rest / len(x))])
        a, b = x[:split], x[split:]
        if abs(b.mean() - a.mean()) >= LEAST_PERCENT and stats.ttest_ind(a, b).pvalue < P_VALUE:
            alerts.append((n, first + split))
            start = first + split
    return alerts


def otava(boots: Floats) -> list[Alert]:
    """Return the alerts of apache-otava, Hunter's successor: its e-divisive with the merging of weak points.

    It is asked as ours is: after each night for the last WINDOW, with the same p-value and least change.
    """
    analysis = importlib.import_module("otava.analysis")
    level = 100.0 + boots.mean(axis=1)  # it judges changes relative to the mean before
    alerts: list[Alert] = []
    start = 0
    for n in range(len(level)):
        first = max(start, n + 1 - WINDOW)
        if n + 1 - first < 8:
            continue
        nights = [float(x) for x in level[first : n + 1]]
        found, _ = analysis.compute_change_points(
            nights, max_pvalue=P_VALUE, min_magnitude=LEAST_PERCENT / 100
        )
        if found:
            alerts.append((n, first + found[-1].index))
            start = first + found[-1].index
    return alerts


RIVALS: dict[str, Callable[[Floats], list[Alert]]] = {"Perfherder": perfherder, "e-divisive": e_divisive}
if importlib.util.find_spec("otava") is not None:  # not among what tests install: see README.md
    RIVALS["Otava"] = otava

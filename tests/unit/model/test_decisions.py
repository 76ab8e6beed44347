"""Endings with their exit codes, which scripts rely on, and what of a conclusion is a culprit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bisector.model.decisions import EXIT_CODES, Conclusion, Ending, Finding, Interval


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (Ending.CULPRIT, 0),
        (Ending.CULPRITS, 0),
        (Ending.NOT_REPRODUCED, 2),
        (Ending.CULPRIT_SET, 4),
        (Ending.SPREAD, 5),
        (Ending.FIXED_ON_GOOD_SIDE, 5),
        (Ending.INCONCLUSIVE, 5),
    ],
)
def test_an_ending_has_an_exit_code_that_no_error_has(ending: Ending, code: int) -> None:
    """1 is a wrong request, 3 broken infrastructure: neither says anything about the commits."""
    assert EXIT_CODES[ending] == code
    assert set(EXIT_CODES) == set(Ending)


def test_a_change_that_is_too_small_is_no_culprit() -> None:
    change = Interval(0.0, 0.1, 0.2)
    large, small = Finding((3,), change, 0.97), Finding((5,), change, 0.97, small=True)
    assert Conclusion(Ending.CULPRIT, "", (large, small)).culprits == (large,)


def test_a_change_in_the_other_direction_is_no_culprit_however_large() -> None:
    loss, gain = Finding((3,), Interval(0.0, 0.1, 0.2), 0.97), Finding((5,), Interval(-0.2, -0.1, 0.0), 0.97)
    both = Conclusion(Ending.CULPRITS, "", (loss, replace(gain, opposite=True), replace(gain, small=True)))
    assert both.culprits == (loss,)
    assert [finding.commits for finding in both.large] == [(3,), (5,)]

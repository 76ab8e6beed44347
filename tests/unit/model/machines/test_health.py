"""Why a testbed is suspect, and whether that may pass by itself."""

from __future__ import annotations

import pytest

from bisector.model.leases import TestbedState, TestbedStatus
from bisector.model.machines.health import (
    CHECKED_BY,
    QUARANTINED_BY,
    HealthPoint,
    Outcome,
    only_failed_to_boot,
)


@pytest.mark.parametrize(
    ("by", "state", "outcomes", "may_pass"),
    [
        (CHECKED_BY, "suspect", ["sound", "failed"], True),
        (CHECKED_BY, "suspect", ["failed", "moved"], False),
        (
            CHECKED_BY,
            "suspect",
            ["sound", "moved", "failed"],
            False,
        ),  # the last one came after it was suspect
        (CHECKED_BY, "suspect", [], False),
        (CHECKED_BY, "good", ["sound", "failed"], False),
        (QUARANTINED_BY, "suspect", [], True),
        (QUARANTINED_BY, "maintenance", [], False),
        ("series nightly", "suspect", ["sound", "failed"], False),
        ("bob", "suspect", ["sound", "failed"], False),
    ],
)
def test_only_a_testbed_that_did_not_boot_returns_by_itself(
    by: str, state: TestbedState, outcomes: list[Outcome], may_pass: bool
) -> None:
    points = [HealthPoint("bed", float(at), {}, outcome, "") for at, outcome in enumerate(outcomes)]
    assert only_failed_to_boot(TestbedStatus("bed", state, "why", by, 1.0), points) is may_pass


def test_one_that_nobody_has_spoken_of_is_not_suspect() -> None:
    assert not only_failed_to_boot(None, [])

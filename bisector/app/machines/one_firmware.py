"""Refuses to compare samples of one testbed whose firmware or microcode changed between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bisector.errors import RequestError
from bisector.model.machines.firmware import firmware_difference

if TYPE_CHECKING:
    from bisector.stats.samples import SampleSet


def require_one_firmware(columns: Sequence[Sequence[SampleSet]]) -> None:
    """Raise RequestError where a set has other firmware than the first column's on the same testbed.

    Sets that say nothing about their machine, such as those of other programs, are accepted.
    """
    for column in columns[1:]:
        for one in column:
            base = next((s for s in columns[0] if s.testbed == one.testbed), None)
            changed = firmware_difference([base.facts], one.facts) if base is not None else None
            if changed is not None and base is not None:
                what = changed.subject(f"the testbed '{one.testbed}'" if one.testbed else "the machine")
                raise RequestError(
                    f"{what} changed between {base.name} and {one.name}: they do not compare",
                    details=str(changed),
                    cure="measure both again under one firmware and command line, in a new bisection or "
                    "with 'workload run'",
                )

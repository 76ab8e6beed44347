"""Settings of the inventory that perfbisect does not follow, as findings of a check."""

from __future__ import annotations

from collections.abc import Iterator

from bisector.model.machines.lab_findings import LabFinding
from bisector.schemas.lab import BuilderSpec, TestbedSpec


def ignored_settings(spec: TestbedSpec | BuilderSpec) -> Iterator[LabFinding]:
    """Yield one finding for all of them, nothing where there is none. It is a doubt: what works goes on."""
    if spec.ignored:
        problem = "; ".join(one.problem for one in spec.ignored)
        cure = "; ".join(one.cure for one in spec.ignored)
        yield LabFinding("inventory", "doubtful", problem, cure, is_setting=True)

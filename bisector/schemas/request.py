"""What the user asks for, and what it became once it was accepted."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import Field, field_validator

from bisector.model.records import Budget, Goal
from bisector.schemas import serialization
from bisector.schemas.loading import Spec

_NO_MATTER = ("good", "bad", "build_ahead")
"""What two requests may differ in and still be the same: names of the ends, and the mere pace."""


_NEWER = ("monitors", "param")
"""What requests did not have from the beginning: left empty it is the request that it was before."""


class Request(Spec):
    """One bisection as asked for on the command line. Paths are absolute; hours are hours of lab time."""

    repo: str
    good: str
    bad: str
    workload: str = Field(description="a name, or a folder with a workload.yaml")
    param: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="parameters of the workload that differ from its manifest"
    )
    metric: str | None = Field(default=None, description="decide by this one instead of the manifest's own")
    threshold: str | None = Field(default=None, description="'5%' or '0.1 s', instead of the manifest's")
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    recipe: str = "x86_64-guest"
    testbeds: tuple[str, ...] = Field(default=(), description="names from the lab; empty: the lab's first")
    skip: tuple[str, ...] = ()
    first_parent: bool = False
    paths: tuple[str, ...] = ()
    apply: tuple[str, ...] = Field(default=(), description="patch files put on top of every commit tested")
    with_fix: tuple[str, ...] = Field(default=(), description="known fixes, REV or REV:GUILTY each")
    max_hours: float | None = Field(default=None, gt=0)
    max_builds: int | None = Field(default=None, gt=0)
    max_runs: int | None = Field(default=None, gt=0)
    scan: bool = False
    monitors: tuple[str, ...] = Field(default=(), description="watched beside the manifest's own")
    build_ahead: int = Field(default=0, ge=0, le=64, description="kernels to build before a trial asks")

    @field_validator("alpha")
    @classmethod
    def _finite(cls, value: float) -> float:
        if value != value:  # NaN passes every comparison
            raise ValueError("alpha must be a number between 0 and 0.5")
        return value

    @property
    def budget(self) -> Budget:
        """The limits in the core's units (seconds)."""
        hours = self.max_hours
        return Budget(None if hours is None else hours * 3600.0, self.max_builds, self.max_runs)


class KnownFix(Spec):
    """What a known fix became: its full id, and those of the commits that it mends."""

    sha: str
    guilty: tuple[str, ...]


class Accepted(Spec):
    """A request with everything in it resolved; kept with the bisection and never changed.

    good, bad: full commit ids; goal: as `serial.goal_to_json` writes it; workload_sum: checksum of the
    payload; recipe_sum: of how the ends are configured and compiled; patch_sums: of the patch files; fixes:
    what `--with-fix` names; version: of the perfbisect that accepted it.
    """

    request: Request
    good: str
    bad: str
    goal: dict[str, Any]
    testbeds: tuple[str, ...]
    clock: str
    workload: str
    workload_sum: str
    recipe_sum: str = ""
    patch_sums: tuple[str, ...] = ()
    fixes: tuple[KnownFix, ...] = ()
    version: str = ""

    def the_goal(self) -> Goal:
        """Return the goal as the core knows it."""
        return serialization.goal_from(self.goal)

    def identity(self) -> str:
        """Return 8 hex digits that are equal for the same request: same commits, settings and payload."""
        same = self.model_dump(exclude={"version"} | ({"fixes"} if not self.fixes else set()))
        left_out = (*_NO_MATTER, "with_fix")  # what was said; `fixes` is what it means
        same["request"] = {
            k: v for k, v in same["request"].items() if k not in left_out and (v or k not in _NEWER)
        }
        text = json.dumps(same, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

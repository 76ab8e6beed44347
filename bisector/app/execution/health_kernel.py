"""The kernel of a testbed's health checks.

It is `health_commit` of the settings; else that of the testbed's checks so far; else the good end of the
bisection that is to use it, or of the last one that did: it is there already, and known to boot there. From
then on it stays the same, whatever is bisected.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.accept import recipe_for
from bisector.app.packages.listed_sources import unpacker
from bisector.errors import PerfbisectError, RequestError
from bisector.ports import BuildOrder, Fix
from bisector.schemas.kernel.listed_kernel import ListedKernel
from bisector.schemas.request import Accepted, read_accepted

if TYPE_CHECKING:
    from bisector.app.wiring import Stop, Wiring
    from bisector.ports import Builder
    from bisector.schemas.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class HealthKernel:
    """repo: of the commit, or the list that named the kernel; listed: that kernel of a list, which is
    unpacked and not compiled."""

    repo: str
    order: BuildOrder
    listed: ListedKernel | None = None

    def builder(self, wiring: Wiring, stop: Stop | None) -> Builder:
        """Return what makes it."""
        if self.listed is None:
            return wiring.builder(self.repo, stop=stop)
        return unpacker(wiring, (self.listed,), stop or (lambda: False))

    def facts(self) -> dict[str, str]:
        """Return what is kept with a check; of the same kernel they are the same."""
        order = self.order
        return {
            "repo": self.repo,
            "commit": order.sha,
            "recipe": order.recipe,
            "apply": "\n".join(map(str, order.patches)),
            "fixes": "\n".join(" ".join((fix.sha, *fix.guilty)) for fix in order.fixes),
            **({} if self.listed is None else {"listed": self.listed.model_dump_json()}),
        }


def choose_kernel(
    wiring: Wiring,
    workload: Workload,
    testbed: str,
    before: Mapping[str, str] | None,
    accepted: Accepted | None,
) -> HealthKernel:
    """Return the kernel to measure.

    before: the facts of the testbed's last check; accepted: the bisection that is to use it.
    Raises RequestError: none is known.
    """
    commit = wiring.settings.health_commit
    if commit is not None:
        sha = wiring.source().resolve(commit)
        serves = (wiring, workload, [testbed])
        recipe = recipe_for(wiring.trees(), wiring.settings.recipe, sha, measures=serves)
        return HealthKernel(str(wiring.repo), BuildOrder(sha, recipe))
    if before is not None:
        fixes = (line.split() for line in before["fixes"].splitlines())
        order = BuildOrder(
            before["commit"],
            before["recipe"],
            patches=tuple(map(Path, before["apply"].splitlines())),
            fixes=tuple(Fix(sha, tuple(guilty)) for sha, *guilty in fixes),
        )
        listed = before.get("listed")
        kernel = None if listed is None else ListedKernel.model_validate_json(listed)
        return HealthKernel(before["repo"], order, kernel)
    accepted = accepted or last_bisection(wiring, testbed)
    if accepted is None:
        raise RequestError(
            f"there is no kernel to check the testbed '{testbed}' with: no bisection has used it",
            cure="name a commit that boots there: health_commit in perfbisect.toml",
        )
    request = accepted.request
    order = BuildOrder(
        accepted.good,
        request.recipe,
        patches=tuple(map(Path, request.apply)),
        fixes=tuple(Fix(fix.sha, fix.guilty) for fix in accepted.fixes),
    )
    kernel = next((one for one in accepted.kernels if one.id == accepted.good), None)
    return HealthKernel(request.repo, order, kernel)


def last_bisection(wiring: Wiring, testbed: str) -> Accepted | None:
    """Return the last bisection that booted a testbed."""
    for summary in wiring.store.list():
        if testbed in summary.progress.measured:
            with contextlib.suppress(PerfbisectError):  # of a newer version, or damaged
                return read_accepted(wiring.store.load(summary.id).request)
    return None

"""The testbeds of a bisection: those that are named, else all of the lab that fit together.

Testbeds fit together if they have the same kind, clock and group of the inventory, each on a machine of its
own: levels may differ, but a change should show on all. The first one that can run the workload decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bisector.errors import RequestError
from bisector.schemas.workload.compatibility import boots_kernels, check_testbed, missing_resources

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.goal import TestbedClock
    from bisector.schemas.lab import TestbedSpec
    from bisector.schemas.request import Accepted, Request
    from bisector.schemas.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class Choice:
    """The testbeds, the clock that they share, and why each other one of the lab is left idle."""

    testbeds: tuple[str, ...]
    clock: TestbedClock
    idle: Mapping[str, str]


def choose_testbeds(wiring: Wiring, request: Request, workload: Workload) -> Choice:
    """Return the testbeds of a request. Raises RequestError: none can run it, or those named do not fit."""
    if request.testbeds:
        return Choice(request.testbeds, _check(wiring, request.testbeds, workload), {})
    specs = wiring.lab.testbeds
    retired = _retired(wiring)
    able = [
        spec
        for spec in specs
        if boots_kernels(spec) and not missing_resources(workload, spec) and spec.name not in retired
    ]
    first = able[0] if able else specs[0]
    clock = _check(wiring, [first.name], workload)
    chosen, idle = [first], {}
    for spec in specs:
        if spec.name != first.name:
            why = _unfit(wiring, workload, chosen, clock, spec) or retired.get(spec.name, "")
            if why:
                idle[spec.name] = why
            else:
                chosen.append(spec)
    return Choice(tuple(spec.name for spec in chosen), clock, idle)


def notes_on_choice(wiring: Wiring, request: Request, workload: Workload) -> list[str]:
    """Return which testbeds measure and which are left idle, in words; empty where they were named."""
    if request.testbeds or len(wiring.lab.testbeds) == 1:
        return []
    choice = choose_testbeds(wiring, request, workload)
    idle = [f"the testbed '{name}' is left idle: {why}" for name, why in choice.idle.items()]
    return [f"measured on {', '.join(choice.testbeds)}", *idle]


def joining_testbeds(wiring: Wiring, accepted: Accepted, workload: Workload) -> list[str]:
    """Return the testbeds that fit to those of a bisection, and are not among them: the lab has grown.

    None where they were named, or none of them is left.
    """
    chosen = [spec for spec in wiring.lab.testbeds if spec.name in accepted.testbeds]
    if not accepted.testbeds_chosen or accepted.attempt is not None or not chosen:
        return []
    retired, joined = _retired(wiring), list[str]()
    clock = wiring.testbed(chosen[0].name).clock
    for spec in wiring.lab.testbeds:
        known = spec.name in accepted.testbeds or spec.name in retired
        if not known and not _unfit(wiring, workload, chosen, clock, spec):
            chosen.append(spec)
            joined.append(spec.name)
    return joined


def _check(wiring: Wiring, names: tuple[str, ...] | list[str], workload: Workload) -> TestbedClock:
    """Return the clock that testbeds share. Raises RequestError where they cannot be used together."""
    from bisector.adapters.guest.debian_packages import check_packages
    from bisector.adapters.machine.physical_hosts import check_distinct

    for name in names:
        spec = wiring.lab.testbed(name)
        check_testbed(workload, spec)
        if spec.variables.kind == "libvirt":
            check_packages(workload.manifest.packages())
    check_distinct([wiring.lab.testbed(name) for name in names])
    clocks = {name: wiring.testbed(name).clock for name in names}
    if len(set(clocks.values())) > 1:
        raise RequestError(
            "testbeds with different clocks cannot be compared",
            details="\n".join(f"{name}: {clock}" for name, clock in clocks.items()),
            cure="name testbeds of one clock with --testbed",
        )
    workload.check_clock(clocks[names[0]])
    return clocks[names[0]]


def _unfit(
    wiring: Wiring, workload: Workload, chosen: list[TestbedSpec], clock: TestbedClock, spec: TestbedSpec
) -> str:
    """Return why a testbed does not fit to those that were chosen; '' where it does."""
    from bisector.adapters.machine.physical_hosts import check_distinct

    first = chosen[0]
    if missing := missing_resources(workload, spec):
        return f"'{workload.name}' needs {missing[0].description}"
    if spec.group != first.group:
        return f"it is in the group '{spec.group}', not in '{first.group}'"
    if spec.variables.kind != first.variables.kind:
        return f"its kind is '{spec.variables.kind}', not '{first.variables.kind}'"
    try:
        check_distinct([*chosen, spec])
        other = wiring.testbed(spec.name).clock
    except RequestError as error:
        return error.message
    return f"its clock is '{other}', not '{clock}'" if other != clock else ""


def _retired(wiring: Wiring) -> dict[str, str]:
    """Return the testbeds that are out of use for good, and why."""
    if not wiring.has_store:
        return {}
    return {
        one.name: f"retired: {one.reason or 'no reason given'} ({one.by})"
        for one in wiring.coordinator.testbeds()
        if one.state == "retired"
    }

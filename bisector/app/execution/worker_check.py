"""All that a worker needs, asked at once: database, clock, name, machines, disk, artefact store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from bisector.adapters.system.host_requirements import Check, checks
from bisector.app.machines.check_machines import check_machines
from bisector.app.testbeds.testbed_hosts import misplaced_testbeds
from bisector.errors import ExitCode, InfrastructureError, PerfbisectError, RequestError
from bisector.model.format import count
from bisector.model.leases import HEARTBEAT_TTL_SECONDS

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.model.machines.lab_findings import MachineFindings
    from bisector.schemas.lab import Lab

CLOCK_SKEW_SECONDS = 1.0
"""Largest difference between the clocks of host and database. NTP keeps them within 0.1 s; whether a boot of
another host began before the last run here had ended is a matter of seconds."""

_WORKER = "a worker"


def check_worker(wiring: Wiring, name: str) -> list[Check]:
    """Return all checks of a worker of this name. Raises RequestError for a wrong inventory."""
    lab, server = wiring.lab, wiring.settings.database is not None
    specs = lab.testbeds_of(name) if server else lab.testbeds  # a state file has one worker
    database = _check_by("database", lambda: _database(wiring))
    found = [database]
    if database.ok and server:
        found += [_clock(wiring), _check_by("name", lambda: _name(wiring, name))]
    found.append(_testbeds(lab, name, [spec.name for spec in specs]))
    if database.ok:
        found += [_owner(error) for error in misplaced_testbeds(wiring, specs, name).values()]
    ours = [f"testbed {spec.name}" for spec in specs] + [f"builder {spec.name}" for spec in lab.builders]
    found += [_machine(one) for one in check_machines(wiring, wiring.note, ours)]
    found += [check for check in checks(wiring.settings.cache_dir) if check.name == "disk space"]
    return [*found, *_artefacts(wiring)]


def _machine(found: MachineFindings) -> Check:
    """Return the first thing that is wrong with a machine of the lab, or that it answers."""
    first = found.first_wrong()
    if first is None:
        return Check(found.name, found="answers", needed=_WORKER)
    wrong = "\n".join(filter(None, (first.found, first.details)))
    code = ExitCode.WRONG_REQUEST if first.is_setting else ExitCode.INFRASTRUCTURE
    return Check(found.name, wrong=wrong, cure=first.cure, needed=_WORKER, exit_code=code)


def _check_by(name: str, ask: Callable[[], str | None], found: str = "") -> Check:
    """Return a check by a function that raises what is wrong, and otherwise may return what it found."""
    try:
        return Check(name, found=ask() or found, needed=_WORKER)
    except PerfbisectError as error:
        wrong = "\n".join(filter(None, (error.message, error.details)))
        return Check(name, wrong=wrong, cure=error.cure, needed=_WORKER, exit_code=error.exit_code)


def _database(wiring: Wiring) -> str:
    if not wiring.has_store:
        return f"a file in {wiring.settings.state_dir}, made when it is needed"
    return f"{wiring.database.name}, with the tables of this version"


def _clock(wiring: Wiring) -> Check:
    """Compare this host's clock with the database's, in the middle of a question and its answer."""
    before = wiring.clock.now()
    then = wiring.coordinator.now()
    after = wiring.clock.now()
    skew = (before + after) / 2 - then
    if abs(skew) > CLOCK_SKEW_SECONDS + (after - before) / 2:
        which = "ahead of" if skew > 0 else "behind"
        return Check(
            "clock",
            wrong=f"this host's clock is {abs(skew):.1f} s {which} the database's; "
            f"{CLOCK_SKEW_SECONDS:g} s may be",
            cure="keep both with NTP, such as systemd-timesyncd or chrony",
            needed="the order of what several hosts record",
            optional=True,
        )
    return Check("clock", found=f"within {CLOCK_SKEW_SECONDS:g} s of the database's", needed=_WORKER)


def _name(wiring: Wiring, name: str) -> str:
    for other in wiring.coordinator.executors():
        if other.name == name and not other.fenced and other.silent < HEARTBEAT_TTL_SECONDS:
            raise InfrastructureError(
                f"a worker '{name}' runs already: it was heard of {other.silent:.0f} s ago",
                cure="give this one another name, or end that one",
            )
    return f"'{name}' is free"


def _testbeds(lab: Lab, name: str, ours: Sequence[str]) -> Check:
    if ours:
        return Check("testbeds", found=f"{count(len(ours), 'testbed')}: {', '.join(ours)}", needed=_WORKER)
    return Check(
        "testbeds",
        wrong=f"{lab.inventory} gives '{name}' none of its {count(len(lab.testbeds), 'testbed')}",
        cure=f"perfbisect_worker: {name} at one of them, or none there: any worker then has it",
        needed=_WORKER,
        exit_code=ExitCode.WRONG_REQUEST,
    )


def _owner(error: RequestError) -> Check:
    """Return what is wrong with a testbed that belongs to another host."""
    wrong = f"{error.message}\n{error.details}"
    return Check("owner", wrong=wrong, cure=error.cure, needed=_WORKER, exit_code=error.exit_code)


def _artefacts(wiring: Wiring) -> Iterator[Check]:
    where = wiring.settings.artefacts
    if where is not None and wiring.exchange is not None:
        yield _check_by("artefact store", wiring.exchange.store.check, f"{where} can be written")
    elif wiring.settings.database is not None:
        yield Check(
            "artefact store",
            wrong="none is set",
            cure='artefacts = "/FOLDER" in perfbisect.toml, a folder that all hosts have mounted',
            needed="kernels and consoles of other hosts",
            optional=True,
        )

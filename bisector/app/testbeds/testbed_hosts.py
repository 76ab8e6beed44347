"""Testbeds that are another machine on each host: guests, and the host itself. Each belongs to one host.

On a database server, hosts share bisections and testbeds by name. Which host has such a testbed is what
`perfbisect_worker` says; without it, the first host that uses such a testbed keeps it, so that a lab of one
host needs no such line. Other hosts are refused, or levels of two machines would be mixed.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bisector.engine.membership import this_host
from bisector.errors import RequestError

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.schemas.lab import Lab, TestbedSpec


def bind_testbeds(wiring: Wiring, specs: Iterable[TestbedSpec], worker: str) -> dict[str, RequestError]:
    """Bind testbeds to this host unless another host has them; return the error for each that another has.

    worker: the name of ours; '' for a process that is none. Does nothing without a database server.
    """
    return _refused(wiring, specs, worker, binds=True)


def misplaced_testbeds(
    wiring: Wiring, specs: Iterable[TestbedSpec], worker: str = ""
) -> dict[str, RequestError]:
    """Return as `bind_testbeds` which testbeds are not this host's; nothing is written."""
    return _refused(wiring, specs, worker, binds=False)


def require_own(wiring: Wiring, testbeds: Iterable[str], worker: str = "") -> None:
    """Have testbeds belong to this host, those that the lab has. Raises RequestError: another one has one."""
    names = set(testbeds)
    for error in bind_testbeds(wiring, [s for s in wiring.lab.testbeds if s.name in names], worker).values():
        raise error


def has_testbed(wiring: Wiring, name: str, worker: str) -> bool:
    """Return whether a testbed is one of the inventory that this host measures on; bind it as above.

    worker: as above. Without a database server no other host could.
    """
    if wiring.shared_coordinator is None:
        return True
    specs = [spec for spec in wiring.lab.testbeds_of(worker) if spec.name == name]
    return specs != [] and not bind_testbeds(wiring, specs, worker)


def _refused(
    wiring: Wiring, specs: Iterable[TestbedSpec], worker: str, *, binds: bool
) -> dict[str, RequestError]:
    asked = [spec for spec in specs if spec.is_on_each_host]
    if not asked or (coordinator := wiring.shared_coordinator) is None:
        return {}
    here, known, refused = this_host(), coordinator.testbed_hosts(), {}
    for spec in asked:
        owner = spec.variables.worker
        is_ours = owner in ("", worker or socket.gethostname())
        host = known.get(spec.name, here if is_ours else "")
        named = worker != "" and owner == worker
        if binds and (named or host == here) and known.get(spec.name) != here:
            host = coordinator.bind_testbed(spec.name, here, move=named)
        if host != here and not named:
            refused[spec.name] = _error(wiring.lab, spec, host, known)
    return refused


def _error(lab: Lab, spec: TestbedSpec, host: str, known: Mapping[str, str]) -> RequestError:
    owner = spec.variables.worker
    whose = f"'{host}' has it" if host else f"it is worker '{owner}'s"
    cure = f"'perfbisect worker {owner}' on its host uses it; 'start --detach' queues for it"
    if not owner:
        cure = (
            f"set perfbisect_worker of '{spec.name}' to the name of the worker on that host, and give the "
            "testbed of each other host a name of its own, with its worker"
        )
    return RequestError(
        f"{lab.inventory}: host '{spec.name}' is another machine on each host, and {whose}, not this one"
        f" ({this_host()})",
        details=f"perfbisect_worker: {owner or 'not set'}; "
        "the levels of two machines would be mixed under one name",
        cure=cure,
    )

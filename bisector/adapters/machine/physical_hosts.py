"""The physical machine of a testbed or builder, and what to lock while it is used.

Its name in the inventory says nothing: two names may lead to one machine. Known are the addresses to which
its name resolves, and those of this machine. What no address tells, such as where a guest with an address of
its own runs, the inventory says with `perfbisect_host`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Sequence

from bisector.errors import RequestError
from bisector.schemas.connection import Connection
from bisector.schemas.lab import BuilderSpec, Lab, TestbedSpec

HERE = "here"
"""What stands for this machine in the names of locks."""


def host_names(lab: Lab, spec: TestbedSpec | BuilderSpec) -> tuple[str, ...]:
    """Return names for the lock of the physical machine; whatever shares one of them shares the machine."""
    address = spec.variables.host
    if not address:
        guest = isinstance(spec, TestbedSpec) and spec.variables.kind in ("libvirt", "local")
        elsewhere = spec.guest_host if isinstance(spec, TestbedSpec) else None
        if not elsewhere and (guest or spec.connection.local):
            return (f"host-{HERE}",)
        address = elsewhere or spec.connection.address
    machines: tuple[TestbedSpec | BuilderSpec, ...] = (*lab.testbeds, *lab.builders)
    named = {one.name: one.connection for one in machines if one.name != spec.name}
    other = named.get(spec.variables.host)
    if other is not None:
        address = "localhost" if other.local else other.address
    found = _resolve(address)
    return (f"host-{HERE}",) if any(map(_is_here, found)) else tuple(f"host-{one}" for one in found)


def claim_names(spec: TestbedSpec) -> tuple[str, ...]:
    """Return the names of the testbed's own lock; none for a guest: each bisection starts its own."""
    if spec.variables.kind == "libvirt":
        return ()
    if spec.variables.kind == "local":
        return (f"testbed-{HERE}",)
    return tuple(f"testbed-{one}" for one in _systems(spec.connection))


def system_name(connection: Connection) -> str:
    """Return a name of the system that a connection leads to, for files: the same in all inventories."""
    return HERE if connection.local else _systems(connection)[0].replace("/", "_")


def _systems(connection: Connection) -> list[str]:
    """Return what answers at the addresses of a connection: on one machine, there is one for each port."""
    found = _resolve(connection.address)
    return sorted({f"{HERE if _is_here(one) else one}-{connection.port}" for one in found})


def check_distinct(testbeds: Sequence[TestbedSpec]) -> None:
    """Raise RequestError where two of the testbeds are one machine: neither could keep its kernel.

    Two that have guests of one name would end each other's.
    """
    owners: dict[str, str] = {}
    for spec in testbeds:
        if spec.variables.kind == "libvirt":
            other = owners.setdefault(spec.guest_name, spec.name)
            if other != spec.name:
                raise RequestError(
                    f"the guests of the testbeds '{other}' and '{spec.name}' would have one name",
                    details=f"both become '{spec.guest_name}': libvirt knows fewer characters than Ansible",
                    cure=f"rename one of them in the inventory, or name one: --testbed {other}",
                )
        for name in claim_names(spec):
            other = owners.setdefault(name, spec.name)
            if other != spec.name:
                raise RequestError(
                    f"the testbeds '{other}' and '{spec.name}' are one machine",
                    details=f"{spec.connection.address}, port {spec.connection.port}",
                    cure=f"name one of them: --testbed {other}",
                )


def _resolve(address: str) -> list[str]:
    """Return the addresses of a name; the name itself where none is known, as with a name of ssh's own."""
    with contextlib.suppress(OSError, UnicodeError):
        return sorted({str(found[4][0]) for found in socket.getaddrinfo(address, None)})
    return [address]


def _is_here(address: str) -> bool:
    """Return whether an address is this machine's: what we would send there would come from there."""
    try:
        if ipaddress.ip_address(address.split("%")[0]).is_loopback:
            return True
        family, _, _, _, where = socket.getaddrinfo(address, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(where)  # sends nothing
            return bool(probe.getsockname()[0] == where[0])
    except (OSError, ValueError):
        return False

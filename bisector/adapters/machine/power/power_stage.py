"""One way to switch a machine, and how a request to it can fail."""

from __future__ import annotations

from typing import Protocol

from bisector.adapters.machine.machine_parts import Switch
from bisector.errors import InfrastructureError


class PowerRefused(InfrastructureError):
    """This stage cannot do it at all: another stage is worth a try, repeating the request is not."""


class PowerConflict(InfrastructureError):
    """The machine's present state forbids it: it is so already, or is changing. The state tells which."""


class PowerStage(Switch, Protocol):
    """See `machine_parts.Switch`; it raises PowerRefused for what it cannot do.

    `on` and `off` change nothing where that is the state already; `cycle` may be refused where it is off.
    """

    name: str
    """Its kind and address, for messages: 'ipmi 192.0.2.11'."""

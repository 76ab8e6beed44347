"""Gives machines back when a bisection leaves them, and takes those that have failed out of use."""

from __future__ import annotations

from bisector.engine.events import EventSender
from bisector.engine.services import Services
from bisector.errors import FirmwareChanged, InfrastructureError, MachineInUse


def give_back(services: Services, events: EventSender, testbed: str) -> None:
    """Have a machine run its own kernel, with nothing of ours. What goes wrong is told; nothing is raised.

    A machine that is not given back is suspect: nobody measures on it before somebody has looked.
    """
    try:
        services.testbeds[testbed].give_back(lambda text: events.send("note", text, testbed=testbed))
    except InfrastructureError as error:
        events.send("trouble", error.message, testbed=testbed)
        services.suspect(testbed, error.message)


def quarantine(services: Services, testbed: str, failure: InfrastructureError) -> None:
    """Make a machine suspect that has failed as often as a trial is tried; one that is in use, or has new
    firmware, is well."""
    if services.testbeds[testbed].has_own_kernel and not isinstance(failure, MachineInUse | FirmwareChanged):
        services.suspect(testbed, failure.message)

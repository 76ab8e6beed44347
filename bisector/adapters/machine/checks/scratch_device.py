"""Whether a machine's scratch device is what the workload needs, asked over SSH."""

from __future__ import annotations

from bisector.adapters.agent.scratch_disk import check_device
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system.channel import LineClosed
from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import InfrastructureError, PerfbisectError, RequestError

_CHECK_SECONDS = 30.0
"""Timeout of opening a block device; one that sleeps takes seconds to spin up."""


def wrong_device(reach: MachineReach, path: str, size: int, testbed: str) -> PerfbisectError | None:
    """Return what is wrong with the device now. size: bytes that it must have.

    Raises SSHRefused or LineClosed where nobody answers.
    """
    try:
        check_device(path, size, testbed, lambda command: reach.run(command, timeout=_CHECK_SECONDS))
    except (SSHRefused, LineClosed):
        raise
    except (RequestError, InfrastructureError) as error:  # the latter: it cannot even be opened
        return error
    return None

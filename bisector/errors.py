"""Errors. Each has a message, details and a cure.

The class of an error decides what a bisection does with it. No class is converted into another:

* `RequestError`: the request is wrong. It is refused before anything is changed.
* `KernelError`: this kernel does not build, boot or survive the workload. That says something about a commit.
* `InfrastructureError`: a disk, the network, a tool or a testbed failed. That says nothing about a commit.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PerfbisectError(Exception):
    """Base of every error that a user is meant to read."""

    exit_code = 3

    def __init__(self, message: str, *, details: str = "", cure: str = "") -> None:
        """Keep the three parts of the error.

        message: one line, what was wrong and where. details: output or context, any number of lines.
        cure: what would be right, or the command that repairs it.
        """
        super().__init__(message)
        self.message = message
        self.details = details
        self.cure = cure


class RequestError(PerfbisectError):
    """A wrong request: unknown commit, bad manifest, unusable option. Exit code 1; state is untouched."""

    exit_code = 1


class KernelError(PerfbisectError):
    """The kernel under test failed. `kind` is one of 'build', 'boot', 'workload', 'source'."""

    kind = "boot"


class BuildFailed(KernelError):
    """The commit does not compile, link or configure; `details` holds the first error and the log's path."""

    kind = "build"


class SourceFailed(BuildFailed):
    """There is nothing to build: the tree is no Linux, or a patch (`--apply`) does not apply to it."""

    kind = "source"


class BootFailed(KernelError):
    """The kernel panics, hangs or never answers; `details` holds the end of the serial console."""

    kind = "boot"


class WorkloadFailed(KernelError):
    """The workload ended with an error, printed no metric, or no finite number."""

    kind = "workload"


class InfrastructureError(PerfbisectError):
    """Disk, network, a missing tool, a dead testbed. Retried, then stops the search. Exit code 3."""

    exit_code = 3


class TestbedLost(InfrastructureError):
    """A testbed died under a boot (QEMU killed, libvirtd gone); the boot's finished runs stay valid."""

    __test__ = False  # not a pytest class


class Interrupted(PerfbisectError):
    """The user pressed Ctrl-C or the process was told to end; the state is resumable. Exit code 130."""

    exit_code = 130


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest known word, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else ""

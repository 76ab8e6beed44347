"""Errors. Each has a message, details and a cure.

The class of an error decides what a bisection does with it. No class is converted into another:

* `RequestError`: the request is wrong. It is refused before anything is changed.
* `KernelError`: this kernel does not build, boot or survive the workload. That says something about a commit.
* `InfrastructureError`: a disk, the network, a tool or a testbed failed. That says nothing about a commit.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable


class ExitCode(enum.IntEnum):
    """How a command can end. Endings of a bisection have theirs by `model.decisions.EXIT_CODES`."""

    DONE = 0
    """A culprit (or culprits) is proven, or the command did what it says."""
    WRONG_REQUEST = 1
    """The request cannot be carried out as it is, or the one commit or workload that it names fails."""
    NOT_REPRODUCED = 2
    INFRASTRUCTURE = 3
    CULPRIT_SET = 4
    """The smallest set whose members cannot be told apart."""
    INCONCLUSIVE = 5
    """Also: spread over many commits, fixed on good's side, budget spent."""
    PARTLY_MENDED = 6
    """Of `perfbisect try`: part of the loss is gone, and part of it is proven to be left."""
    NOT_MENDED = 7
    INTERRUPTED = 130


class PerfbisectError(Exception):
    """Base of every error that a user is meant to read."""

    exit_code = ExitCode.INFRASTRUCTURE
    usual_cure = ""
    """The cure of an error of this class that gives none of its own."""

    def __init__(self, message: str, *, details: str = "", cure: str = "") -> None:
        """Keep the three parts of the error.

        message: one line, what was wrong and where. details: output or context, any number of lines.
        cure: what would be right, or the command that repairs it.
        """
        super().__init__(message)
        self.message = message
        self.details = details
        self.cure = cure or self.usual_cure


class RequestError(PerfbisectError):
    """A wrong request: unknown commit, bad manifest, unusable option. Exit code 1; state is untouched."""

    exit_code = ExitCode.WRONG_REQUEST


class NotFound(RequestError):
    """There is nothing of that name."""


class NoKernel(RequestError):
    """A commit holds no Linux kernel: wrong on every host, whatever it has installed."""


class KernelError(PerfbisectError):
    """The kernel under test failed. `kind` is one of 'build', 'boot', 'workload', 'source'.

    Within a bisection that is an observation. By hand (`kernel build`, `workload run`) the request named it.
    """

    exit_code = ExitCode.WRONG_REQUEST
    usual_cure = "name another commit, or give a patch that mends this one (--apply FILE)"
    kind = "boot"


class BuildFailed(KernelError):
    """The commit does not compile, link or configure; `details` holds the first error and the log's path."""

    kind = "build"


class BuildUnexplained(BuildFailed):
    """A build failed, and its log names no fault of the sources. It counts once a second build has failed."""


class SourceFailed(BuildFailed):
    """There is nothing to build: the tree is no Linux, or a patch (`--apply`) does not apply to it."""

    usual_cure = "name a commit that holds a Linux kernel, and patches that apply to it"
    kind = "source"


class BootFailed(KernelError):
    """The kernel panics, hangs or never answers; `details` holds the end of the serial console."""

    kind = "boot"


class KernelRefused(BootFailed):
    """A machine does not take this kernel: kexec does not load it, its initramfs is not made, it has no room.

    Whether the machine takes another kernel decides whose failure that is.
    """


class BootTooSlow(BootFailed):
    """The kernel booted and answered, after its time was over.

    Whether the kernel is slow or the machine, another kernel decides that boots there in time.
    """


class WorkloadFailed(KernelError):
    """The workload ended with an error, printed no metric, or no finite number."""

    usual_cure = "mend the command in the manifest; 'perfbisect workload check NAME' tries it"
    kind = "workload"


class InfrastructureError(PerfbisectError):
    """Disk, network, a missing tool, a dead testbed. Retried, then stops the search; a testbed is set aside
    while others are well. Exit code 3."""

    exit_code = ExitCode.INFRASTRUCTURE
    usual_cure = (
        "'perfbisect doctor' looks at this machine, 'perfbisect lab check' at the others; "
        "then give the same command again: it repeats no finished run"
    )


class BootUnclear(InfrastructureError):
    """The kernel under test was not seen to start, and the one that ran before may have hung at its shutdown.

    The machine runs its own kernel by then: a boot from there shows which it was.
    """


class BuilderUnwell(InfrastructureError):
    """A builder cannot be used now, whatever it builds: its disk is full, its clock is wrong. Others go on
    with the build; it is tried again after a while."""


class TestbedLost(InfrastructureError):
    """A testbed died or was stopped under a boot (QEMU killed, guest paused, libvirtd gone); the boot's
    finished runs stay valid."""

    __test__ = False  # not a pytest class


class MachineInUse(InfrastructureError):
    """Another perfbisect, of another host, uses a machine; nothing is wrong with it."""


class NoKernelRan(InfrastructureError):
    """A machine on which no kernel of a bisection ran yet refused one. Whose fault that is stays unknown."""


class OtherOwnKernel(InfrastructureError):
    """A machine came back with another kernel of its own than it had before: an upgrade, or a fallback."""


class FirmwareChanged(InfrastructureError):
    """A testbed has other firmware than before, so that old and new samples cannot be compared. It works."""

    exit_code = ExitCode.WRONG_REQUEST


class RecordsUnusable(InfrastructureError):
    """The state file or the database cannot be used: neither a testbed nor a builder has failed."""


class RecordsAway(RecordsUnusable):
    """The database server does not answer, and was waited for."""


class RecordsFull(RecordsUnusable):
    """The disk of the state file is full."""


class Fenced(InfrastructureError):
    """Another process has taken over what this one works on; what this one still writes is refused."""

    usual_cure = "nothing is lost: the other process goes on with it; start this one again"


class DamagedArtefact(InfrastructureError):
    """A file of the artefact store is not what was put there. It was set aside; it is made again."""


class Interrupted(PerfbisectError):
    """The user pressed Ctrl-C or the process was asked to end; the state is resumable. Exit code 130."""

    exit_code = ExitCode.INTERRUPTED


_LEAST_LIKENESS = 0.65
"""Share of letters in common, from 0 to 1, of a word that is suggested: 'bde' and 'bed' have 0.67, 'scan' and
'cancel' 0.6."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the closest known word, or an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=_LEAST_LIKENESS)
    return f"; did you mean '{close[0]}'?" if close else ""

"""Gives a machine back: it runs its own kernel, and nothing of perfbisect is left there. This is checked."""

from __future__ import annotations

from bisector.adapters.machine.boot_watch import wait_for_answer
from bisector.adapters.machine.bring_back import Rescue
from bisector.adapters.machine.mark_keeper import MarkKeeper
from bisector.errors import InfrastructureError, OtherOwnKernel
from bisector.ports import Progress

_REMOVE_SECONDS = 600.0
"""Timeout of removing the workload: a million files of a benchmark take a slow disk minutes."""


def give_back(rescue: Rescue, workdir: str, progress: Progress) -> None:
    """Have the machine boot its own kernel, and remove the workload and what booting left there.

    A machine that runs its own kernel is not rebooted. Settings end with the boot that had them. Raises
    InfrastructureError: it does not come back, or something is left; OtherOwnKernel where all else is well.
    """
    found = rescue.bring_back(progress)
    if found.how == "never":
        raise InfrastructureError(
            f"the testbed '{rescue.name}' could not be given back: {found.why_not}",
            cure=f"bring it up with its own kernel, then: perfbisect testbed release {rescue.name}",
        )
    rescue.reach.run(["rm", "-rf", workdir], timeout=_REMOVE_SECONDS)
    noted = rescue.method.running().default_release  # that goes with the rest
    rescue.method.forget()
    running = rescue.method.running()
    left = ", ".join(running.left)
    if running.ours or left:
        raise InfrastructureError(
            f"the testbed '{rescue.name}' was not given back whole",
            details=f"a kernel under test runs: {running.ours or 'no'}\nleft there: {left or 'nothing'}",
            cure=f"remove that, then: perfbisect testbed release {rescue.name}",
        )
    if noted not in ("", running.release):
        raise OtherOwnKernel(
            f"the testbed '{rescue.name}' came back with another kernel of its own than it had before: "
            f"{running.release}, not {noted}",
            cure="if nobody has upgraded it, look at its boot menu and console, and boot the other one",
        )


def is_still_ours(rescue: Rescue, mark: MarkKeeper, progress: Progress) -> bool:
    """Return whether no other perfbisect has marked the machine since.

    Raises InfrastructureError where that is unknown: it does not answer, and our mark has expired. It may be
    booting for another one, so it must not be switched.
    """
    try:
        return mark.renew()
    except InfrastructureError:
        if mark.holds():
            return True
    progress(f"waiting for '{rescue.name}' to say who uses it")
    if wait_for_answer(rescue.reach, rescue.boot_timeout, stop=rescue.stop) is None:
        raise InfrastructureError(
            f"the testbed '{rescue.name}' could not be given back: it does not answer",
            details="the mark of this perfbisect there has ended, so another one may use the machine: it "
            "was not switched",
            cure=f"look at it; then: perfbisect testbed release {rescue.name}",
        )
    return mark.renew()

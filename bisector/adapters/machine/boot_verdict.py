"""Whose failure a boot is, by what was seen of it: the kernel's or the machine's. Pure."""

from __future__ import annotations

from bisector.adapters.machine.boot_watch import Sighting
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError


def judge(
    seen: Sighting, before: str, testbed: str, seconds: float, last_words: str
) -> PerfbisectError | None:
    """Return the error of a boot, None where another boot than `before` answers.

    seconds: how long it was waited for; last_words: of the console.
    """
    if seen.death:
        return BootFailed("the kernel died while it booted", details=seen.death)
    if seen.boot == before:
        return InfrastructureError(
            f"the testbed '{testbed}' did not reboot within {seconds:.0f} s",
            cure="try its boot method by hand: ansible-playbook playbooks/prepare.yml checks the tools",
        )
    if not seen.boot:
        return BootFailed(
            f"the kernel never answered over SSH within {seconds:.0f} s",
            details=f"{seen.refusal}\n{last_words}".strip(),
        )
    return None

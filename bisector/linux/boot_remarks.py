"""Remarks on a boot by its facts: settings that were not made, a console that printed nothing."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.linux.settings_report import unset

STATE, REASON = "console.state", "console.reason"
TIMES = "boot.times"
"""How the boot's time was spent, in words."""

OWN_RELEASE, OWN_BUILD_ID = "own.release", "own.build_id"
"""Of the kernel that a machine runs while nothing is measured there."""

KERNEL_PARAMETER = "perfbisect.kernel"
"""It stands on the command line of each kernel that perfbisect boots on a machine, and names it there;
`playbooks/roles/boot` writes it."""

_WORDS = {
    "silent": "silent: this boot printed nothing there, so a kernel that dies may leave no words",
    "lost": "lost: what a kernel prints is not seen",
}


def boot_text(release: str, facts: Mapping[str, str]) -> str:
    """Return the remarks on a boot: its kernel, and what its time went into where the testbed knows."""
    return f"booted {release}" + (f": {facts[TIMES]}" if facts.get(TIMES) else "")


def boot_remarks(facts: Mapping[str, str], first: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return each remark by the name of what it is about. first: the facts of the first boot there."""
    return unset(facts) | console_trouble(facts) | _own_kernel_change(first or {}, facts)


def _own_kernel_change(then: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return that the machine's own kernel is another, in words. What counts is compared elsewhere."""
    for name in (OWN_RELEASE, OWN_BUILD_ID):
        before, after = then.get(name, ""), now.get(name, "")
        if before and after and before != after:
            difference = (
                f"another than at the first boot: {before} -> {after}; kernels under test boot from it"
            )
            return {"the machine's own kernel": difference}
    return {}


def console_trouble(facts: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with it, in words, by the name 'console'; empty where nothing is."""
    words = _WORDS.get(facts.get(STATE, ""), "")
    reason = facts.get(REASON, "")
    return {"console": words + (f" ({reason})" if reason else "")} if words else {}

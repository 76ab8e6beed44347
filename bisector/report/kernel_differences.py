"""Differences of two kernels besides code: configuration, preemption, clock, mitigations, sysctls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bisector.linux.boot_remarks import KERNEL_PARAMETER
from bisector.model.facts import KernelFacts
from bisector.model.goal import Unit

Change = tuple[str, str, str]
"""(name, before, after); ABSENT where one side does not have it."""

ABSENT = "absent"

MIN_RELATIVE_CHANGE = 0.01
"""Change of a number. Sizes and limits that the kernel derives from its free memory change by some pages
with every build (memory.total, fs.file-max, vm.min_free_kbytes); below 1% nobody changed a setting."""

_BUILD_FACTS = ("build_id", "version", "uname.", "tainted", "setting.", "boot.", "console.")
"""Facts that differ between any two builds or boots, or that perfbisect sets itself."""

_OUR_PARAMETER = re.compile(rf" *\b{re.escape(KERNEL_PARAMETER)}=\S*")
"""The kernel's own name: it differs between any two kernels."""

_TOOLCHAIN_OPTIONS = ("CC_VERSION_TEXT", "BUILD_SALT", "LOCALVERSION")


@dataclass(frozen=True)
class Differences:
    """What changed from `before` to `after`. preemption: the two models, in the kernel's own words.

    granted: options that the recipe wants and that became selectable; withdrawn: the other way round.
    settings, mitigations, sysctls: facts of the running guests. known: False where one was never booted.
    """

    options: tuple[Change, ...] = ()
    granted: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    preemption: tuple[str, str] | None = None
    settings: tuple[Change, ...] = ()
    mitigations: tuple[Change, ...] = ()
    sysctls: tuple[Change, ...] = ()
    sizes: tuple[Change, ...] = ()
    known: bool = True

    def sentences(self, culprit: str, unit: Unit = "commit") -> list[str]:
        """Return the differences that may explain the effect; `culprit` names the later commit or kernel."""
        out: list[str] = []
        for name in self.granted:
            value = next((after for option, _, after in self.options if option == name), "y")
            out.append(
                f"CONFIG_{name} becomes selectable with {culprit}: the recipe asks for it, the parent's "
                f"Kconfig did not grant it, from here on it is {value}. The {unit} acts through the "
                f"configuration: a kernel that does not ask for CONFIG_{name} may see nothing of the change."
            )
        for name in self.withdrawn:
            out.append(
                f"CONFIG_{name} is no longer granted with {culprit}, though the recipe asks for it: "
                f"the {unit} acts through the configuration."
            )
        if self.preemption is not None and self.preemption[0] != self.preemption[1]:
            out.append(
                f"The preemption model changes from {self.preemption[0]} to {self.preemption[1]}, "
                "and with it how locks, interrupts and wake-ups work everywhere."
            )
        others = len(self.options) - len(self.granted) - len(self.withdrawn)
        if others > 0 and not out:
            out.append(
                f"The effective configuration differs in {others} option{'s' if others > 1 else ''}: "
                "part of the effect may come from there."
            )
        for name, before, after in self.settings:
            if name == "clocksource":
                out.append(
                    f"The clocksource changes from {before} to {after}: the guest's own clock reads "
                    "differently, so the change may be one of the clock and not of speed."
                )
        return out


def compare(
    before: KernelFacts, after: KernelFacts, facts_before: Mapping[str, str], facts_after: Mapping[str, str]
) -> Differences:
    """Compare two kernels, and the facts that their guests reported."""
    old, new = dict(before.options), dict(after.options)
    options = changed_options(old, new)
    lost_before = {name.removeprefix("CONFIG_") for name in before.lost}
    lost_after = {name.removeprefix("CONFIG_") for name in after.lost}
    facts = [
        c
        for c in _changes(_without_ours(facts_before), _without_ours(facts_after))
        if not c[0].startswith(_BUILD_FACTS) and not _nearly_equal(c[1], c[2])
    ]
    booted = bool(facts_before) and bool(facts_after)
    sizes = _changes(_texts(before.sizes), _texts(after.sizes))
    return Differences(
        options=options,
        granted=tuple(sorted(n for n in lost_before - lost_after if n in new)),
        withdrawn=tuple(sorted(n for n in lost_after - lost_before if n in old)),
        preemption=(preemption(old), preemption(new)) if old and new else None,
        settings=tuple(c for c in facts if not c[0].startswith(("mitigation.", "sysctl."))) if booted else (),
        mitigations=tuple(c for c in facts if c[0].startswith("mitigation.")) if booted else (),
        sysctls=tuple(c for c in facts if c[0].startswith("sysctl.")) if booted else (),
        sizes=sizes,
        known=bool(old) and bool(new),
    )


def _without_ours(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: _OUR_PARAMETER.sub("", text) if name == "cmdline" else text for name, text in facts.items()}


def changed_options(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the options of two configurations that differ, without those that describe the toolchain."""
    return tuple(c for c in _changes(old, new) if not c[0].startswith(_TOOLCHAIN_OPTIONS))


def preemption(options: Mapping[str, str]) -> str:
    """Return the preemption model that a configuration selects."""
    for option, words in (
        ("PREEMPT_RT", "fully preemptible (PREEMPT_RT)"),
        ("PREEMPT_LAZY", "lazy (PREEMPT_LAZY)"),
        ("PREEMPT_VOLUNTARY", "voluntary (PREEMPT_VOLUNTARY)"),
        ("PREEMPT", "preemptible (PREEMPT)"),
        ("PREEMPT_NONE", "none (PREEMPT_NONE)"),
    ):
        if options.get(option) == "y":
            dynamic = ", switchable at boot" if options.get("PREEMPT_DYNAMIC") == "y" else ""
            return words + dynamic
    return "none"


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Change, ...]:
    return tuple(
        (name, old.get(name, ABSENT), new.get(name, ABSENT))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _nearly_equal(a: str, b: str) -> bool:
    """Return whether two texts have the same words, and numbers that agree within 1%."""
    left, right = a.split(), b.split()
    if len(left) != len(right):
        return False
    for x, y in zip(left, right, strict=True):
        if x == y:
            continue
        try:
            p, q = float(x), float(y)
        except ValueError:
            return False
        if abs(p - q) > MIN_RELATIVE_CHANGE * max(abs(p), abs(q)):
            return False
    return True

"""Whose failure a boot or a run on a machine is: a table of evidence and verdicts. Pure.

A failure of the kernel counts against the commit, which is skipped when that happens again. A failure of the
machine says nothing about a commit. No kernel is blamed unless the machine was shown to be well afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bisector.adapters.machine.failure_evidence import FailureEvidence
from bisector.errors import BootFailed, BootTooSlow, BootUnclear, InfrastructureError, PerfbisectError
from bisector.linux.console_text import death, hardware_failed, tail

Owner = Literal["kernel", "machine", "either", "unclear"]
"""either: one of them is slow; it is the kernel's where another one boots in time. unclear: it is of this
kernel or of the one that ran before; a boot from the machine's own kernel shows which."""


@dataclass(frozen=True, slots=True)
class Clause:
    """If `holds`, it was the owner's failure; words say what happened. name: for tests and readers."""

    name: str
    holds: Callable[[FailureEvidence], bool]
    owner: Owner
    words: Callable[[FailureEvidence], str]


_DOING = {
    "boot": "while it booted",
    "deploy": "while the workload was put on it",
    "run": "while the workload ran",
}


def _back(seen: FailureEvidence) -> str:
    """Return how the machine came back, to end a sentence about a kernel."""
    return {
        "answered": "the machine is well",
        "by itself": "the machine came back by itself with its own kernel",
        "restarted": "the machine was restarted and is well",
        "switched on": "the machine was switched on and is well",
        "power cycle": "the machine came back with its own kernel once it was switched off and on",
        "never": "the machine did not come back",
    }[seen.came_back]


def _death(seen: FailureEvidence) -> str:
    return death(seen.panic) or "see its console"


CLAUSES: tuple[Clause, ...] = (
    Clause(
        "did not come back",
        lambda e: e.came_back == "never",
        "machine",
        lambda e: (
            "the machine does not come back"
            + (f", and its disk had failed {_DOING[e.stage]} ({e.disk})" if e.disk else "")
            + (f": {e.unwell}" if e.unwell else "")
        ),
    ),
    Clause(
        "unwell",
        lambda e: e.unwell != "",
        "machine",
        lambda e: (
            "the machine is not well"
            + (" under its own kernel either" if e.came_back != "answered" else "")
            + f": {e.unwell}"
        ),
    ),
    Clause(
        "hardware failed",
        lambda e: hardware_failed(e.panic),
        "machine",
        lambda e: f"its hardware failed {_DOING[e.stage]} ({_death(e)}); {_back(e)}",
    ),
    Clause(
        "panic",
        lambda e: e.panic != "",
        "kernel",
        lambda e: f"the kernel died {_DOING[e.stage]} ({_death(e)}); {_back(e)}",
    ),
    Clause(
        "switched itself off",
        lambda e: e.shutdown != "" and (e.power == "off" or e.came_back == "switched on"),
        "kernel",  # a machine that is too hot whatever it runs is so under the known kernel, too
        lambda e: f"the kernel switched the machine off {_DOING[e.stage]} ({e.shutdown}); {_back(e)}",
    ),
    Clause(
        "the one before",
        lambda e: e.stage == "boot" and e.after_another and not e.starts,
        "unclear",
        lambda e: (
            "nothing shows that the kernel started: the one that ran there before may not have shut down; "
            + _back(e)
        ),
    ),
    Clause(
        "switched off",
        lambda e: e.power == "off" or e.came_back == "switched on",
        "machine",
        lambda e: "somebody switched the machine off",
    ),
    Clause(
        "did not reboot",
        lambda e: e.stage == "boot" and e.answered == "same boot",
        "machine",
        lambda e: f"the machine did not reboot within {e.seconds:.0f} s",
    ),
    Clause(
        "never started",
        lambda e: e.stage == "boot" and e.answered == "own kernel" and e.starts == 0,
        "kernel",  # one that resets before it has a console looks so; the known kernel tells a boot loader
        lambda e: f"the kernel ended before its console showed that it had started; {_back(e)}",
    ),
    Clause(
        "rebooted by somebody",
        lambda e: e.closed and e.answered == "nobody" and e.came_back == "by itself",
        "machine",
        lambda e: "somebody rebooted the machine: it ended its connections in order, and came back by itself",
    ),
    Clause(
        "boot loop",  # where its boot goes on it did not start anew: a BMC sends old text again
        lambda e: ((e.starts or 0) > 1 and e.answered != "same boot") or e.answered == "kernel under test",
        "kernel",
        lambda e: f"the kernel started again and again {_DOING[e.stage]}; {_back(e)}",
    ),
    Clause(
        "fell back",
        lambda e: e.stage == "boot" and e.answered == "own kernel",
        "kernel",
        lambda e: f"the kernel ended before it answered over SSH; {_back(e)}",
    ),
    Clause(
        "disk gone",
        lambda e: e.disk != "",
        "kernel",
        lambda e: f"the kernel lost the machine's disk {_DOING[e.stage]} ({e.disk}); {_back(e)}",
    ),
    Clause(
        "hung",
        lambda e: e.hung != "",  # it is looked for where the boot goes on
        "kernel",
        lambda e: f"the kernel hangs {_DOING[e.stage]}: {e.hung} cannot be ended; {_back(e)}",
    ),
    Clause(
        "connection cut",
        lambda e: e.answered == "same boot",
        "machine",
        lambda e: "the connection to the machine broke, and the machine ran on",
    ),
    Clause(
        "crashed",
        lambda e: e.stage != "boot" and e.came_back == "by itself",
        "kernel",
        lambda e: f"the kernel fell silent {_DOING[e.stage]}; {_back(e)}",
    ),
    Clause(
        "too slow",
        lambda e: e.stage == "boot" and e.came_back == "restarted",  # over SSH, so it has a network
        "either",
        lambda e: (
            f"the kernel answered over SSH only after {e.seconds:.0f} s (perfbisect_boot_timeout); {_back(e)}"
        ),
    ),
    Clause(
        "idle switch",  # silence is all there is, and what hardware did so shows may be its own
        lambda e: e.idle_switch and not (e.stage == "boot" and e.starts),
        "machine",
        lambda e: (
            f"the machine fell silent {_DOING[e.stage]}, and was not switched by a stage of its power that "
            "said so, only by the next one: whose failure that is cannot be told"
        ),
    ),
    Clause(
        "no network",
        lambda e: e.stage == "boot" and e.logged_in,
        "kernel",
        lambda e: f"the kernel has no network: its console shows a whole boot, SSH is silent; {_back(e)}",
    ),
    Clause(
        "hang",
        lambda e: True,
        "kernel",
        lambda e: (
            f"the kernel never answered over SSH within {e.seconds:.0f} s "
            f"(perfbisect_boot_timeout); {_back(e)}"
            if e.stage == "boot"
            else f"the kernel fell silent {_DOING[e.stage]}; {_back(e)}"
        ),
    ),
)
"""The first that holds decides. Those of the machine come before what could pass for a kernel's failure, but
for a panic on the console, which nothing else prints, and which names the hardware where that caused it."""


_NO_ROOT = "VFS: Unable to mount root fs"
_DRIVERS = (
    "if the kernel lacks the drivers of the machine's disk, build it with those of usual machines: "
    "--recipe RECIPE+bare-metal"
)


def judge(seen: FailureEvidence) -> tuple[Clause, str]:
    """Return the clause that decides, and what happened in words."""
    clause = next(clause for clause in CLAUSES if clause.holds(seen))
    return clause, clause.words(seen)


def error_of(seen: FailureEvidence, testbed: str) -> PerfbisectError:
    """Return the error that the evidence makes, with all of it named: BootFailed, BootTooSlow, BootUnclear or
    InfrastructureError.
    """
    clause, words = judge(seen)
    if clause.owner == "unclear":
        return BootUnclear(words, details=describe(seen))
    if clause.owner == "either":
        return BootTooSlow(words, details=describe(seen))
    if clause.owner == "kernel":
        if not seen.panic and seen.console in ("silent", "lost"):
            words += f"; the machine's console was {seen.console}"
        return BootFailed(words, details=describe(seen), cure=_DRIVERS if _NO_ROOT in seen.panic else "")
    cure = f"'perfbisect lab check' looks at '{testbed}'; nothing was held against the commit"
    if hardware_failed(seen.panic):
        cure = f"look at the event log of its BMC, and test its memory; {cure}"
    if seen.came_back == "never":
        cure = (
            f"bring it up by hand with its own kernel, then: perfbisect testbed release {testbed}; "
            "nothing was held against the commit: leave it out with 'perfbisect mark' if it does that again"
        )
    return InfrastructureError(f"the testbed '{testbed}': {words}", details=describe(seen), cure=cure)


def describe(seen: FailureEvidence) -> str:
    """Return the evidence, a line each, the console's excerpt last."""
    power = f"power: {seen.power}" + (f" ({seen.power_trouble})" if seen.power_trouble else "")
    lines = [
        f"noticed: {seen.failure}",
        f"then answered: {seen.answered}; it came back: {seen.came_back}",
        f"{power}; console: {seen.console}",
    ]
    if seen.boots:
        lines.append(f"boots: {', '.join(seen.boots)}")
    if seen.disk:
        lines.append(f"the disk under that kernel: {seen.disk}")
    if seen.details.strip():
        lines.append(seen.details.strip())
    words = tail(seen.last_words) if seen.panic in ("", seen.record) else seen.panic
    if words.strip() not in seen.details:  # as no words are, too
        lines += ["console:", words.strip()]
    if seen.record.strip():
        lines += ["left in memory by the kernel that died (pstore):", seen.record.strip()]
    return "\n".join(lines)

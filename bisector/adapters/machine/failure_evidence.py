"""What was seen of a boot or a run that failed on a machine: `failure_verdict` judges by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bisector.adapters.machine.machine_parts import ConsoleState

Stage = Literal["boot", "deploy", "run"]
"""The awaited event: an answer over SSH; the workload on the machine; the end of a run."""

Answered = Literal["nobody", "same boot", "own kernel", "kernel under test"]
"""Who answered when the failure was noticed. same boot: of a boot, that from before it was asked for; of the
other stages, that of the kernel under test. kernel under test: it started once more."""

PowerSeen = Literal["on", "off", "unknown", "dead"]
"""The power switch's state before anything was switched; dead: it did not answer."""

CameBack = Literal["answered", "by itself", "restarted", "switched on", "power cycle", "never"]
"""How the machine came to run its own kernel again. answered: it was never away."""


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """Observations from the request of a boot until the machine ran its own kernel again.

    failure: the error as it was met; after_another: what ran when the boot was asked for was a kernel under
    test, too, and not the machine's own; seconds: how long an answer was waited for; panic: the console's end
    with a kernel's death; starts: how often a kernel of its release began on the console, None where that
    cannot be seen; logged_in: the console shows the end of a boot; shutdown: the line of its console in which
    the kernel says why it switches the machine off; closed: the machine ended the connection of a run, and
    did not just fall silent; hung: processes of the workload that cannot be ended; disk: what shows that the
    disk is lost under the kernel under test; unwell: what is wrong with the machine, under its own kernel
    unless it was never away, or why it does not come back; power_trouble: why the switch did not work;
    idle_switch: a stage of the power said that it had switched, and only the next one had an effect; boots:
    ids, the first from before the request; last_words: the end of the console; record: what a kernel left in
    memory that outlives it (pstore) when it died.
    """

    stage: Stage
    failure: str
    answered: Answered
    came_back: CameBack
    seconds: float = 0.0
    panic: str = ""
    console: ConsoleState = "off"
    starts: int | None = None
    logged_in: bool = False
    shutdown: str = ""
    closed: bool = False
    hung: str = ""
    disk: str = ""
    power: PowerSeen = "unknown"
    power_trouble: str = ""
    idle_switch: bool = False
    unwell: str = ""
    boots: tuple[str, ...] = ()
    details: str = ""
    last_words: str = ""
    record: str = ""
    after_another: bool = False

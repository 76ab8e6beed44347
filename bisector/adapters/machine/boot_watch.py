"""Watches a machine that is booting: whether it went down, answers again, or its kernel died."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from bisector.adapters.machine.machine_parts import Console
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import AuthenticationFailed
from bisector.errors import InfrastructureError, Interrupted

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
"""Pause between two attempts to reach a machine."""

Stop = Callable[[], bool]


def never() -> bool:
    """Return False: nothing stops the wait."""
    return False


@dataclass(frozen=True, slots=True)
class Sighting:
    """Observations of a boot until it answered, died, or time was up.

    answer: who answered at the end, None for nobody; panic: the console's end with a death; refusal: how
    nobody answered.
    """

    answer: Answer | None
    panic: str = ""
    refusal: str = ""


def watch_boot(
    reach: MachineReach, before: str, console: Console, seconds: float, stop: Stop = never
) -> Sighting:
    """Wait until SSH answers from another boot than `before`, or the console shows a death.

    Raises Interrupted when told to stop.
    """
    deadline = awake_seconds() + seconds
    seen = Sighting(Answer(before, ""))
    while awake_seconds() < deadline:
        if stop():
            raise Interrupted("stopped while a machine booted")
        try:
            answer = reach.ask()
            if answer.boot_id != before:
                # A console may show a death late, when the machine is back with its own kernel already.
                return Sighting(answer, "" if answer.ours else console.death() or "")
            seen = Sighting(answer)
        except InfrastructureError as error:  # also a machine that answers and cannot log anybody in
            seen = Sighting(None, refusal=f"{error.message}: {error.details}")
        death = console.death()
        if death is not None:
            return Sighting(seen.answer, death, seen.refusal)
        time.sleep(PAUSE_SECONDS)
    return seen


def wait_for_answer(
    reach: MachineReach,
    seconds: float,
    wanted: Callable[[Answer], bool] = lambda answer: True,
    stop: Stop = never,
) -> Answer | None:
    """Return the wanted answer if it comes within so many seconds, else None.

    The machine is asked at least once. While it boots it may refuse our login, or show the host key of its
    initramfs. Raises AuthenticationFailed where it still does at the end: it may be another machine, which
    must not be switched; Interrupted when told to stop.
    """
    deadline = awake_seconds() + seconds
    while True:
        stranger: AuthenticationFailed | None = None
        if stop():
            raise Interrupted("stopped while a machine was waited for")
        try:
            answer = reach.ask()
            if wanted(answer):
                return answer
        except AuthenticationFailed as error:
            stranger = error
        except InfrastructureError as error:
            log.debug("%s", error)
        if awake_seconds() > deadline:
            if stranger is not None:
                raise stranger
            return None
        time.sleep(PAUSE_SECONDS)

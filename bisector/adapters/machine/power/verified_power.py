"""A power switch whose state is read: requests are repeated, and believed when the state says so."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power.power_stage import PowerConflict, PowerRefused, PowerStage
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.errors import InfrastructureError

log = logging.getLogger(__name__)

_TRIES = 3
"""Of a request: a BMC loses one while it is busy or resets itself; more is a dead one."""

_PAUSE_SECONDS = 2.0
"""Pause before the second try; doubled before each further one."""

_POLL_SECONDS = 1.0
"""Between two questions for the state; a BMC needs some 0.2 s for each."""

_SWITCH_SECONDS = 60.0
"""Until the state must be what was asked for: servers take 5 to 20 s from 'off' to off."""

_LOST_REQUESTS = 1
"""Requests that a BMC may acknowledge without doing anything, as some do within seconds of the one before."""

_OFF_SECONDS = 5.0
"""Off between off and on: power supplies keep a machine alive for a second or two; ipmitool waits 5."""


class VerifiedPower:
    """See `Power`. A cycle is made of off and on where there is none, or it is refused or in conflict."""

    def __init__(self, power: PowerStage, wait: Callable[[float], None] = time.sleep) -> None:
        """wait: how to pause; raises what ends the waiting."""
        self.name = power.name
        self._power = power
        self._wait = wait

    def on(self) -> None:
        """See `Power.on`. Raises InfrastructureError if its state stays another."""
        self._switch("on", self._power.on)

    def off(self) -> None:
        """See `Power.off`. Raises as `on`."""
        self._switch("off", self._power.off)

    def cycle(self) -> None:
        """See `Power.cycle`. Raises as `on`."""
        if self.status() == "off":
            with contextlib.suppress(PowerRefused):
                return self.on()  # IPMI 2.0, 28.3: a power cycle has no effect where it is off
        try:
            self._try(self._power.cycle)
        except (PowerRefused, PowerConflict) as refusal:
            log.info("%s: %s; switching it off and on", self.name, refusal.message)
            self._off_and_on(refusal)
        else:
            if not self._reaches("on"):
                self.on()

    def _off_and_on(self, refusal: PowerRefused | PowerConflict) -> None:
        """Switch it off and on; what breaks in between leaves it on. Raises `refusal`, or as `on`."""
        try:
            try:
                self.off()
            except PowerRefused:
                raise refusal from None
            self._wait(_OFF_SECONDS)
            self._on_again()
        except BaseException as error:
            if error is not refusal:
                with contextlib.suppress(Exception):
                    self._power.on()  # once, and unverified: waiting may be what was ended
            raise

    def _on_again(self) -> None:
        """Switch on what was just switched off. A refusal is temporary: the BMC may still be switching off.

        Raises as `on`.
        """
        deadline = awake_seconds() + _SWITCH_SECONDS
        while True:
            try:
                return self.on()
            except PowerRefused:
                if awake_seconds() > deadline:
                    raise
            self._wait(_PAUSE_SECONDS)

    def status(self) -> PowerStatus:
        """See `Power.status`."""
        states: list[PowerStatus] = []
        self._try(lambda: states.append(self._power.status()))
        return states[-1]

    def _switch(self, state: PowerStatus, request: Callable[[], None]) -> None:
        conflict = ""
        for _ in range(_LOST_REQUESTS + 1):
            try:
                self._try(request)
            except PowerRefused:
                if self.status() != state:
                    raise
                return  # BMCs of Dell refuse 'off' where it is off
            except PowerConflict as error:
                if self.status() == "unknown":
                    raise
                conflict = f"{error.message}\n{error.details}"  # what is under way may lead there
            if self._reaches(state):
                return
        raise InfrastructureError(
            f"its state is '{self.status()}' {_SWITCH_SECONDS:.0f} s after '{state}'", details=conflict
        )

    def _reaches(self, state: PowerStatus) -> bool:
        """Wait until the state is as wanted, or cannot be read; return whether it came to that in time."""
        deadline = awake_seconds() + _SWITCH_SECONDS
        while self.status() not in (state, "unknown"):
            if awake_seconds() > deadline:
                return False
            self._wait(_POLL_SECONDS)
        return True

    def _try(self, request: Callable[[], None]) -> None:
        for attempt in range(_TRIES):
            try:
                request()
            except PowerRefused:
                raise
            except InfrastructureError as error:
                if attempt + 1 == _TRIES:
                    raise
                log.info("%s: %s; trying again", self.name, error.message)
                self._wait(_PAUSE_SECONDS * 2**attempt)
            else:
                break

"""A power switch in memory that passes the contract of the real ones, and can be hurt."""

from __future__ import annotations

from typing import Literal

from bisector.errors import InfrastructureError

State = Literal["on", "off", "unknown"]


class FakePower:
    """See `Power` in `adapters/machine/power`. dead: requests that fail from now on, each takes one away."""

    def __init__(self, name: str = "fake", *, dead: int = 0) -> None:
        self.name = name
        self.state: State = "off"
        self.starts = 0
        """How often the machine began to run."""
        self.dead = dead

    def on(self) -> None:
        """Switch on."""
        self._answer()
        if self.state == "off":
            self.state = "on"
            self.starts += 1

    def off(self) -> None:
        """Switch off."""
        self._answer()
        self.state = "off"

    def cycle(self) -> None:
        """Switch off and on."""
        self._answer()
        self.state = "on"
        self.starts += 1

    def status(self) -> State:
        """Return the state."""
        self._answer()
        return self.state

    def _answer(self) -> None:
        if self.dead > 0:
            self.dead -= 1
            raise InfrastructureError("the BMC does not answer")

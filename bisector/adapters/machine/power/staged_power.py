"""Several ways to switch one machine, tried in turn: its BMC, and a PDU where the BMC is dead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bisector.adapters.machine.machine_parts import PowerStatus
from bisector.adapters.machine.power.power_stage import PowerRefused, PowerStage
from bisector.errors import InfrastructureError, PerfbisectError, RequestError


class StagedPower:
    """See `Power`. The first stage that does what is asked is enough."""

    def __init__(self, testbed: str, stages: Sequence[PowerStage], tell: Callable[[str], None]) -> None:
        """tell: called with a sentence when a stage fails while another one is left."""
        self.name = testbed
        self._stages = stages
        self._tell = tell
        self._tried = len(stages)
        """Stages up to the one that switched last; all where none did."""
        self._switched: int | None = None
        """The number of the stage that switched last, from 1 on."""

    def on(self) -> None:
        """See `Power.on`. Raises InfrastructureError that names each stage and how it failed."""
        self._switch("switched on", lambda stage: stage.on())

    def off(self) -> None:
        """See `Power.off`. Raises as `on`."""
        self._switch("switched off", lambda stage: stage.off())

    def cycle(self) -> None:
        """See `Power.cycle`. Raises as `on`."""
        self._switch("switched off and on", lambda stage: stage.cycle())

    def further(self) -> StagedPower | None:
        """See `Power.further`."""
        stages = self._stages[self._tried :]
        return StagedPower(self.name, stages, self._tell) if stages else None

    def switched_by(self) -> str:
        """Return which stage switched last, as '2 of 3 (command pdu)'; '' where none did, or it is alone."""
        if len(self._stages) < 2 or self._switched is None:
            return ""
        return f"{self._switched} of {len(self._stages)} ({self._stages[self._switched - 1].name})"

    def status(self) -> PowerStatus:
        """See `Power.status`. Raises as `on`, unless a stage merely does not know."""
        states: list[PowerStatus] = []

        def ask(stage: PowerStage) -> None:
            states.append(stage.status())
            if states[-1] == "unknown":
                raise PowerRefused("it cannot tell its state")

        try:
            self._ask("asked for its state", ask)
        except InfrastructureError:
            if not states:
                raise
        return states[-1]

    def _switch(self, what: str, request: Callable[[PowerStage], None]) -> None:
        self._tried = len(self._stages)
        self._switched = None
        self._switched = self._tried = self._ask(what, request)

    def _ask(self, what: str, request: Callable[[PowerStage], None]) -> int:
        """Return how many stages were asked until one did it."""
        failures: list[tuple[str, PerfbisectError]] = []
        for number, stage in enumerate(self._stages, start=1):
            try:
                request(stage)
            except (InfrastructureError, RequestError) as error:
                failures.append((stage.name, error))
                if number < len(self._stages):
                    self._tell(
                        f"power of '{self.name}': {stage.name}: {error.message}; trying the next stage"
                    )
            else:
                return number
        raise all_failed(self.name, what, failures)


def all_failed(
    testbed: str, what: str, failures: Sequence[tuple[str, PerfbisectError]]
) -> InfrastructureError:
    """Return the failure of all stages. what: a testbed cannot be, in words; failures: by their stages."""
    cures = [error.cure for _, error in failures if error.cure != type(error).usual_cure]
    kind = PowerRefused if all(isinstance(e, PowerRefused) for _, e in failures) else InfrastructureError
    return kind(
        f"the testbed '{testbed}' cannot be {what}: "
        + "; ".join(f"{name}: {error.message}" for name, error in failures),
        details="\n".join(f"{name}: {error.details}" for name, error in failures if error.details),
        cure="; ".join(cures) or f"'perfbisect lab power {testbed} status' asks them again",
    )

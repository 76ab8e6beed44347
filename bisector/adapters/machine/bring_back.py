"""Brings a machine back to its own kernel: by waiting, by a restart over SSH, by its power switch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from bisector.adapters.machine.boot_watch import Stop, never, wait_for_answer
from bisector.adapters.machine.failure_evidence import CameBack, PowerSeen
from bisector.adapters.machine.machine_parts import BootMethod, Power
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.system.ssh import AuthenticationFailed
from bisector.errors import InfrastructureError, Interrupted
from bisector.ports import Progress


@dataclass(frozen=True, slots=True)
class Return:
    """How a machine came to run its own kernel. power: before anything was switched; trouble: of the switch.

    why_not: why it never did; first: who answered first, before any restart, also after a switch that may
    have done nothing; idle_switch: a stage of its power reported success without any effect, and only the
    next one brought the machine back.
    """

    how: CameBack
    power: PowerSeen = "unknown"
    trouble: str = ""
    why_not: str = ""
    answer: Answer | None = None
    first: Answer | None = None
    idle_switch: bool = False


@dataclass(frozen=True, slots=True)
class Rescue:
    """What a machine is brought back with. boot_timeout: seconds until SSH answers after a boot.

    stop: asked while it is waited for, and before it is restarted or switched: True raises Interrupted.
    """

    name: str
    reach: MachineReach
    method: BootMethod
    power: Power | None
    boot_timeout: float
    stop: Stop = never

    def bring_back(self, progress: Progress, patience: float | None = None) -> Return:
        """Have the machine run its own kernel. Never raises for a machine that does not.

        A kernel under test that the network still serves is withdrawn first: each way back would boot it.
        Who shows another host key or refuses our login may be another machine, and is left alone.
        patience: seconds in which it may come back by itself before it is switched, by default a boot's;
        without a power switch that is all there is, and what its watchdog needs to reset it. Raises
        InfrastructureError where this host cannot withdraw the kernel, Interrupted when told to stop.
        """
        self.method.end_request(up=False)
        if self.power is None:
            patience = self.boot_timeout + self.method.watchdog_spare
        elif patience is None:
            patience = self.boot_timeout
        try:
            return self._bring_back(progress, patience)
        except AuthenticationFailed as error:
            why_not = f"{error.message}; it may be another machine, and is left alone: {error.cure}"
            return Return("never", why_not=why_not)

    def leave_kernel_under_test(self, progress: Progress) -> None:
        """Have the machine run its own kernel, from which the next one is booted.

        A kernel that does not shut down has been measured all the same. Raises as `bring_back`, and
        InfrastructureError for a machine that does not come back.
        """
        found = self.bring_back(progress)
        if found.how == "never":
            raise InfrastructureError(
                f"the testbed '{self.name}' does not come back to its own kernel: {found.why_not}"
            )
        if found.how == "power cycle":
            progress(f"the kernel that ran on '{self.name}' did not shut down; the next one is booted now")

    def _bring_back(self, progress: Progress, patience: float) -> Return:
        """Do so. Raises AuthenticationFailed where somebody else seems to answer at the end."""
        try:
            first = self._wait(0.0)
        except AuthenticationFailed:  # it may be booting
            progress(f"'{self.name}' answers, and does not let us in: waiting for it to do so")
            first = self._wait(patience)
        if first is not None:
            return replace(self._own_kernel(first, progress, "answered"), first=first)
        power, trouble = self._power_status()
        how: CameBack = "by itself"
        idle = False
        if power == "off":
            progress(f"'{self.name}' is switched off: switching it on")
            how, trouble = "switched on", self._switch("on")
            answer = self._wait(self.boot_timeout)
        else:
            progress(f"waiting for '{self.name}' to come back")
            answer = self._wait(patience)
        if answer is None and self.power is not None:
            # Somebody may have switched it off meanwhile; one that was switched on and hangs needs a cycle.
            now, trouble = self._power_status()
            power = power if power == "off" else now
            back = self._switch_back(now, progress, trouble)
            how, trouble, answer, idle = back.how, back.trouble, back.answer, back.idle_switch
        if answer is None:
            return Return("never", power, trouble, self._why_not(trouble))
        found = self._own_kernel(answer, progress, how)
        return replace(
            found,
            power=power,
            trouble=trouble or found.trouble,
            first=answer,
            idle_switch=idle or found.idle_switch,
        )

    def _own_kernel(self, answer: Answer, progress: Progress, how: CameBack) -> Return:
        return self._restart(answer, progress) if answer.ours else Return(how, answer=answer)

    def _restart(self, running: Answer, progress: Progress) -> Return:
        """Have a machine that answers with a kernel under test boot its own."""
        self._check_stop()
        progress(f"'{self.name}' boots its own kernel")
        why = ""
        try:
            self.method.restart()
        except AuthenticationFailed:
            raise
        except InfrastructureError as error:  # it went down meanwhile, or cannot start programs any more
            why = f"{error.message}. {error.details}"
        answer = None

        def is_own(one: Answer) -> bool:
            return not one.ours

        if not why or self.power is None:
            answer = self._wait(self.boot_timeout, is_own)
        if answer is not None:
            return Return("restarted", answer=answer)
        if self.power is None:
            return Return("never", why_not=why or self._why_not(""))
        power, trouble = self._power_status()
        back = self._switch_back(power, progress, trouble, is_own, running.boot_id)
        return back if back.answer is not None else replace(back, why_not=self._why_not(back.trouble))

    def _switch_back(
        self,
        power: PowerSeen,
        progress: Progress,
        trouble: str,
        wanted: Callable[[Answer], bool] = lambda _: True,
        before: str = "",
    ) -> Return:
        """Switch it off and on, by one stage after the other, until who is wanted answers, or none is left.

        before: the boot that answers now, '' for none. The next stage is tried only where the last one
        changed nothing: the same boot answers, or nobody. Any new boot shows that the switch works.
        """
        how, trouble = self._switch_off_and_on(power, progress, trouble)
        answer = self._wait(self.boot_timeout, wanted)
        switch, idle = self.power, False
        while answer is None and switch is not None and (switch := switch.further()) is not None:
            if not self._is_unchanged(before):
                break
            progress(
                f"'{self.name}' has not come back after it was switched off and on: "
                "trying the next stage of its power"
            )
            how, idle, trouble = "power cycle", True, self._switch("cycle", switch)
            answer = self._wait(self.boot_timeout, wanted)
        if answer is None:
            if idle:
                of_the_next = f"; of the next one: {trouble}" if trouble else ", nor of the next one"
                trouble = f"a stage said that it had switched, and nothing came of it{of_the_next}"
            return Return("never", power, trouble)
        if idle and not trouble:
            trouble = "a stage said that it had switched, and the machine came back only by the next one"
        return Return(how, power, trouble, answer=answer, idle_switch=idle)

    def _is_unchanged(self, before: str) -> bool:
        """Return whether nobody answers, or the boot of before. Raises AuthenticationFailed."""
        try:
            return self.reach.ask().boot_id == before
        except AuthenticationFailed:
            raise
        except InfrastructureError:
            return True

    def _switch_off_and_on(self, power: PowerSeen, progress: Progress, trouble: str) -> tuple[CameBack, str]:
        if power == "off":
            progress(f"'{self.name}' is switched off: switching it on")
            return "switched on", self._switch("on")
        progress(f"'{self.name}' does not answer: switching it off and on")
        return "power cycle", self._switch("cycle") or trouble

    def _power_status(self) -> tuple[PowerSeen, str]:
        if self.power is None:
            return "unknown", ""
        try:
            return self.power.status(), ""
        except InfrastructureError as error:
            return "dead", _in_one_line(error)

    def _switch(self, what: Literal["on", "cycle"], by: Power | None = None) -> str:
        """Switch it, by all stages or by these; return what went wrong, '' for nothing."""
        power = by or self.power
        assert power is not None
        self._check_stop()
        try:
            if what == "on":
                power.on()
            else:
                power.cycle()
        except InfrastructureError as error:
            return _in_one_line(error)
        return ""

    def _wait(self, seconds: float, wanted: Callable[[Answer], bool] = lambda _: True) -> Answer | None:
        return wait_for_answer(self.reach, seconds, wanted, self.stop)

    def _check_stop(self) -> None:
        if self.stop():
            raise Interrupted(f"stopped while '{self.name}' was brought back")

    def _why_not(self, trouble: str) -> str:
        """Return what the machine says instead, now."""
        try:
            ours = self.reach.ask().ours
        except InfrastructureError as error:
            problem = f"{error.message} ({error.details})"
        else:
            problem = "it still runs a kernel under test" if ours else "it answers only now"
        if self.power is None:
            return f"{problem}; it cannot be switched from here"
        return (
            f"{problem}; its power switch: {trouble}" if trouble else f"{problem}, also after it was switched"
        )


def _in_one_line(error: InfrastructureError) -> str:
    """Return what went wrong: details begin with the command, and the last line that it printed says why."""
    lines = error.details.strip().split("\n")
    return ". ".join(filter(None, dict.fromkeys((error.message, lines[0], lines[-1].strip()))))

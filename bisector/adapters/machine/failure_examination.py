"""Finds out whose failure a boot or a run on a machine is: collects the evidence, brings the machine back."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace

from bisector.adapters.machine.boot_watch import Sighting, wait_for_answer
from bisector.adapters.machine.bring_back import Rescue
from bisector.adapters.machine.failure_evidence import Answered, FailureEvidence
from bisector.adapters.machine.failure_verdict import error_of
from bisector.adapters.machine.machine_parts import Console
from bisector.adapters.machine.workdir_probe import is_lost_disk, survivors, why_not_writable
from bisector.adapters.system.channel import CommandUnanswered, LineSilent
from bisector.adapters.system.ssh import AuthenticationFailed
from bisector.errors import BootFailed, InfrastructureError, PerfbisectError, WorkloadFailed
from bisector.linux.console_text import (
    clean,
    clean_text,
    death,
    hardware_failed,
    is_death,
    own_shutdown,
    tail,
)
from bisector.ports import Kernel, Progress

log = logging.getLogger(__name__)

_BANNER = re.compile(r"\bLinux version (\S+)")
_DIED = re.compile(r"\b[Cc]omm: .{0,80}?(?:Not tainted|Tainted: [A-Z ]{1,60}?) {1,20}\(?([^\s(]+) #")
"""The line of a kernel's report that names its release: of a warning, an oops, a panic. Linux 3.9 and older
have 'comm', of 32 bits up to 2.6.30 parentheses about the release."""

_RECORD_CHARACTERS = 4000
"""Of a record that is kept; a kernel under test has written it."""

_DEATH_LINES = 12
"""From the message of a panic on that are searched for the line above; it follows within six."""

_LOGGED_IN = re.compile(r"\blogin: |Reached target .*(Multi-User|Network|Login)|\bsshd\b")
"""Console output of a boot that has reached its services. 'Welcome to' is none: systemd greets so when it
begins, in an initramfs too."""

_CONSOLE_BYTES = 2 << 20
"""Of the console that is searched: its beginning, which has the starts of kernels."""


def _printed_by(release: str, text: str) -> str:
    """Return the part of a console that a release printed; all of it where no kernel prints its banner.

    The machine's own kernel may have booted before on the same console, and come to its end.
    """
    starts = [*_BANNER.finditer(text)]
    if not starts:
        return text
    ends = [match.start() for match in starts[1:]] + [len(text)]
    return "".join(
        text[match.end() : end] for match, end in zip(starts, ends, strict=True) if match[1] == release
    )


def _named_at_death(panic: str) -> set[str]:
    """Return the releases that a death on a console names: that of the last banner before it, and in traces.

    What a machine prints afterwards is of its next boot.
    """
    lines = panic.splitlines()
    at = next((i for i, line in enumerate(lines) if is_death(line)), 0)
    text = "\n".join(lines[: at + _DEATH_LINES])
    banners = [*_BANNER.finditer("\n".join(lines[:at]))]
    if banners:
        text = text[banners[-1].start() :]
    return {match[1] for match in (*banners[-1:], *_DIED.finditer(text))}


def _of_a_boot_that_goes_on(seen: FailureEvidence) -> FailureEvidence:
    """Return the evidence without a death: a boot that answers later was alive. A BMC may repeat old text."""
    if not seen.panic:
        return replace(seen, answered="same boot")  # it was only out of reach for a while
    told = "its console shows the death of a kernel, after which the boot of before it answered"
    return replace(seen, answered="same boot", panic="", details=f"{seen.details}\n{told}".strip())


@dataclass(frozen=True, slots=True)
class Examination:
    """Of one boot. before: the id of the machine's boot before it; workdir: of the workload there."""

    rescue: Rescue
    console: Console
    kernel: Kernel
    before: str
    workdir: str
    progress: Progress

    def of_boot(self, seen: Sighting) -> PerfbisectError:
        """Return the error, by whose fault it is, for a kernel under test that does not answer.

        One that answers has booted, so what answers here is another kernel, or the boot before.
        """
        answered: Answered = "nobody"
        boots: tuple[str, ...] = (self.before,)
        if seen.answer is not None:
            answered = "same boot" if seen.answer.boot_id == self.before else "own kernel"
            boots = tuple(dict.fromkeys((self.before, seen.answer.boot_id)))
        late = FailureEvidence(
            "boot",
            "the kernel under test did not answer over SSH",
            answered,
            "answered",
            details=seen.refusal,
            panic=seen.panic,
            boots=boots,
            after_another=self.rescue.method.ran != "",
        )
        if answered == "same boot" and not (seen.panic or late.after_another):
            return self._judge(self._with_console(late))
        waited = answered == "nobody" and not seen.panic
        return self._after_return(self._with_console(late), 0.0 if waited else None)

    def of_run(self, error: PerfbisectError, boot: str, closed: bool, *, deployed: bool) -> PerfbisectError:
        """Return the error, by whose fault it is, for a run, or preparations of the first, that broke off.

        boot: the id of the boot of the kernel under test; closed: the connection has ended. A workload's
        failure is its own if afterwards the machine answers and its disk can be written.
        """
        workload = isinstance(error, WorkloadFailed)
        if not (closed or isinstance(error, BootFailed) or workload or not deployed):
            return error  # the agent answers what nobody asked
        try:
            now = wait_for_answer(self.rescue.reach, 0.0)
        except AuthenticationFailed:  # it may be booting: it is waited for below
            now = None
        answered: Answered = "nobody"
        if now is not None:
            same = now.boot_id == boot
            answered = "same boot" if same else "kernel under test" if now.ours else "own kernel"
        seen = FailureEvidence(
            "run" if deployed else "deploy",
            error.message,
            answered,
            "answered",
            details=error.details,
            panic=self.console.death() or "",
            closed=closed and not isinstance(error.__cause__, CommandUnanswered),  # that we closed
            boots=(self.before, boot),
        )
        seen = self._with_console(seen)
        if answered == "same boot" and not seen.panic:
            try:
                seen = self._with_disk(seen, ends=not workload)
            except InfrastructureError as silence:  # nothing is known of its disk, nor of what runs there
                details = f"{seen.details}\n{silence.message}".strip()
                return self._after_return(replace(seen, answered="nobody", details=details), None)
            if not (seen.disk or seen.hung):
                return self._judge(seen) if seen.unwell or (deployed and not workload) else error
        return self._after_return(seen, None)

    def _after_return(self, seen: FailureEvidence, patience: float | None) -> PerfbisectError:
        """Bring the machine back, and judge by how it came and whether it is well then."""
        found = self.rescue.bring_back(self.progress, patience)
        how = found.how
        died = ""
        of_before = seen.answered in ("nobody", "same boot")  # then `boots` ends with the boot that was left
        if of_before and found.first is not None and found.first.boot_id == seen.boots[-1]:
            seen = _of_a_boot_that_goes_on(seen)
        elif how == "answered":
            how = "by itself"
        if seen.stage == "boot":  # later the kernel under test has booted
            seen, died = self._without_own_death(seen)
        try:
            unwell = found.why_not or why_not_writable(self.rescue.reach, self.workdir) or died
        except InfrastructureError as error:
            unwell = error.message
        if found.how == "never":  # what firmware or boot loader say instead
            seen = replace(seen, last_words=self.console.end())
        else:
            seen = self._with_record(seen)
        if self._is_own_release():  # what the console shows of it may be of either
            seen = replace(seen, starts=None, logged_in=False, shutdown="")
        boots = seen.boots + ((found.answer.boot_id,) if found.answer is not None else ())
        return self._judge(
            replace(
                seen,
                came_back=how,
                power=found.power,
                power_trouble=found.trouble,
                idle_switch=found.idle_switch,
                unwell=unwell,
                boots=tuple(dict.fromkeys(boots)),
            )
        )

    def _without_own_death(self, seen: FailureEvidence) -> tuple[FailureEvidence, str]:
        """Return the evidence without a death that names another kernel, and how the machine's own one died.

        That may die as it shuts down, which says nothing of a kernel under test. It is '' where that started
        all the same, or before; also where another kernel under test was to shut down. Hardware that failed
        has done so whoever died of it.
        """
        named = _named_at_death(seen.panic)
        if not named or self.kernel.release in named or hardware_failed(seen.panic) or self._is_own_release():
            return seen, ""
        told = f"{seen.details}\nanother kernel than the one under test has died:\n{seen.panic}".strip()
        died = f"it died as another kernel was to boot ({death(seen.panic) or 'see its console'})"
        return replace(seen, panic="", details=told), "" if seen.starts or seen.after_another else died

    def _judge(self, seen: FailureEvidence) -> PerfbisectError:
        return error_of(replace(seen, seconds=self.rescue.boot_timeout), self.rescue.name)

    def _with_console(self, seen: FailureEvidence) -> FailureEvidence:
        path, state = self.console.path, self.console.state()
        if path is None:
            return seen
        try:
            with path.open("rb") as file:
                text = clean(file.read(_CONSOLE_BYTES))
        except OSError:
            return replace(seen, console=state)
        began = [match[1] for match in _BANNER.finditer(text)]
        printed = _printed_by(self.kernel.release, text)
        return replace(
            seen,
            console=state,
            starts=began.count(self.kernel.release) if began else None,
            logged_in=_LOGGED_IN.search(printed) is not None,
            shutdown=own_shutdown(printed) if began else "",  # else it may be of the machine's own kernel
            last_words=self.console.end(),
        )

    def _with_disk(self, seen: FailureEvidence, *, ends: bool) -> FailureEvidence:
        """Add whether the disk can be written, and what cannot be ended. ends: end what still runs there.

        A disk that does not answer in time may only be slow; processes that cannot be ended show that it
        hangs. Raises InfrastructureError where neither is known.
        """
        reach, silence = self.rescue.reach, None
        try:
            reason = why_not_writable(reach, self.workdir)
        except LineSilent as error:
            reason, silence = "", error
        if reason:
            return replace(seen, disk=reason) if is_lost_disk(reason) else replace(seen, unwell=reason)
        hung = survivors(reach, self.workdir) if ends else ""
        if silence is not None and not hung:
            raise silence
        return replace(seen, hung=hung)

    def _with_record(self, seen: FailureEvidence) -> FailureEvidence:
        """Add what a kernel that died has left in memory: a death of the kernel under test if it names that.

        The machine's own kernel may have died at its shutdown; with the same release it looks the same. Where
        it says that the hardware failed, that is so whoever died of it.
        """
        try:
            text = clean_text(self.rescue.method.crash())
        except InfrastructureError as error:
            log.info("no record of a crash is read on '%s': %s", self.rescue.name, error)
            return seen
        releases = {match[1] for match in _DIED.finditer(text)}
        record = tail(text)[-_RECORD_CHARACTERS:]
        seen = replace(seen, record=record)
        if not is_death(text):  # an oops, or a reboot, may be survived
            return seen
        ours = not seen.panic and releases == {self.kernel.release} and not self._is_own_release()
        return replace(seen, panic=record) if ours or hardware_failed(record) else seen

    def _is_own_release(self) -> bool:
        """Return whether the machine's own kernel has the release of the one under test."""
        try:
            return self.rescue.method.running().release == self.kernel.release
        except InfrastructureError:
            return True

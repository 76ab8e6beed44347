"""A machine over SSH as a testbed: boots each kernel once and proves that it did.

The machine's own default kernel is never touched and comes back with every boot that nobody asked for: after
a panic (panic=10 is on the command line) or a power cycle. A failure is examined before anybody is blamed
(`failure_examination`), and the machine is given back when it is left (`give_back`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bisector.adapters.agent.deploy import Deployment
from bisector.adapters.agent.payload import with_lab_settings
from bisector.adapters.agent.scratch_disk import with_scratch_disk
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.boot.boot_request import PlayedBoot
from bisector.adapters.machine.boot.boot_times import BootTimes
from bisector.adapters.machine.boot_watch import Stop, never, wait_for_answer, watch_boot
from bisector.adapters.machine.bring_back import Rescue
from bisector.adapters.machine.checks.scratch_device import wrong_device
from bisector.adapters.machine.console.open_console import open_console
from bisector.adapters.machine.console.recorded_console import RecordedConsole
from bisector.adapters.machine.failure_examination import Examination
from bisector.adapters.machine.give_back import give_back, is_still_ours
from bisector.adapters.machine.machine_mark import AGENT_LOCK, MachineMark, MachineUser
from bisector.adapters.machine.machine_parts import BootMethod
from bisector.adapters.machine.machine_reach import Answer, MachineReach, ssh_host
from bisector.adapters.machine.machine_session import MachineSession
from bisector.adapters.machine.mark_keeper import MarkKeeper
from bisector.adapters.machine.power.open_power import check_passwords, open_boot_override, open_power
from bisector.adapters.machine.run_watch import RunWatch
from bisector.adapters.machine.use_note import UseNote
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import AuthenticationFailed
from bisector.errors import (
    BootFailed,
    BootUnclear,
    InfrastructureError,
    MachineInUse,
    PerfbisectError,
    RequestError,
)
from bisector.linux.boot_remarks import REASON, STATE, TIMES
from bisector.model.commit_graph import short_name
from bisector.model.goal import TestbedClock
from bisector.ports import Job, Kernel, Progress, Session
from bisector.schemas.lab import TestbedSpec


class SSHTestbed:
    """See `ports.Testbed`. A testbed that cannot be brought back refuses further use with the first cause."""

    __test__ = False

    clock: TestbedClock = "wall"
    has_own_kernel = True

    def __init__(
        self,
        spec: TestbedSpec,
        ansible: Ansible,
        user: MachineUser,
        state_dir: Path,
        keeper: MarkKeeper | None = None,
    ) -> None:
        """user: this process, as other hosts' perfbisects see it; state_dir: where it is noted that it has
        the machine; keeper: of another testbed that is the same machine: one of its own would log in there
        while that one measures.

        Raises RequestError if the inventory does not say how to reach or boot the machine.
        """
        self.name = spec.name
        self._spec = spec
        self._ansible = ansible
        self._stop = ansible.stop or (lambda: False)
        self._timeout = spec.variables.boot_timeout
        self._reach = MachineReach(ssh_host(spec), self._timeout)
        self._broken: PerfbisectError | None = None
        self._used = False
        self._last = ""
        self._watched: tuple[str, RunWatch] | None = None
        if spec.variables.boot_method is None:
            raise RequestError(
                f"the testbed '{self.name}' has no boot method",
                cure="set its perfbisect_boot_method to kexec, grub, systemd-boot or pxe (see playbooks)",
            )
        self._method: BootMethod = PlayedBoot(spec, ansible, self._reach, open_boot_override(spec))
        check_passwords(spec)
        power = open_power(spec)
        self._rescue = Rescue(self.name, self._reach, self._method, power, self._timeout, self._stop)
        mark = MachineMark(self.name, self._reach, user)
        self.keeper = self._mark = keeper or MarkKeeper(mark, self._timeout, self._stop)
        self._note = UseNote(state_dir, self.name, user.token)

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        """Boot the kernel once and deploy the job. See `ports.Testbed.boot`.

        Where the kernel that ran before may have hung at its shutdown, it is booted from the machine's own.
        """
        try:
            return self._boot(kernel, job, folder, progress)
        except BootUnclear as unclear:
            progress(f"{unclear.message}; this one is booted once more, from the machine's own kernel")
            if (console := folder / "console.log").exists():
                console.rename(folder / "console-before.log")
            session = self._boot(kernel, job, folder, progress)
            progress(f"the kernel that ran on '{self.name}' before had not shut down")
            return session

    def _boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        if self._broken is not None:
            raise self._broken
        times = BootTimes()
        job = with_lab_settings(job, self._spec.variables.environment.settings())
        console = open_console(self._spec, folder / "console.log")

        def leave() -> None:
            console.close()
            self._mark.boot_ended()

        watch = self._watch_of(job)
        ours = False
        try:
            self._take(job.timeout, progress, self._stop)
            ours = True
            times.end("reached in")
            console.begin_boot()
            self._last = f"the last kernel that was booted there: {kernel.release} ({short_name(kernel.sha)})"
            if self._method.must_leave_kernel():
                self._rescue.leave_kernel_under_test(progress)
                times.end("at its own kernel again in")
            if job.needs.block_device:
                job = self._with_device(job)
            before = self._method.request_boot(kernel, job, folder, progress)
            examination = Examination(self._rescue, console, kernel, before, self._spec.workdir, progress)
            with Deployment(
                self._ansible,
                self.name,
                self._reach.host,
                job,
                folder,
                progress,
                boot_timeout=self._timeout,
                workdir=self._spec.workdir,
                undo=True,
                agent_lock=AGENT_LOCK,
            ) as deployment:
                progress(f"waiting for '{self.name}' to come up")
                times.end("told in")
                up = self._wait_for_kernel(deployment, examination, console)
                times.end("answered after")
                try:
                    self._method.end_request(up=True)
                    if job.needs.block_device and (wrong := self._wrong_device(job)) is not None:
                        raise BootFailed(wrong.message, details=wrong.details)  # it was well before the boot
                    session = deployment.start_session(
                        kernel,
                        crashed=lambda: console.death() or watch.death(),
                        on_leave=leave,
                        boot_seconds=awake_seconds() - times.began,
                        console=console.path,
                    )
                except (BootFailed, InfrastructureError) as error:
                    raise examination.of_run(error, up.boot_id, False, deployed=False) from error
            measured = self._watched_session(session, job, up.boot_id, examination)
            times.end("workload there in")
            console_facts = {STATE: console.state(), REASON: console.reason(), TIMES: str(times)}
            facts = {**session.facts.facts, **self._method.facts, **console_facts}
            measured.facts = replace(session.facts, facts=facts)
            return measured
        except BaseException:
            try:
                if ours:  # else this could take back a boot that another perfbisect has asked for
                    self._method.end_request(up=False)
            finally:
                leave()
            raise

    def _wait_for_kernel(
        self, deployment: Deployment, examination: Examination, console: RecordedConsole
    ) -> Answer:
        """Return the answer of the kernel under test. Without one, raises an error by whose fault that is."""
        before = examination.before
        seen = watch_boot(self._reach, before, console, self._timeout, self._stop)
        up = seen.answer
        if up is None or up.boot_id == before or not up.ours:
            deployment.cancel()
            raise examination.of_boot(seen)
        console.booted()
        return up

    def _watched_session(
        self, session: Session, job: Job, boot_id: str, examination: Examination
    ) -> MachineSession:
        """Return a session whose failures are examined."""

        def examine(error: PerfbisectError, closed: bool) -> PerfbisectError:
            if self._stop():  # we broke it off ourselves
                return error
            return examination.of_run(error, boot_id, closed, deployed=True)

        settling = max(job.settle, job.pause)
        return MachineSession(session, examine, self._watch_of(job), settling, self._mark.before_run)

    def _watch_of(self, job: Job) -> RunWatch:
        """Return what knows how long the runs of this workload take here."""
        if self._watched is None or self._watched[0] != job.checksum:
            self._watched = (job.checksum, RunWatch(self._reach))
        return self._watched[1]

    def give_back(self, progress: Progress, stop: Stop = never) -> None:
        """Have the machine run its own kernel, and leave nothing there. See `ports.Testbed.give_back`."""
        left = not self._used and self._note.is_of_another()
        if not (self._used or left):
            return
        try:
            if left:
                progress(f"'{self.name}' was left behind by a perfbisect that was killed: it is given back")
                self._take(0.0, progress, stop)
            self._leave(progress, stop)
        except MachineInUse:
            progress(f"'{self.name}' is used by another perfbisect by now: it is left to that")
        except InfrastructureError:  # reported to a person, so that no later process tries it again
            self._note.end()
            raise
        finally:
            self._used = False
        self._note.end()

    def _leave(self, progress: Progress, stop: Stop) -> None:
        """Give a machine back that is ours. Raises as `give_back`, and MachineInUse where it is not ours."""
        self._mark.end()
        if self._broken is not None:
            raise self._broken
        rescue = replace(self._rescue, stop=stop)
        if not is_still_ours(rescue, self._mark, progress):
            raise MachineInUse(f"the testbed '{self.name}' is used by another perfbisect by now")
        give_back(rescue, self._spec.workdir, progress)

    def _take(self, run_seconds: float, progress: Progress, stop: Stop) -> None:
        """Mark the machine as ours; bring it back before if need be. run_seconds: the longest run there.

        One that answers within a boot's time may be booting for another perfbisect: its mark is read first.
        Raises MachineInUse, or InfrastructureError where the machine cannot be used.
        """
        if not self._comes_to_answer(progress, stop):
            self._used = True
            found = replace(self._rescue, stop=stop).bring_back(progress, patience=0.0)
            if found.answer is None:
                self._broken = InfrastructureError(
                    f"the testbed '{self.name}' does not answer, and does not come back",
                    details="\n".join(filter(None, (found.why_not, self._last))),
                    cure=f"bring it up by hand, then: perfbisect testbed release {self.name}"
                    if self._rescue.power is not None
                    else f"bring it up by hand, then: perfbisect testbed release {self.name}; with a switch "
                    "in its variable perfbisect_power perfbisect does that",
                )
                raise self._broken
        if self._mark.take(run_seconds):
            progress(f"'{self.name}' was left behind by another perfbisect, which has ended")
        self._used = True
        self._note.begin()

    def _comes_to_answer(self, progress: Progress, stop: Stop) -> bool:
        """Return whether the machine answers within a boot's time. Raises as `_answers`."""
        if self._answers():
            return True
        progress(f"waiting for '{self.name}' to answer")
        return wait_for_answer(self._reach, self._timeout, stop=stop) is not None

    def _answers(self) -> bool:
        """Return whether the machine answers. One that lets nobody in may be another, and is not switched.

        Raises UnverifiedHost or LoginRefused.
        """
        try:
            self._reach.ask()
        except AuthenticationFailed:
            raise
        except InfrastructureError:  # also one that answers and hangs
            return False
        return True

    def _with_device(self, job: Job) -> Job:
        """Return the job with the device that the lab names. Raises InfrastructureError if it is wrong there.

        A kernel under test that still runs may lack its driver: then the check after the boot tells.
        """
        wrong = self._wrong_device(job)
        if wrong is not None and not self._reach.ask().ours:
            raise InfrastructureError(wrong.message, details=wrong.details, cure=wrong.cure)
        return with_scratch_disk(job, self._spec.variables.block_device)

    def _wrong_device(self, job: Job) -> PerfbisectError | None:
        return wrong_device(self._reach, self._spec.variables.block_device, job.needs.block_device, self.name)

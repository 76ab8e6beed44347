"""Steps of `lab check --deep` that touch a machine over SSH: its power, console, clock and own kernel."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bisector.adapters.machine.boot_watch import PAUSE_SECONDS, wait_for_answer, watch_boot
from bisector.adapters.machine.console.open_console import open_console
from bisector.adapters.machine.machine_facts import MachineFacts, read_machine_facts
from bisector.adapters.machine.machine_needs import Doubt, finding
from bisector.adapters.machine.machine_parts import Console, Power
from bisector.adapters.machine.machine_reach import Answer, MachineReach, ssh_host
from bisector.adapters.machine.power.open_power import open_power
from bisector.adapters.system.awake_clock import awake_seconds
from bisector.adapters.system.ssh import SSH, AuthenticationFailed, SSHRefused
from bisector.errors import InfrastructureError
from bisector.model.format import count
from bisector.model.machines.lab_findings import LabFinding
from bisector.ports import Kernel, Progress
from bisector.schemas.documents.document import shown
from bisector.schemas.kernel.release import RUNNING_RELEASE
from bisector.schemas.lab import TestbedSpec

_CLOCK_SECONDS = 10.0
"""How long the machine's clock is watched: over an SSH connection of 5 ms, it then shows 0.1%."""

MOST_DRIFT = 0.001
"""NTP slews a clock by at most 0.05%, and no crystal is off by more than 0.02%: more is another fault."""

_CLEAR = 0.01
"""Largest uncertainty of a useful comparison: hundredths of a second in /proc/uptime and questions of 80 ms
leave about that much."""

_FETCH_SECONDS = 300.0
_KERNEL_BYTES = 512 << 20
"""Limits of fetching a kernel: some distributions' initramfs have 150 MB, and lines are slow."""


def cycle_power(spec: TestbedSpec, folder: Path, progress: Progress) -> Iterator[LabFinding]:
    """Switch a machine off and on while its console is heard; it must come back with its own kernel.

    As in a search, a stage of its power that fails or has no effect is followed by the next one.
    """
    told: list[str] = []
    power = open_power(spec, tell=told.append)
    if power is None:
        why = "no power switch is set"
        yield LabFinding("power cycle", "not tried", why, "set perfbisect_power, so that a hang can be ended")
        yield LabFinding("console in boot", "not tried", why + ", and only a boot shows what it prints")
        return
    progress(f"{spec.name}: switching it off and on")
    reach = _reach(spec)
    console = open_console(spec, folder / "console.log")
    try:

        def cycle() -> str:
            try:
                text = _switch_off_and_on(spec, power, reach, console, progress, told)
            except InfrastructureError as error:
                what = "; ".join((*told, error.message))
                raise InfrastructureError(what, details=error.details, cure=error.cure) from error
            doubts = "; ".join(told)
            text += f"; its status is {power.status()}"
            if doubts:
                raise Doubt(
                    f"{doubts}; then {text}",
                    cure="mend that stage of perfbisect_power: until then a search waits for it each time",
                )
            return text

        done = finding("power cycle", cycle)
        yield done
        yield _console_in_boot(spec, console, booted=done.result != "wrong")
    finally:
        console.close()


def _switch_off_and_on(
    spec: TestbedSpec,
    power: Power,
    reach: MachineReach,
    console: Console,
    progress: Progress,
    told: list[str],
) -> str:
    """Switch a machine by one stage after the other until it boots; return how long that took.

    told: gets a line for each stage that had no effect. Raises InfrastructureError.
    """
    before = _await(reach, spec).boot_id
    while True:
        started = awake_seconds()
        power.cycle()
        switched = awake_seconds()
        seen = watch_boot(reach, before, console, spec.variables.boot_timeout)
        if seen.panic or (seen.answer is not None and seen.answer.boot_id != before):
            break
        further = power.further()
        if further is None or not _is_unchanged(reach, before):
            break
        told.append("a stage of its power said that it had switched, and nothing came of it")
        progress(f"{spec.name}: {told[-1]}: trying the next one")
        power = further
    if seen.answer is not None and seen.answer.boot_id == before:
        raise InfrastructureError(
            "it was switched off and on, and still runs the same boot",
            cure="the command or address switches another machine, or none: try it by hand",
        )
    if seen.answer is None:
        raise InfrastructureError(
            f"it did not answer within {spec.variables.boot_timeout:.0f} s after the power cycle",
            details=f"{seen.refusal}\n{seen.panic or console.end()}".strip(),
            cure="look at its console; set its firmware to boot by itself when power comes back",
        )
    return f"switched in {switched - started:.0f} s, answers after {awake_seconds() - switched:.0f} s"


def _console_in_boot(spec: TestbedSpec, console: Console, *, booted: bool) -> LabFinding:
    if spec.variables.console is None:
        return LabFinding("console in boot", "not tried", "no console is set", "set perfbisect_console")
    if not booted:
        return LabFinding(
            "console in boot", "not tried", "it needs a power cycle that works", "", console.end()
        )

    def check_console() -> str:
        if console.state() != "heard" or console.path is None:
            raise InfrastructureError(
                f"the machine booted, and its console was {console.state()}",
                cure="add console=ttyS0,115200 (the BMC's port and speed) to its kernel's command line, and "
                "switch on redirection in its firmware",
            )
        size = console.path.stat().st_size
        if not any(word in console.end() for word in ("Linux", "login", "[ ")):
            raise Doubt(
                f"{size} bytes were heard in the boot, none of them the kernel's",
                details=console.end()[-1000:],
                cure="add console=... to the kernel's command line",
            )
        return f"{size} bytes were heard in the boot"

    return finding("console in boot", check_console)


def heard_later(silent: LabFinding, folder: Path) -> LabFinding:
    """Return what a console that was not heard in the power cycle is, after boots below the folder."""
    heard = [path for path in folder.glob("boot-*/console.log") if path.stat().st_size]
    if not heard:
        return silent
    return LabFinding(
        silent.check,
        "doubtful",
        f"{silent.found}; it was heard in {count(len(heard), 'boot')} after that",
        "look whether it comes back late after a power cycle: until then no panic is seen at once",
    )


def _reach(spec: TestbedSpec) -> MachineReach:
    return MachineReach(ssh_host(spec), spec.variables.boot_timeout)


def _is_unchanged(reach: MachineReach, before: str) -> bool:
    """Return whether nobody answers, or the boot of before. Raises AuthenticationFailed."""
    try:
        return reach.ask().boot_id == before
    except AuthenticationFailed:
        raise
    except InfrastructureError:
        return True


def _await(reach: MachineReach, spec: TestbedSpec) -> Answer:
    """Return who answers, within a boot's time. Raises InfrastructureError."""
    answer = wait_for_answer(reach, spec.variables.boot_timeout)
    if answer is None:
        raise InfrastructureError(
            f"it does not answer any more, for {spec.variables.boot_timeout:.0f} s; nothing was switched",
            cure="look at its console, and whether somebody else uses it",
        )
    return answer


def _connect(spec: TestbedSpec) -> SSH:
    """Return a connection; a busy machine may miss attempts for as long as a boot takes."""
    reach = _reach(spec)
    deadline = awake_seconds() + spec.variables.boot_timeout
    while True:
        try:
            return SSH(reach.host, login_timeout=reach.probe_seconds)
        except SSHRefused:
            if awake_seconds() > deadline:
                raise
        time.sleep(PAUSE_SECONDS)


def watch_clock(spec: TestbedSpec, progress: Progress) -> LabFinding:
    """Compare how fast the machine's clock goes with ours."""
    progress(f"{spec.name}: watching its clock for {_CLOCK_SECONDS:.0f} s")
    return finding("clock rate", partial(_clock_rate, spec))


def _clock_rate(spec: TestbedSpec) -> str:
    with _connect(spec) as ssh:

        def uptime() -> tuple[float, float, float]:
            before = awake_seconds()
            text = ssh.run(["cat", "/proc/uptime"]).output.split()[0]
            after = awake_seconds()
            return (before + after) / 2, (after - before) / 2, float(text)

        uptime()  # the first command of a connection is slower
        ours, error, theirs = uptime()
        time.sleep(_CLOCK_SECONDS)
        ours_then, error_then, theirs_then = uptime()
        source = ssh.run(
            ["cat", "/sys/devices/system/clocksource/clocksource0/current_clocksource"], check=False
        ).output.strip()
    span = ours_then - ours
    drift = (theirs_then - theirs) / span - 1
    uncertain = (error + error_then + 0.02) / span  # /proc/uptime has hundredths of a second
    text = (
        f"{100 * drift:+.2f}% +- {100 * uncertain:.2f}% against ours over {span:.0f} s, from {source or '?'}"
    )
    if abs(drift) - uncertain > MOST_DRIFT:
        raise InfrastructureError(
            f"its clock goes wrong: {text}",
            cure="choose another source (clocksource=tsc or hpet on its command line); update its firmware",
        )
    if uncertain > _CLEAR:
        raise Doubt(
            f"the way there is too slow to tell: {text}",
            cure="check again while this machine and the network are idle",
        )
    return text


def fetch_own_kernel(spec: TestbedSpec, folder: Path) -> Kernel:
    """Copy the kernel that a machine runs, its own, to here. Raises InfrastructureError where it has none."""
    with _connect(spec) as ssh:
        facts: MachineFacts = read_machine_facts(ssh, spec.workdir, ())
        path = facts.get("kernel_image")
        if not path:
            raise InfrastructureError(
                f"there is no /boot/vmlinuz-{facts.get('release')} to boot there and back",
                cure="name a commit that boots there: health_commit in perfbisect.toml, and 'testbed health'",
            )
        image, config, modules = folder / "vmlinuz", folder / "config", folder / "modules.tar.gz"
        release = facts.get("release")
        if re.fullmatch(RUNNING_RELEASE, release) is None:
            raise InfrastructureError(
                f"it says that it runs {shown(release)}, which is no kernel's release",
                cure="look at 'uname -r' on it",
            )
        wanted = [(image, ["cat", path]), (config, ["cat", f"/boot/config-{release}"])]
        if facts.get("initrd"):  # its drivers are modules: an initramfs is made of them
            wanted.append((modules, ["tar", "-C", "/", "-czf", "-", f"lib/modules/{release}"]))
        for target, command in wanted:
            done = ssh.save(command, target, timeout=_FETCH_SECONDS, max_bytes=_KERNEL_BYTES)
            if done.code != 0 and target != config:
                raise InfrastructureError(f"cannot fetch {target.name}", details=done.output)
            if done.code != 0:
                target.unlink()
    return Kernel(
        sha="",
        recipe="its own kernel",
        binary=release,
        image=image,
        config=config,
        log=folder / "build.log",
        release=release,
        build_id="",
        seconds=0.0,
        cached=True,
        arch=facts.get("arch"),
        modules=modules if facts.get("initrd") else None,
    )

"""The boot script of a machine, run over SSH: its kernels, and the way back to its own.

The script is that of the booting play, `playbooks/roles/boot/files/boot.sh`; it says what each action does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bisector.adapters.machine.machine_parts import RunningKernel
from bisector.adapters.system.ssh import SSH
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError, KernelRefused
from bisector.resources import resource

_CONNECT_SECONDS = 10.0
"""Timeout of one attempt to connect."""

_LOGIN_SECONDS = 60.0
"""Timeout of the key exchange and the login: an emulated machine on a busy host took over 15 s."""

_ACTION_SECONDS = 120.0
"""Timeout of an action; taking away three kernels with some thousand modules each takes most of it."""

SCRIPT = resource("playbooks") / "roles" / "boot" / "files" / "boot.sh"


def running_kernel_of(host: SSHHost) -> RunningKernel:
    """Ask the machine. Raises SSHRefused where nobody answers, or another InfrastructureError."""
    answer = _act(host, "state")
    return RunningKernel(
        boot_id=answer.get("boot_id", ""),
        release=answer.get("release", ""),
        build_id=answer.get("build_id", ""),
        ours=answer.get("ours", ""),
        left=tuple(answer.get("left", "").split()),
        default_release=answer.get("default_release", ""),
    )


def restart_default(host: SSHHost) -> None:
    """Have the machine boot its default kernel through its firmware; it goes down a second later."""
    _act(host, "restart")


def restart_served(host: SSHHost) -> None:
    """Have the machine boot what the network serves, as `restart_default`; its watchdog stays armed."""
    _act(host, "restart", "armed")


def end_request(host: SSHHost) -> None:
    """The kernel under test runs: take back what would start it again, and disarm the watchdog."""
    _act(host, "up")


def crash_records(host: SSHHost, known: Sequence[str]) -> str:
    """Return what kernels that crashed left on the machine, and take it away there; known: what stays."""
    return _run(host, "crashes", *known)


def forget(host: SSHHost) -> None:
    """Remove what perfbisect put there. Raises InfrastructureError while a kernel under test runs."""
    _act(host, "forget")


def parse_answer(output: str) -> Mapping[str, str]:
    """Return the lines NAME=VALUE of the script's answer."""
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)


def refusal(machine: str, output: str) -> InfrastructureError | KernelRefused | None:
    """Return what a machine lacks, or what it does not take of this kernel, if the answer says so."""
    answer = parse_answer(output)
    if "refused" not in answer:
        return None
    text, cure = (
        f"the testbed '{machine}' cannot boot the kernel: {answer['refused']}",
        answer.get("cure", ""),
    )
    if answer.get("doubt") == "kernel":
        return KernelRefused(text, details=f"on the machine: {cure}")
    return InfrastructureError(text, cure=cure)


def _act(host: SSHHost, *action: str) -> Mapping[str, str]:
    return parse_answer(_run(host, *action))


def _run(host: SSHHost, *action: str) -> str:
    command: Sequence[str] = ["sh", "-c", SCRIPT.read_text(encoding="utf-8"), "boot.sh", *action]
    with SSH(host, timeout=_CONNECT_SECONDS, login_timeout=_LOGIN_SECONDS) as ssh:
        done = ssh.run(command, timeout=_ACTION_SECONDS, check=False)
    if done.code != 0:
        raise refusal(str(host), done.output) or InfrastructureError(
            f"'{action[0]}' failed on {host} with code {done.code}", details=done.output[-2000:]
        )
    return done.output

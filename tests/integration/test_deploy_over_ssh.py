"""Deploying and measuring over a real SSH server with real Ansible, and what breaks on the way."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.agent import session as session_module
from bisector.adapters.agent.deploy import Deployment
from bisector.adapters.agent.payload import workload_job
from bisector.adapters.agent.session import AgentSession, await_greeting
from bisector.adapters.ansible.inventory import default_inventory
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.kernel_cache import KernelCache
from bisector.adapters.machine import machine_mark, ssh_testbed
from bisector.adapters.machine.local_testbed import running_kernel
from bisector.adapters.machine.machine_mark import MachineUser
from bisector.adapters.machine.machine_reach import Answer, MachineReach
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.adapters.packages.kernel_list import read_kernels
from bisector.adapters.packages.package_builder import PackageBuilder
from bisector.adapters.system.ssh import SSH
from bisector.errors import BootFailed, InfrastructureError, RequestError, TestbedLost
from bisector.ports import BootFacts, BuildOrder, Job, Kernel, MetricSpec, Needs, Progress
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.workload.workload import load_workload
from tests.support.agent_answers import GREETING, finished_line
from tests.support.kernels import kernel_packages as packages
from tests.support.loopback_sshd import Server
from tests.support.servers.free_port import free_port
from tests.support.workload_jobs import shell_job

ALIVE: dict[str, Any] = {"crashed": lambda: None, "on_leave": lambda: None, "boot_seconds": 0.0}


def quiet(_: str) -> None:
    pass


def deploying(sshd: Server, job: Job, folder: Path, progress: Progress = quiet, **changes: Any) -> Deployment:
    ansible = Ansible(resource("playbooks"), default_inventory())
    workdir = str(folder / "remote")
    return Deployment(ansible, "bed", sshd.with_(**changes), job, folder, progress, workdir=workdir)


def test_pipe_test_is_deployed_and_measured(sshd: Server, tmp_path: Path) -> None:
    job = replace(
        workload_job(load_workload("pipe-test"), tmp_path / "job"), run=("pipe-test", "2000"), settle=0
    )
    said: list[str] = []
    session = deploying(sshd, job, tmp_path / "boot", said.append).start_session(running_kernel(), **ALIVE)
    try:
        assert said == ["putting the workload on the testbed", "starting the measuring agent"]
        assert session.facts.release == running_kernel().release
        assert session.facts.overhead_seconds > 0
        result = session.run(0)
        assert set(result.values) == {"real", "user", "sys"}
        assert 0 < result.values["real"] < result.guest_seconds
        assert not list((tmp_path / "boot").glob("deploy.*"))
    finally:
        session.leave()


def test_the_payload_is_built_once_and_guarded(tmp_path: Path) -> None:
    workload = load_workload("pipe-test")
    first = workload_job(workload, tmp_path)
    assert workload_job(workload, tmp_path) == first
    assert workload_job(workload, tmp_path / "again").checksum == first.checksum
    with (first.payload / "pipe-test").open("ab") as file:
        file.write(b"x")
    with pytest.raises(InfrastructureError, match="has changed since this bisection began"):
        workload_job(workload, tmp_path)


def test_another_kernel_than_the_one_under_test_voids_the_boot(sshd: Server, tmp_path: Path) -> None:
    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(InfrastructureError, match="another kernel") as caught:
        deploying(sshd, job, tmp_path / "boot").start_session(
            replace(running_kernel(), build_id="feed"), **ALIVE
        )
    assert "expected feed" in caught.value.details


def test_a_cut_connection_is_a_lost_testbed(sshd: Server, tmp_path: Path) -> None:
    session = deploying(sshd, shell_job(tmp_path, "sleep 30; echo real: 1"), tmp_path / "boot").start_session(
        None, **ALIVE
    )
    threading.Timer(1.0, sshd.cut).start()
    with pytest.raises(TestbedLost):
        session.run(0)
    session.leave()


def test_a_cut_connection_after_a_panic_is_the_kernels(sshd: Server, tmp_path: Path) -> None:
    session = deploying(sshd, shell_job(tmp_path, "sleep 30; echo real: 1"), tmp_path / "boot").start_session(
        None, **ALIVE
    )
    cut = threading.Event()
    session.crashed = lambda: "Kernel panic" if cut.is_set() else None
    threading.Timer(0.5, sshd.cut).start()
    threading.Timer(1.5, cut.set).start()  # the console's last words arrive late
    with pytest.raises(BootFailed):
        session.run(0)
    session.leave()


_GREET = f"echo '{GREETING}'; read command; "
_GOOD = finished_line(out=b"real: 1.5\n", seconds=0.0)

HOSTILE = {
    "cat /dev/zero": "sent a line of more than 8 MiB",
    "yes '{\"paused\":1}'": "answered what was not asked",
    "yes": "answer is garbled",
    "head -c 99999 /dev/urandom; echo": "answer is garbled",
    "while :; do printf x; sleep 0.02; done": "stopped in the middle of an answer",
    "printf '{\"code\":0,'; sleep 60": "stopped in the middle of an answer",
    "printf '{\"code\":0,'": "the testbed was lost during a run",
    "kill -9 $$": "the testbed was lost during a run",
    "yes >&2": "sent more than 16 MiB on standard error",
}
"""What an agent over SSH does when it is told to run -> what is said of the testbed."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("script", HOSTILE)
def test_an_agent_that_floods_garbles_or_stops(
    sshd: Server, tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SSH(sshd.host) as ssh:
        one = _session(ssh, tmp_path, _GREET + script)
        for name in ("_ANSWER_SECONDS", "_CONSOLE_DELAY_SECONDS"):
            monkeypatch.setattr(session_module, name, 0.5)
        with pytest.raises(TestbedLost, match=HOSTILE[script]):
            one.run(0)
        with pytest.raises(TestbedLost):
            one.run(1)
        one.leave()
        assert ssh.run(["echo", "still there"]).output == "still there\n"


def test_an_agent_that_floods_standard_error_still_answers(sshd: Server, tmp_path: Path) -> None:
    flood = "head -c 5000000 /dev/zero >&2"
    with SSH(sshd.host) as ssh:
        one = _session(ssh, tmp_path, f"{_GREET}{flood}; echo '{_GOOD}'; read command", timeout=30.0)
        assert one.run(0).values == {"real": 1.5}
        one.leave()


def _session(ssh: SSH, folder: Path, script: str, timeout: float = 3.0) -> AgentSession:
    line = ssh.talk(["sh", "-c", script])
    await_greeting(line)
    job = Job("toy", folder, ("toy",), (MetricSpec("real", "s"),), timeout=timeout)
    return AgentSession(
        facts=BootFacts("6.1", "", {}),
        job=job,
        line=line,
        folder=folder / "boot",
        crashed=lambda: None,
        on_leave=lambda: None,
    )


def test_a_testbed_that_does_not_answer_is_infrastructure_and_a_panic_the_kernels(
    sshd: Server, tmp_path: Path
) -> None:
    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(InfrastructureError, match="cannot reach 'bed'"):
        deploying(sshd, job, tmp_path / "one", port=free_port()).start_session(None, **ALIVE)
    dead = ALIVE | {"crashed": lambda: "Kernel panic - not syncing"}
    with pytest.raises(BootFailed, match="died while the workload was put on it"):
        deploying(sshd, job, tmp_path / "two", port=free_port()).start_session(None, **dead)


def test_a_cancelled_deployment_ends_quickly(sshd: Server, tmp_path: Path) -> None:
    waiting = deploying(sshd, shell_job(tmp_path, "echo real: 1"), tmp_path / "boot")
    time.sleep(1.0)
    started = time.monotonic()
    waiting.cancel()
    assert time.monotonic() - started < 60
    assert not list((tmp_path / "boot").glob("deploy.*"))


# --- machines that are booted over SSH; this one must not be, so its boot playbook does nothing here --------


THIS_BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def bootable(folder: Path) -> Kernel:
    """The running kernel, with a file that could be sent."""
    (folder / "image").write_bytes(b"kernel")
    return replace(running_kernel(), image=folder / "image")


@pytest.fixture(autouse=True)
def marks_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks_end: None) -> None:
    """This host is the machine: its mark stays below the test's folder."""
    monkeypatch.setattr(machine_mark, "FOLDER", str(tmp_path / "mark"))
    monkeypatch.setattr(ssh_testbed, "AGENT_LOCK", str(tmp_path / "agent.lock"))


def machine(sshd: Server, tmp_path: Path, boot: str = THIS_BOOT, **variables: object) -> SSHTestbed:
    (tmp_path / "playbooks").mkdir()
    for name in ("ansible.cfg", "deploy.yml", "reap.yml", "action_plugins", "roles"):
        (tmp_path / "playbooks" / name).symlink_to(resource("playbooks") / name)
    (tmp_path / "playbooks" / "boot.yml").write_text(
        "- hosts: testbeds\n  gather_facts: false\n  tasks:\n"
        "    - name: telling the machine to boot the kernel\n      ansible.builtin.raw: 'echo boot_id="
        + boot
        + "'\n"
    )
    listing = {
        "_meta": {
            "hostvars": {
                "metal": {
                    "ansible_host": sshd.host.address,
                    "ansible_port": sshd.host.port,
                    "ansible_ssh_private_key_file": str(sshd.host.key),
                    "perfbisect_known_hosts": str(sshd.host.known_hosts),
                    "perfbisect_boot_method": "kexec",
                    "perfbisect_boot_timeout": 3,
                    "perfbisect_workdir": str(tmp_path / "remote"),
                    **variables,
                }
            }
        },
        "testbeds": {"hosts": ["metal"]},
    }
    spec = lab_from_inventory(listing, tmp_path / "lab.yml").testbed("metal")
    user = MachineUser(str(tmp_path), "this test")
    return SSHTestbed(spec, Ansible(tmp_path / "playbooks", tmp_path / "lab.yml"), user, tmp_path)


def test_a_machine_that_does_not_reboot_is_infrastructure(sshd: Server, tmp_path: Path) -> None:
    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(InfrastructureError, match="'metal': the machine did not reboot within 3 s"):
        machine(sshd, tmp_path).boot(bootable(tmp_path), job, tmp_path / "boot", quiet)


def test_a_machine_that_reboots_is_measured(
    sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([Answer("before", ""), Answer("before", ""), Answer("after", "key")])
    monkeypatch.setattr(MachineReach, "ask", lambda self: next(answers))
    job = shell_job(tmp_path, "echo real: 1")
    session = machine(sshd, tmp_path, "before").boot(bootable(tmp_path), job, tmp_path / "boot", quiet)
    assert session.run(0).values == {"real": 1.0}
    assert session.facts.seconds > 1
    session.leave()


def test_a_kernel_of_a_list_is_measured_on_a_machine(
    sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.uname()
    own = packages.deb(tmp_path / "debs", "6.1-1", release=here.release, built=here.version)
    other = packages.deb(tmp_path / "debs", "6.2-1")
    kernels = read_kernels(packages.listed(tmp_path, own, other))
    builder = PackageBuilder(kernels, KernelCache(tmp_path / "cache"))
    kernel = builder.build(BuildOrder(kernels[0].id, "x86_64-package"), quiet)
    assert kernel.modules is not None, "they travel along"
    answers = iter([Answer("before", ""), Answer("before", ""), Answer("after", "key")])
    monkeypatch.setattr(MachineReach, "ask", lambda self: next(answers))
    bed = machine(sshd, tmp_path, "before", perfbisect_boot_timeout=60)
    session = bed.boot(kernel, shell_job(tmp_path, "echo real: 1"), tmp_path / "boot", quiet)
    assert session.run(0).values == {"real": 1.0}
    assert session.facts.release == kernel.release == here.release
    session.leave()


def test_a_device_that_cannot_be_used_is_refused_before_anything_boots(sshd: Server, tmp_path: Path) -> None:
    bed = machine(sshd, tmp_path, perfbisect_block_device="/dev/null")
    job = replace(shell_job(tmp_path, "echo real: 1"), needs=Needs(block_device=1 << 30))
    with pytest.raises(
        InfrastructureError, match="/dev/null of the testbed 'metal' cannot be used: it is no"
    ):
        bed.boot(bootable(tmp_path), job, tmp_path / "boot", quiet)
    assert not (tmp_path / "boot" / "ansible").exists()


DIES = "sleep 1; echo reboot: Restarting system; echo Kernel panic - not syncing: no"
"""What a console prints of a kernel under test that dies while it boots."""


def test_a_panic_on_the_machines_console_is_the_kernels(
    sshd: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console, ask = tmp_path / "boot" / "console.log", MachineReach.ask
    before = Answer("before", "")

    def once_it_died(self: MachineReach) -> Answer:
        return ask(self) if b"panic" in console.read_bytes() else before

    monkeypatch.setattr(MachineReach, "ask", once_it_died)
    bed = machine(sshd, tmp_path, "before", perfbisect_console=["sh", "-c", DIES])
    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(BootFailed, match=r"died while it booted \(kernel panic: no\)") as caught:
        bed.boot(bootable(tmp_path), job, tmp_path / "boot", quiet)
    assert "not syncing: no" in caught.value.details
    assert "not syncing: no" in console.read_text()


def test_a_panic_that_the_boot_of_before_outlives_is_the_machines(sshd: Server, tmp_path: Path) -> None:
    bed = machine(sshd, tmp_path, perfbisect_console=["sh", "-c", DIES])
    job = shell_job(tmp_path, "echo real: 1")
    with pytest.raises(InfrastructureError, match="the machine did not reboot within 3 s") as caught:
        bed.boot(bootable(tmp_path), job, tmp_path / "boot", quiet)
    assert "after which the boot of before it answered" in caught.value.details


def test_a_dead_machine_without_power_switch_stays_refused(sshd: Server, tmp_path: Path) -> None:
    bed = machine(sshd, tmp_path, ansible_port=free_port())
    job = shell_job(tmp_path, "echo real: 1")
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="does not answer, and does not come back"):
            bed.boot(bootable(tmp_path), job, tmp_path / "boot", quiet)


def test_a_dead_machine_is_switched_before_it_is_given_up(sshd: Server, tmp_path: Path) -> None:
    cycle = ["touch", str(tmp_path / "cycled")]
    bed = machine(sshd, tmp_path, ansible_port=free_port(), perfbisect_power={"cycle": cycle})
    with pytest.raises(InfrastructureError, match="does not answer, and does not come back"):
        bed.boot(bootable(tmp_path), shell_job(tmp_path, "echo real: 1"), tmp_path / "boot", quiet)
    assert (tmp_path / "cycled").exists()


def test_a_machine_needs_a_boot_method_and_a_key(sshd: Server, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="has no boot method"):
        machine(sshd, tmp_path, perfbisect_boot_method=None)

"""Which kernel runs is proved from its facts; whose fault it is when a deployment fails.

With real Ansible and SSH: tests/integration/test_deploy_over_ssh.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from bisector.adapters.agent import deploy
from bisector.adapters.agent.deploy import Deployment, boot_facts, verify_kernel
from bisector.adapters.agent.payload import agent_command
from bisector.adapters.agent.session import AgentSession
from bisector.adapters.ansible.playbook_events import Played, Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.system import ssh
from bisector.adapters.system.channel import Line
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import BootFailed, InfrastructureError, Interrupted, KernelError, TestbedLost
from bisector.ports import Job, Kernel, MetricSpec
from tests.support.agent_answers import GREETING
from tests.support.waiting import until

NOWHERE = Path("/nonexistent")


def kernel(release: str = "6.1.0-x", build_id: str = "abc") -> Kernel:
    return Kernel("", "", "", NOWHERE, NOWHERE, NOWHERE, release, build_id, 0.0, cached=True)


def facts(release: str | None = "6.1.0-x", build_id: str | None = "abc") -> dict[str, str]:
    given = {"uname.release": release, "build_id": build_id}
    return {name: value for name, value in given.items() if value is not None}


VERSION = {"uname.version": "#1 SMP now"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (kernel(), facts()),
        (kernel(), facts(build_id=None)),  # before 2.6.23 no kernel shows its build id
        (kernel(), facts(build_id="")),
        (kernel(build_id=""), facts()),
        (kernel(release=""), facts(release="anything")),
        (kernel(release=""), facts()),
        (replace(kernel(release="", build_id=""), version="#1 SMP now"), facts() | VERSION),
    ],
)
def test_this_very_kernel_runs(wanted: Kernel, found: dict[str, str]) -> None:
    verify_kernel(wanted, found)


@pytest.mark.parametrize(
    ("wanted", "found", "words"),
    [
        (kernel(), facts(release="6.1.1"), "another kernel"),
        (kernel(), facts(build_id="abd"), "another kernel"),
        (kernel(build_id=""), facts(release="5.10"), "another kernel"),
        (kernel(), facts(release=None, build_id=None), "does not tell"),
        (replace(kernel(), version="#1 SMP then"), facts() | VERSION, "another kernel"),
        (kernel(release=""), facts(build_id=None), "does not tell"),
        (kernel(release="", build_id=""), facts(), "does not tell"),
    ],
)
def test_another_kernel_or_an_unknown_one_is_the_testbeds_failure(
    wanted: Kernel, found: dict[str, str], words: str
) -> None:
    with pytest.raises(InfrastructureError, match=words) as caught:
        verify_kernel(wanted, found)
    assert not isinstance(caught.value, KernelError)


def test_the_facts_of_a_boot() -> None:
    found = boot_facts(facts() | {"clocksource": "tsc"}, 3.0, 1.0, NOWHERE)
    assert (found.release, found.build_id, found.seconds, found.overhead_seconds) == (
        "6.1.0-x",
        "abc",
        3.0,
        1.0,
    )
    assert found.facts["clocksource"] == "tsc"
    assert boot_facts({}, 0.0, 0.0, None).release == ""


# --- a deployment whose play and connection are fakes ------------------------------------------------------

PANIC = "Kernel panic - not syncing"
TOLD = Task("putting the workload on the testbed", "bed", "ok", 0.0, {"stdout": json.dumps(facts())})


@dataclass
class Plays(Ansible):
    """Waits at the gate as the play does, then does what the test says."""

    script: Callable[[Plays, Callable[[Task], None]], None] = lambda *_: None
    calls: list[dict[str, Any]] = field(default_factory=list)

    def play(self, playbook: str, **given: Any) -> Played:
        self.calls.append({"playbook": playbook, **given})
        gate = Path(given["variables"]["perfbisect_gate"])
        until(lambda: gate.exists() or self.told_to_stop(), 20.0)
        self.script(self, given["on_task"])
        return cast(Played, None)

    def told_to_stop(self) -> bool:
        return self.stop is not None and self.stop()


class Connection:
    """Stands in for SSH."""

    def __init__(self, host: SSHHost, **_: object) -> None:
        self.closed = False

    def talk(self, command: list[str]) -> Line:
        self.line, self.command = Talk(), command
        return cast(Line, self.line)

    def close(self) -> None:
        self.closed = True


class Talk:
    """Stands in for the line to the agent, which greets."""

    closed = False

    def receive(self, timeout: float) -> str:
        return GREETING

    def send(self, text: str) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def hang(plays: Plays, on_task: Callable[[Task], None]) -> None:
    until(plays.told_to_stop, 20.0)
    raise Interrupted("stopped")


def soon(plays: Plays, on_task: Callable[[Task], None]) -> None:
    time.sleep(0.25)  # some polls
    on_task(TOLD)


def failing(error: Exception) -> Callable[[Plays, Callable[[Task], None]], None]:
    def script(plays: Plays, on_task: Callable[[Task], None]) -> None:
        raise error

    return script


@dataclass
class Attempt:
    """One deployment, in a folder of its own."""

    folder: Path
    script: Callable[[Plays, Callable[[Task], None]], None]
    crashed: Callable[[], str | None] = lambda: None
    paused: Callable[[], TestbedLost | None] = lambda: None
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "payload").mkdir(parents=True)
        self.job = Job("toy", self.folder / "payload", ("toy",), (MetricSpec("real", "s"),))
        self.plays = Plays(self.folder, self.folder, None, script=self.script)

    def start(self, wanted: Kernel | None = None) -> AgentSession:
        host = SSHHost("127.0.0.1", 22, "root", NOWHERE, NOWHERE)
        self.host = host
        deployment = Deployment(
            self.plays, "bed", host, self.job, self.folder / "boot", lambda _: None, boot_timeout=50.0
        )
        return deployment.start_session(
            wanted,
            crashed=self.crashed,
            on_leave=lambda: self.left.append("left"),
            boot_seconds=7.0,
            paused=self.paused,
            ticks_per_second=1e9,
            wall=False,
            cpu_time=lambda: 5.0,
        )


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    made: list[Connection] = []

    def connect(host: SSHHost, **given: object) -> Connection:
        made.append(Connection(host, **given))
        return made[-1]

    monkeypatch.setattr(ssh, "SSH", connect)
    return made


def test_a_session_knows_its_boot_and_ends_its_connection_and_the_boot(
    tmp_path: Path, connections: list[Connection]
) -> None:
    """A connection or a guest that stays is there in the next trial, and disturbs what that measures."""
    attempt = Attempt(tmp_path, soon)
    started = time.monotonic()
    session = attempt.start(kernel())
    assert session.facts.seconds == 7.0
    assert session.paused is attempt.paused
    assert (session.ticks_per_second, session.wall, session.cpu_time()) == (1e9, False, 5.0)
    assert session.fetch is not None, "files that a run leaves"
    assert 0.2 < session.facts.overhead_seconds <= time.monotonic() - started
    assert session.crashed is attempt.crashed
    (call,) = attempt.plays.calls
    assert call["limit"] == "bed"
    assert call["connection"] is attempt.host, "not what the inventory says: a guest's port changes"
    assert call["variables"]["perfbisect_gate_timeout"] == 50.0
    assert call["timeout"] == 50.0 + deploy._DEPLOY_SECONDS, "it begins to wait before the boot"
    assert call["reap"] is False, "a guest ends with its play: nothing is looked for on it"
    assert not list((tmp_path / "boot").glob("deploy.*"))
    (connection,) = connections
    assert not connection.closed
    session.leave()
    assert connection.closed
    assert connection.line.closed
    assert attempt.left == ["left"]


def test_a_kernel_that_dies_while_the_workload_is_put_on_it_is_not_waited_for(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, hang, lambda: PANIC)
    with pytest.raises(BootFailed, match="died while the workload was put on it") as caught:
        attempt.start()
    assert caught.value.details == PANIC
    assert attempt.plays.calls
    assert not list((tmp_path / "boot").glob("deploy.*")), "the play was cancelled"


def test_a_deployment_that_never_ends_is_the_testbeds_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy, "_DEPLOY_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(InfrastructureError, match="the workload was not on root@") as caught:
        Attempt(tmp_path, hang).start()
    assert not isinstance(caught.value, KernelError)
    assert time.monotonic() - started >= 0.3


def test_a_failed_play_is_the_testbeds_failure(tmp_path: Path) -> None:
    lost = InfrastructureError("the connection broke")
    with pytest.raises(InfrastructureError) as caught:
        Attempt(tmp_path, failing(lost)).start()
    assert caught.value is lost


@pytest.mark.parametrize(
    ("error", "dies", "told"),
    [
        (InfrastructureError("the connection broke"), False, InfrastructureError),
        (InfrastructureError("the connection broke"), True, BootFailed),
        (Interrupted("stopped"), True, Interrupted),  # Ctrl-C blames no commit
    ],
)
def test_a_broken_connection_is_the_kernels_only_where_the_console_shows_its_death(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, dies: bool, told: type[Exception]
) -> None:
    words: list[str] = []

    def connect(host: SSHHost, **_: object) -> Connection:
        words.extend([PANIC] * dies)  # they come as the connection breaks
        raise error

    monkeypatch.setattr(ssh, "SSH", connect)
    with pytest.raises(told) as caught:
        Attempt(tmp_path, soon, lambda: words[0] if words else None).start()
    assert type(caught.value) is told


@pytest.mark.parametrize("lives_on", [False, True])
def test_on_a_machine_that_lives_on_settings_are_put_back_and_the_agent_has_a_lock(
    tmp_path: Path, connections: list[Connection], lives_on: bool
) -> None:
    """The lock tells other hosts that the machine measures; settings that stay slow the next kernel."""
    attempt = Attempt(tmp_path, soon)
    host = SSHHost("127.0.0.1", 22, "root", NOWHERE, NOWHERE)
    lock = "/run/lock" if lives_on else ""
    folder = tmp_path / "boot"
    deployment = Deployment(
        attempt.plays, "bed", host, attempt.job, folder, lambda _: None, undo=lives_on, agent_lock=lock
    )
    deployment.start_session(None, crashed=lambda: None, on_leave=lambda: None, boot_seconds=7.0).leave()
    command = connections[0].command
    assert command[3:6] == ["sh", lock, "/work/perfbisect"]
    assert command[6:] == agent_command(attempt.job, undo=lives_on)


def test_an_agent_that_does_not_greet_keeps_no_connection(
    tmp_path: Path, connections: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Talk, "receive", lambda self, timeout: "sh: python3: not found")
    with pytest.raises(InfrastructureError):
        Attempt(tmp_path, soon).start()
    assert [connection.closed for connection in connections] == [True]


def test_the_gate_of_a_boot_that_was_killed_is_shut_again(tmp_path: Path) -> None:
    """Open, it would have the play fail at a machine that only begins to boot."""
    attempt = Attempt(tmp_path, hang)
    gate = tmp_path / "boot" / "deploy.gate"
    gate.parent.mkdir()
    gate.touch()
    host = SSHHost("127.0.0.1", 22, "root", NOWHERE, NOWHERE)
    with Deployment(attempt.plays, "bed", host, attempt.job, gate.parent, lambda _: None) as deployment:
        assert not gate.exists()
        deployment.cancel()


def test_a_boot_that_fails_ends_its_play_and_waits_for_that(tmp_path: Path) -> None:
    """A play that goes on would put the workload on the next kernel, while that is measured."""
    ended: list[str] = []

    def script(plays: Plays, on_task: Callable[[Task], None]) -> None:
        if plays.told_to_stop():
            time.sleep(0.2)  # ends its processes
            ended.append("told to")

    attempt = Attempt(tmp_path, script)
    host = SSHHost("127.0.0.1", 22, "root", NOWHERE, NOWHERE)
    with (
        pytest.raises(BootFailed),
        Deployment(attempt.plays, "bed", host, attempt.job, tmp_path / "boot", lambda _: None),
    ):
        raise BootFailed(PANIC)
    assert ended == ["told to"]


def test_a_deployment_ends_where_its_owner_is_told_to_stop(tmp_path: Path) -> None:
    """Ctrl-C would else wait for a machine that does not boot, for as long as a boot may take."""
    stopped: list[bool] = []
    attempt = Attempt(tmp_path, hang)
    attempt.plays.stop = lambda: bool(stopped)

    def crashed() -> None:
        stopped.append(True)  # in the first look at the console

    attempt.crashed = crashed
    with pytest.raises(Interrupted):
        attempt.start()


def test_a_play_that_ends_without_its_task_is_the_testbeds_failure(tmp_path: Path) -> None:
    failed = Task(TOLD.name, "bed", "failed", 0.0, {})
    other = Task("another task", "bed", "ok", 0.0, {"stdout": "{}"})

    def ends(plays: Plays, on_task: Callable[[Task], None]) -> None:
        on_task(failed)
        on_task(other)

    with pytest.raises(InfrastructureError, match="ended without its task") as caught:
        Attempt(tmp_path, ends).start()
    assert not isinstance(caught.value, KernelError)


def test_another_kernel_than_the_one_under_test_ends_the_deployment(
    tmp_path: Path, connections: list[Connection]
) -> None:
    with pytest.raises(InfrastructureError, match="another kernel"):
        Attempt(tmp_path, soon).start(kernel(build_id="feed"))
    assert connections == []
    assert not list((tmp_path / "boot").glob("deploy.*"))

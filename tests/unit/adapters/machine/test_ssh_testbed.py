"""Whose fault a boot over SSH is that fails, and what is done about a machine that does not answer.

Connections are scripted here; with real ones: tests/integration/test_deploy_over_ssh.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible.playbook_events import Played, Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine import boot_watch, power_command, ssh_testbed
from bisector.adapters.machine.boot import boot_request
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.adapters.system.ssh import SSHRefused
from bisector.errors import BootFailed, InfrastructureError, KernelError, PerfbisectError, RequestError
from bisector.ports import Job, Kernel, MetricSpec
from bisector.schemas.lab import lab_from_inventory

PANIC = "Kernel panic - not syncing: no"


class Plays(Ansible):
    """Notes what is played, and does nothing."""

    def play(self, playbook: str, **given: Any) -> Any:
        self.given = {"playbook": playbook, **given}
        told = Task("telling the machine to boot the kernel", "metal", "ok", 1.0, {"stdout": "boot_id=one"})
        return Played(playbook, (told,), 1.0, self.inventory)


class Console:
    """A console that shows a death, or not."""

    path = None

    def __init__(self, dead: bool) -> None:
        self.dead, self.closed = dead, 0

    def death(self) -> str | None:
        return PANIC if self.dead else None

    def end(self) -> str:
        return "the last words"

    def close(self) -> None:
        self.closed += 1


class Bench:
    """A machine whose answers to the question for its boot are scripted; the last one goes on for ever."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, *answers: str, dead: bool = False
    ) -> None:
        self.answers, self.folder, self.console = list(answers), folder, Console(dead)
        self.switched: list[list[str]] = []
        self.sessions: list[dict[str, Any]] = []
        self.folder.mkdir(exist_ok=True)
        self.ansible = Plays(folder, folder / "lab.yml")
        monkeypatch.setattr(boot_watch, "PAUSE_SECONDS", 0.01)
        monkeypatch.setattr(MachineReach, "boot_id", lambda _: self.answer())
        monkeypatch.setattr(ssh_testbed, "CommandConsole", lambda *_: self.console)
        monkeypatch.setattr(
            power_command, "run_command", lambda command, **_: self.switched.append(list(command))
        )
        monkeypatch.setattr(ssh_testbed, "Deployment", self._deployment)
        monkeypatch.setattr(boot_request, "end_request", lambda _: None)

    def answer(self) -> str:
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if said == "silence":
            raise SSHRefused("no route", details="to the host")
        return said

    def _deployment(self, *_: object, **given: Any) -> Bench:
        return self

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start_session(self, kernel: Kernel, **given: Any) -> str:
        self.sessions.append(given)
        return "session"

    def testbed(self, **variables: object) -> SSHTestbed:
        known = {
            "ansible_host": "10.0.0.1",
            "ansible_ssh_private_key_file": "/key",
            "perfbisect_boot_method": "kexec",
            "perfbisect_boot_timeout": 1,
            "perfbisect_between_boots": "kexec",
        }
        hosts = {"_meta": {"hostvars": {"metal": known | variables}}, "testbeds": {"hosts": ["metal"]}}
        spec = lab_from_inventory(hosts, self.folder / "lab.yml").testbed("metal")
        return SSHTestbed(spec, self.ansible)

    def boot(self, bed: SSHTestbed | None = None) -> object:
        image = self.folder / "image"
        image.write_bytes(b"kernel")
        kernel = Kernel("a", "x", "a", image, image, image, "6.1", "", 1.0, False)
        job = Job("toy", self.folder, ("toy",), (MetricSpec("real", "s"),))
        return (bed or self.testbed()).boot(kernel, job, self.folder / "boot", lambda _: None)


def failure(bench: Bench, bed: SSHTestbed | None = None) -> PerfbisectError:
    with pytest.raises(PerfbisectError) as caught:
        bench.boot(bed)
    return caught.value


def test_a_machine_that_answers_from_another_boot_is_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "one", "one", "silence", "two")
    assert bench.boot() == "session"
    (session,) = bench.sessions
    assert 0.02 < session["boot_seconds"] < 60
    assert session["crashed"]() is None
    session["on_leave"]()
    assert bench.console.closed == 1
    assert (bench.ansible.given["playbook"], bench.ansible.given["limit"]) == ("boot", "metal")


@pytest.mark.parametrize(
    ("answers", "dead", "told", "words"),
    [
        (("one",), False, InfrastructureError, "'metal' did not reboot within 1 s"),
        (("one", "silence"), False, BootFailed, "never answered over SSH within 1 s"),
        (("one", "silence"), True, BootFailed, "died while it booted"),
        (
            ("one", "silence", "one"),
            False,
            InfrastructureError,
            "did not reboot",
        ),  # it fell back to the old kernel
    ],
)
def test_a_kernel_is_blamed_only_where_its_machine_went_down_and_did_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    answers: tuple[str, ...],
    dead: bool,
    told: type[PerfbisectError],
    words: str,
) -> None:
    bench = Bench(monkeypatch, tmp_path, *answers, dead=dead)
    error = failure(bench)
    assert words in error.message
    assert isinstance(error, told)
    assert isinstance(error, KernelError) == (told is BootFailed)
    assert bench.console.closed == 1, "what prints it would go on for ever"
    if told is BootFailed:
        assert (PANIC if dead else "to the host\nthe last words") in error.details


def test_a_machine_that_does_not_answer_before_the_boot_is_never_the_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bench = Bench(monkeypatch, tmp_path, "silence", dead=True)
    bed = bench.testbed()
    error = failure(bench, bed)
    assert isinstance(error, InfrastructureError)
    assert "cannot be switched from here" in error.message
    bench.answers = ["one", "two"]
    assert failure(bench, bed) is error, "it stays refused: each trial would wait for it"


def test_a_machine_is_switched_off_and_on_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, "silence", "silence", "one", "two")
    assert bench.boot(bench.testbed(perfbisect_power={"cycle": ["pdu", "4"]})) == "session"
    assert bench.switched == [["pdu", "4"]]
    dead = Bench(monkeypatch, tmp_path, "silence")
    bed = dead.testbed(perfbisect_power={"cycle": ["pdu", "4"]})
    error = failure(dead, bed)
    assert "does not come back after a power cycle" in error.message
    assert not isinstance(error, KernelError)
    assert failure(dead, bed) is error
    assert dead.switched == [["pdu", "4"]]


def test_what_the_inventory_must_say_of_a_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench = Bench(monkeypatch, tmp_path, "one")
    with pytest.raises(RequestError, match="no boot method") as caught:
        bench.testbed(perfbisect_boot_method=None)
    assert "perfbisect_boot_method to kexec or grub" in caught.value.cure
    with pytest.raises(RequestError, match="the testbed 'metal' has no SSH key") as caught:
        bench.testbed(ansible_ssh_private_key_file="")
    assert "ansible_ssh_private_key_file" in caught.value.cure

"""What libvirt's answers mean for a guest: its end, its pauses, its start. Libvirt itself is not needed.

With a real one: tests/integration/test_libvirt_guest.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from bisector.adapters.guest import libvirt_connection
from bisector.adapters.guest.libvirt_connection import Domain, Hypervisor, PortTaken
from bisector.errors import InfrastructureError


class LibvirtError(Exception):
    """libvirt.libvirtError. code: what kind of error it is."""

    code = 1

    def get_error_code(self) -> int:
        return self.code


STOPPED, SHUTDOWN, DESTROYED, CRASHED, FAILED, SAVED = 5, 0, 1, 2, 5, 4
RUNNING, PAUSED, NO_DOMAIN, AUTODESTROY = 1, 3, 42, 2


class Guest:
    """libvirt's virDomain. fails: what each call raises."""

    def __init__(self, name: str = "pb-1") -> None:
        self.named, self.active = name, True
        self.now = (RUNNING, 0)
        self.did: list[str] = []
        self.fails: LibvirtError | None = None

    def name(self) -> str:
        return self.named

    def isActive(self) -> bool:
        self._do("asked")
        return self.active

    def info(self) -> tuple[int, ...]:
        self._do("asked")
        return (RUNNING, 0, 0, 1, 7_500_000_000)

    def state(self) -> tuple[int, int]:
        self._do("asked")
        return self.now

    def suspend(self) -> None:
        self._do("suspend")

    def resume(self) -> None:
        self._do("resume")

    def destroy(self) -> None:
        self._do("destroy")

    def _do(self, what: str) -> None:
        if self.fails is not None:
            raise self.fails
        self.did.append(what)


class Host:
    """A hypervisor whose connection and processes are these."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.guests: list[Guest] = []
        self.qemus: list[int] = []
        self.killed: list[int] = []
        self.connection: Any = SimpleNamespace(listAllDomains=lambda: self.guests)
        reasons = {"USER": 1, "SAVE": 3, "DUMP": 4, "IOERROR": 5, "SNAPSHOT": 9}
        names = {
            "VIR_DOMAIN_START_AUTODESTROY": AUTODESTROY,
            "VIR_DOMAIN_NONE": 0,
            "VIR_ERR_NO_DOMAIN": NO_DOMAIN,
            "VIR_DOMAIN_PAUSED": PAUSED,
            "VIR_DOMAIN_EVENT_STOPPED": STOPPED,
            "VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN": SHUTDOWN,
            "VIR_DOMAIN_EVENT_STOPPED_DESTROYED": DESTROYED,
            "VIR_DOMAIN_EVENT_STOPPED_CRASHED": CRASHED,
            "VIR_DOMAIN_EVENT_STOPPED_FAILED": FAILED,
            **{f"VIR_DOMAIN_PAUSED_{name}": number for name, number in reasons.items()},
        }
        fake = SimpleNamespace(libvirtError=LibvirtError, **names)
        monkeypatch.setattr(libvirt_connection, "libvirt", fake)
        monkeypatch.setattr(libvirt_connection, "qemu_pids", lambda prefix: self.qemus)
        monkeypatch.setattr(libvirt_connection, "kill", self.killed.append)
        self.hypervisor = object.__new__(Hypervisor)
        self.hypervisor.remote = False
        self.hypervisor._connection = self.connection
        self.hypervisor._ends, self.hypervisor._ended = {}, threading.Condition()

    def domain(self, guest: Guest) -> Domain:
        return Domain(self.hypervisor, guest.named, guest)

    def tell(self, name: str, event: int, detail: int) -> None:
        self.hypervisor._on_event(None, Guest(name), event, detail, None)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def fail(text: str, code: int = 1) -> Callable[..., NoReturn]:
    def call(*_: object) -> NoReturn:
        error = LibvirtError(text)
        error.code = code
        raise error

    return call


def test_a_guest_ends_with_the_process_that_started_it(host: Host) -> None:
    started: list[int] = []
    host.connection.createXML = lambda xml, flags: started.append(flags)
    assert host.hypervisor.start("pb-1", "<domain/>").name == "pb-1"
    assert started == [AUTODESTROY]


def test_a_port_that_is_taken_is_worth_another_try_and_all_else_is_not(host: Host) -> None:
    host.connection.createXML = fail("qemu: Could not set up host forwarding rule 'tcp::2222-:22'")
    with pytest.raises(PortTaken):
        host.hypervisor.start("pb-1", "<domain/>")
    host.connection.createXML = fail("qemu: cannot open the image")
    with pytest.raises(InfrastructureError, match="cannot start the guest") as error:
        host.hypervisor.start("pb-1", "<domain/>")
    assert not isinstance(error.value, PortTaken)
    assert error.value.details == "qemu: cannot open the image"


@pytest.mark.parametrize(
    ("uri", "cure"), [("qemu:///session", "unset XDG_RUNTIME_DIR"), ("qemu:///system", "systemctl start")]
)
def test_a_daemon_that_does_not_answer_is_mended_by_whom_it_belongs_to(
    host: Host, monkeypatch: pytest.MonkeyPatch, uri: str, cure: str
) -> None:
    """That of a user starts itself: no service of the system has anything to do with it."""
    fake = SimpleNamespace(libvirtError=LibvirtError, open=fail("Cannot create user runtime directory"))
    monkeypatch.setattr(libvirt_connection, "libvirt", fake)
    with pytest.raises(InfrastructureError, match=f"does not answer at {uri}") as error:
        libvirt_connection._open(uri)
    assert cure in error.value.cure
    assert ("systemctl" in error.value.cure) is (uri == "qemu:///system")


def test_without_libvirts_python_the_cure_is_one_that_needs_no_checkout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(libvirt_connection, "libvirt", None)
    with pytest.raises(InfrastructureError, match="libvirt-python is not installed") as error:
        Hypervisor()
    assert error.value.cure == "perfbisect doctor --fix"


def test_what_a_killed_process_left_is_ended_and_nothing_of_others(host: Host) -> None:
    host.guests = [Guest("pb-1"), Guest("web-server"), Guest("pb-2")]
    host.qemus = [77]  # of a guest that libvirt has forgotten
    assert host.hypervisor.sweep("pb-") == ["pb-1", "pb-2"]
    assert [guest.did for guest in host.guests] == [["destroy"], [], ["destroy"]]
    assert 77 in host.killed
    host.guests, host.killed[:] = [], []
    assert host.hypervisor.sweep("pb-") == []
    assert host.killed == [77]
    host.hypervisor.remote = True  # its guests are no processes of this host
    host.killed.clear()
    host.hypervisor.sweep("pb-")
    assert host.killed == []
    host.connection.listAllDomains = fail("broken pipe")
    with pytest.raises(InfrastructureError, match="does not list its domains"):
        host.hypervisor.sweep("pb-")


@pytest.mark.parametrize(
    ("detail", "end"),
    [
        (SHUTDOWN, "shutdown"),
        (DESTROYED, "destroyed"),
        (CRASHED, "crashed"),
        (FAILED, "failed"),
        (SAVED, "lost"),
    ],
)
def test_how_a_guest_ended_is_what_libvirt_says(host: Host, detail: int, end: str) -> None:
    """A guest that shuts itself down is its kernel's doing; one that was ended from outside is not."""
    host.tell("pb-2", STOPPED, SHUTDOWN)
    host.tell("pb-1", STOPPED + 1, SHUTDOWN)  # it started
    assert host.hypervisor.end_of("pb-1") is None
    host.tell("pb-1", STOPPED, detail)
    assert host.domain(Guest()).ended() == end


def test_a_guest_that_runs_has_not_ended_and_one_without_a_word_is_lost(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libvirt_connection, "_EVENT_SECONDS", 0.05)
    guest = Guest()
    host.qemus = [77]
    assert host.domain(guest).ended() is None
    assert guest.did == [], "here that needs no libvirtd"
    host.qemus = []
    assert host.domain(guest).ended() == "lost", "nobody is blamed for it"
    host.hypervisor.remote = True
    assert host.domain(guest).ended() is None
    guest.active = False
    assert host.domain(guest).ended() == "lost"
    guest.fails = LibvirtError("the connection broke")
    assert host.domain(guest).ended() == "lost"


def test_the_word_about_an_end_is_waited_for(host: Host) -> None:
    """QEMU is gone some seconds before libvirt says why."""
    later = threading.Timer(0.1, lambda: host.tell("pb-1", STOPPED, CRASHED))
    later.start()
    assert host.domain(Guest()).ended() == "crashed"
    later.join()


@pytest.mark.parametrize(
    ("reason", "words"), [(5, "I/O error"), (1, "user"), (99, "reason 99 of virDomainPausedReason")]
)
def test_a_pause_is_told_where_it_is_not_our_own(host: Host, reason: int, words: str) -> None:
    guest = Guest()
    domain = host.domain(guest)
    assert domain.paused() is None
    domain.suspend()
    guest.now = (PAUSED, reason)
    assert domain.paused() is None, "we did it"
    domain.resume()
    assert domain.paused() == words
    guest.fails = LibvirtError("broken pipe")
    assert domain.paused() is None
    for call in (domain.suspend, domain.resume):
        with pytest.raises(InfrastructureError, match=r"cannot (suspend|resume) the guest"):
            call()


def test_the_time_that_a_guest_has_used_is_in_seconds(host: Host) -> None:
    guest = Guest()
    assert host.domain(guest).cpu_seconds() == 7.5
    guest.fails = LibvirtError("broken pipe")
    assert host.domain(guest).cpu_seconds() is None


def test_a_guest_that_libvirt_does_not_end_is_killed(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    """It would measure beside the next one."""
    guest = Guest()
    host.qemus, guest.fails = [77], LibvirtError("libvirtd is gone")
    host.domain(guest).destroy()
    assert host.killed == [77]
    assert "libvirt does not end the guest pb-1" in caplog.text
    caplog.clear()
    guest.fails.code, host.qemus = NO_DOMAIN, []
    host.domain(guest).destroy()
    assert caplog.text == "", "it had ended already"


def test_a_libvirtd_that_does_not_answer_is_not_alive(host: Host) -> None:
    host.connection.isAlive, host.connection.getLibVersion = (lambda: 1), (lambda: 9_000_000)
    assert host.hypervisor.alive()
    host.connection.isAlive = lambda: 0
    assert not host.hypervisor.alive()
    host.connection.isAlive, host.connection.getLibVersion = (lambda: 1), fail("broken pipe")
    assert not host.hypervisor.alive()


def test_models_that_confine_qemu_are_named_and_others_are_not(host: Host) -> None:
    models = "".join(f"<model>{m}</model>\n<doi>0</doi>" for m in ("apparmor", "dac", "none"))
    host.connection.getCapabilities = lambda: models
    assert host.hypervisor.confining_models() == ("apparmor",)
    host.connection.getCapabilities = fail("broken pipe")
    with pytest.raises(InfrastructureError, match="does not tell what it can"):
        host.hypervisor.confining_models()

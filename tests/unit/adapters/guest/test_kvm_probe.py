"""Whether KVM works is asked once a host, and a device that is there is no answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.adapters.guest import kvm_probe
from bisector.adapters.guest.kvm_probe import KvmAnswer, KvmProbe, boots_under_kvm
from bisector.adapters.system.command import CompletedCommand
from bisector.errors import InfrastructureError


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every real probe that was made; each answers 'works'."""
    made: list[str] = []

    def probe(self: KvmProbe) -> KvmAnswer:
        made.append("probe")
        return KvmAnswer(True, True, "a kernel booted")

    monkeypatch.setattr(KvmProbe, "_probe", lambda self, progress: probe(self))
    return made


def test_the_answer_is_remembered_until_it_is_asked_anew(tmp_path: Path, probes: list[str]) -> None:
    asked = KvmProbe(tmp_path / "cache")
    assert asked.remembered() is None
    assert asked.ask(lambda _: None).works
    assert KvmProbe(tmp_path / "cache").ask(lambda _: None).why == "a kernel booted"
    assert probes == ["probe"]
    asked.ask(lambda _: None, again=True)
    assert probes == ["probe", "probe"]


def test_another_host_kernel_asks_anew(tmp_path: Path, probes: list[str]) -> None:
    KvmProbe(tmp_path).ask(lambda _: None)
    note = json.loads((tmp_path / "kvm.json").read_text())
    (tmp_path / "kvm.json").write_text(json.dumps({**note, "host": "5.10"}))
    assert KvmProbe(tmp_path).remembered() is None


def test_a_broken_note_is_no_answer(tmp_path: Path, probes: list[str]) -> None:
    (tmp_path / "kvm.json").write_text("{")
    assert KvmProbe(tmp_path).ask(lambda _: None).works


@pytest.mark.parametrize(
    ("output", "works", "why"),
    [
        (
            "Linux version 6.1\nKernel panic - not syncing: VFS: Unable to mount root fs on x\n",
            True,
            "booted",
        ),
        (
            "Linux version 6.1\nKernel panic - not syncing: timer does not work\n",
            False,
            "timer does not work",
        ),
        ("qemu: error: failed to set MSR 0x10a to 0x69\n", False, "failed to set MSR"),
        ("", False, "no word"),
    ],
)
def test_only_a_kernel_that_misses_its_root_has_booted(
    monkeypatch: pytest.MonkeyPatch, output: str, works: bool, why: str
) -> None:
    monkeypatch.setattr(
        kvm_probe, "run_command", lambda command, **_: CompletedCommand(tuple(map(str, command)), 0, output)
    )
    answer = boots_under_kvm(Path("/boot/vmlinuz"))
    assert answer.works is works
    assert why in answer.why


def test_a_hang_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(command: object, **_: object) -> CompletedCommand:
        raise InfrastructureError("'qemu-system-x86_64' did not end within 20 s")

    monkeypatch.setattr(kvm_probe, "run_command", hang)
    assert boots_under_kvm(Path("/boot/vmlinuz")) == KvmAnswer(
        False, True, "vmlinuz hangs under KVM: 'qemu-system-x86_64' did not end within 20 s"
    )


def test_no_device_is_a_certain_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm_probe, "_DEVICE", tmp_path / "kvm")
    answer = KvmProbe(tmp_path).ask(lambda _: None)
    assert (answer.works, answer.known) == (False, True)


def test_a_user_who_may_open_the_device_by_now_is_asked_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, probes: list[str]
) -> None:
    """A user joined the group 'kvm' and logged in again: doctor went on to say that it may not be opened."""
    monkeypatch.setattr(kvm_probe.os, "access", lambda *_: False)  # type: ignore[attr-defined]
    KvmProbe(tmp_path).ask(lambda _: None)
    KvmProbe(tmp_path).ask(lambda _: None)
    assert probes == ["probe"]
    monkeypatch.setattr(kvm_probe.os, "access", lambda *_: True)  # type: ignore[attr-defined]
    KvmProbe(tmp_path).ask(lambda _: None)
    assert probes == ["probe", "probe"]


def test_a_device_that_may_not_be_opened_is_told_with_the_group_that_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kvm_probe, "_DEVICE", tmp_path)
    monkeypatch.setattr(kvm_probe.os, "access", lambda *_: False)  # type: ignore[attr-defined]
    answer = KvmProbe(tmp_path / "cache").ask(lambda _: None)
    assert (answer.works, answer.known) == (False, True)
    assert "usermod -aG kvm" in answer.why

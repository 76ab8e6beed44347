"""What is sent to a machine that boots a kernel, and what its answer becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible.playbook_events import Played, Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.boot import boot_request
from bisector.adapters.machine.boot.boot_request import PlayedBoot, kernel_files
from bisector.adapters.machine.boot.boot_script import SCRIPT
from bisector.adapters.machine.machine_parts import RunningKernel
from bisector.adapters.machine.machine_reach import MachineReach, ssh_host
from bisector.adapters.machine.power.power_stage import PowerRefused
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.ports import Job, Kernel, MetricSpec
from bisector.schemas.lab import lab_from_inventory

JOB = Job("toy", Path(), ("toy",), (MetricSpec("real", "s"),), environment={"kaslr": "off"})


class Plays(Ansible):
    """Notes what is played, and answers what it is told to."""

    answer, code = "boot_id=one\nwatchdog=none\n", 0

    def play(self, playbook: str, **given: Any) -> Played:
        self.given = given
        status = "failed" if self.code else "ok"
        result = {
            "stdout": self.answer,
            "rc": self.code,
            "msg": "the command ended",
            "stderr": "tar: no space",
        }
        task = Task("telling the machine to boot the kernel", "box", status, 1.0, result)  # type: ignore[arg-type]
        return Played(playbook, (task,), 1.0, self.inventory)


def kernel(folder: Path, *, modules: bool = False) -> Kernel:
    image, config, archive = (folder / name for name in ("bzImage", ".config", "modules.tar.gz"))
    image.write_bytes(b"kernel")
    config.write_text("CONFIG_X=y\n")
    archive.write_bytes(b"modules" * 1000)
    made = Kernel("a", "x", "a", image, config, image, "6.1", "", 1.0, False)
    return replace(made, modules=archive, load=("nvme",)) if modules else made


def method(plays: Plays, **variables: object) -> PlayedBoot:
    known = {"ansible_ssh_private_key_file": "/key", "perfbisect_boot_method": "kexec"}
    listing = {"_meta": {"hostvars": {"box": known | variables}}, "testbeds": {"hosts": ["box"]}}
    spec = lab_from_inventory(listing, plays.inventory).testbed("box")
    return PlayedBoot(spec, plays, MachineReach(ssh_host(spec), 180.0))


@pytest.fixture
def plays(tmp_path: Path) -> Plays:
    return Plays(tmp_path, tmp_path / "lab.yml")


def test_the_key_is_that_of_the_code_and_the_checksums_are_those_of_all_files(tmp_path: Path) -> None:
    one = kernel(tmp_path)
    files, key = kernel_files(one, tmp_path)
    assert set(files) == {"boot.sh", "image", "config", "sums"} and files["boot.sh"] == SCRIPT
    assert f"{hashlib.sha256(b'kernel').hexdigest()}  image\n" in files["sums"].read_text()
    one.config.write_text("CONFIG_Y=y\n")
    assert kernel_files(one, tmp_path)[1] == key
    with_modules = kernel(tmp_path, modules=True)
    files, other = kernel_files(with_modules, tmp_path)
    assert other != key and "modules.tar.gz" in files
    one.image.write_bytes(b"another")
    assert kernel_files(one, tmp_path)[1] not in (key, other)


def test_one_play_gets_the_kernel_its_modules_and_the_room_they_need(plays: Plays, tmp_path: Path) -> None:
    own = {"perfbisect_cmdline": "root=/dev/sda2 quiet"}
    request = method(plays, perfbisect_between_boots="kexec", perfbisect_boot_timeout=60, **own)
    assert request.request_boot(kernel(tmp_path), JOB, tmp_path, print) == "one"
    sent = plays.given["variables"]
    assert (sent["perfbisect_release"], sent["perfbisect_cmdline_more"]) == ("6.1", "nokaslr")
    assert sent["perfbisect_cmdline"] == "root=/dev/sda2 quiet"
    assert (sent["perfbisect_boot_method"], sent["perfbisect_watchdog"]) == ("kexec", 180)
    alone = sent["perfbisect_kib"]
    request.request_boot(kernel(tmp_path, modules=True), JOB, tmp_path, print)
    unpacked = (6 + 5 * 7000) // 1024  # the image, the archive and what is in it
    assert alone < 1024
    assert plays.given["variables"]["perfbisect_kib"] == (100 << 10) + unpacked, "and an initramfs"


def test_what_the_machine_lacks_is_its_own_fault_in_its_own_words(plays: Plays, tmp_path: Path) -> None:
    plays.code, plays.answer = 65, "refused=kexec is not on the machine\ncure=install it\n"
    request = method(plays, perfbisect_between_boots="kexec")
    with pytest.raises(InfrastructureError, match="'box' cannot boot the kernel: kexec is not on") as caught:
        request.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    assert caught.value.cure == "install it"
    plays.code, plays.answer = 2, ""
    with pytest.raises(InfrastructureError, match="'box' could not be told to boot") as caught:
        request.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    assert "tar: no space" in caught.value.details


@pytest.mark.parametrize(
    ("variables", "ours", "leaves"),
    [
        ({}, "aa", True),
        ({}, "", False),
        ({"perfbisect_between_boots": "kexec"}, "aa", False),
        ({"perfbisect_boot_method": "grub"}, "aa", False),
    ],
    ids=["by default", "the default kernel runs", "by choice", "GRUB reboots anyway"],
)
def test_a_kernel_under_test_is_left_before_kexec(
    plays: Plays, monkeypatch: pytest.MonkeyPatch, variables: dict[str, object], ours: str, leaves: bool
) -> None:
    monkeypatch.setattr(boot_request, "running_kernel_of", lambda _: RunningKernel("zero", "6.0", "", ours))
    assert method(plays, **variables).must_leave_kernel() is leaves


@pytest.mark.parametrize(
    ("boot_method", "watchdog", "asked"),
    [("kexec", "none", 0), ("kexec", "300 s by ipmi_watchdog", 1), ("grub", "none", 1)],
)
def test_a_machine_is_asked_once_more_only_where_something_could_start_the_kernel_again(
    plays: Plays,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    boot_method: str,
    watchdog: str,
    asked: int,
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(boot_request, "end_request", ended.append)
    plays.answer = f"boot_id=one\nwatchdog={watchdog}\n"
    bed = method(plays, perfbisect_boot_method=boot_method, perfbisect_between_boots="kexec")
    bed.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    bed.end_request(up=False)
    assert not ended, "nobody answers"
    assert bed.watchdog_spare == (120.0 if "ipmi" in watchdog else 0.0), "it is armed yet"
    bed.end_request(up=True)
    assert (len(ended), bed.watchdog_spare) == (asked, 0.0)


class Override:
    """A firmware whose boot order is changed for a boot; it may refuse to change it back."""

    def __init__(self, folder: Path, *, stuck: PerfbisectError | None = None) -> None:
        self.folder, self.stuck, self.said = folder, stuck, [""]
        self.refuses: PerfbisectError | None = None

    def boot_once_from_network(self) -> None:
        assert list(self.folder.glob("perfbisect/*.ipxe")), "the files are there before the machine asks"
        if self.refuses:
            raise self.refuses
        self.said.append("network")

    def end_boot_override(self) -> None:
        self.said.append("disk")
        if self.stuck:
            raise self.stuck


@pytest.mark.parametrize(
    "stuck", [None, InfrastructureError("the BMC does not answer"), RequestError("BMC is not set")]
)
def test_a_network_boot_is_for_once_whatever_becomes_of_it(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: PerfbisectError | None
) -> None:
    folder = tmp_path / "tftp"
    override = Override(folder, stuck=stuck)
    restarted: list[object] = []
    monkeypatch.setattr(boot_request, "restart_served", restarted.append)
    plays.answer = "boot_id=one\nbooting=root=/dev/sda1\ninitrd=\n"
    netboot = {"folder": str(folder), "url": "tftp://10.0.2.2", "mac": "52:54:00:12:34:56"}
    bed = method(plays, perfbisect_boot_method="pxe", perfbisect_netboot=netboot)
    bed = PlayedBoot(bed._spec, plays, bed._reach, override)
    assert bed.request_boot(kernel(tmp_path), JOB, tmp_path, print) == "one"
    assert len(restarted) == 1 and override.said[-1] == "network"
    assert "root=/dev/sda1" in (folder / "perfbisect/52-54-00-12-34-56.ipxe").read_text()
    bed.end_request(up=False)
    assert override.said[-1] == "disk" and not list(folder.glob("perfbisect/*"))

    def gone(_: object) -> None:
        raise InfrastructureError("the connection broke")

    ended: list[object] = []
    monkeypatch.setattr(boot_request, "end_request", ended.append)
    monkeypatch.setattr(boot_request, "restart_served", gone)
    with pytest.raises(InfrastructureError, match="broke"):
        bed.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    assert override.said[-1] == "disk" and not list(folder.glob("perfbisect/*"))
    assert len(ended) == 1, "the watchdog that was armed for it"

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(boot_request, "restart_served", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bed.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    assert not list(folder.glob("perfbisect/*")), "nobody would take it away"


@pytest.mark.parametrize("refused", [True, False])
def test_a_bmc_that_cannot_choose_the_network_leaves_it_to_the_boot_order_and_a_dead_one_does_not(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    override = Override(tmp_path / "tftp")
    restarted: list[object] = []
    monkeypatch.setattr(boot_request, "restart_served", restarted.append)
    monkeypatch.setattr(boot_request, "end_request", lambda _: None)
    plays.answer = "boot_id=one\nbooting=root=/dev/sda1\ninitrd=\n"
    netboot = {"folder": str(tmp_path / "tftp"), "url": "tftp://10.0.2.2", "mac": "52:54:00:12:34:56"}
    bed = method(plays, perfbisect_boot_method="pxe", perfbisect_netboot=netboot)
    bed = PlayedBoot(bed._spec, plays, bed._reach, override)
    told: list[str] = []
    if refused:
        override.refuses = PowerRefused("it has no boot override")
        assert bed.request_boot(kernel(tmp_path), JOB, tmp_path, told.append) == "one"
        assert told[-1].startswith("it has no boot override: the boot order of ")
        assert len(restarted) == 1
    else:
        override.refuses = InfrastructureError("the BMC does not answer")
        with pytest.raises(InfrastructureError, match="from the network once: the BMC does not answer"):
            bed.request_boot(kernel(tmp_path), JOB, tmp_path, told.append)
        assert restarted == [], "it would boot its own kernel, which would pass for a kernel that fell back"


NETBOOT = {"url": "tftp://10.0.2.2", "mac": "52:54:00:12:34:56"}


def from_network(plays: Plays, folder: Path) -> PlayedBoot:
    served = NETBOOT | {"folder": str(folder / "tftp")}
    return method(plays, perfbisect_boot_method="pxe", perfbisect_netboot=served)


@pytest.mark.parametrize("way", ["restart", "forget"])
def test_no_way_back_boots_the_kernel_under_test_from_the_network_again(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    served: list[list[Path]] = []

    def note(_: object) -> None:
        served.append(list(tmp_path.glob("tftp/perfbisect/*")))

    for name in ("restart_served", "restart_default", "forget"):
        monkeypatch.setattr(boot_request, name, note)
    plays.answer = "boot_id=one\nbooting=root=/dev/sda1\ninitrd=\n"
    bed = from_network(plays, tmp_path)
    bed.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    getattr(bed, way)()
    assert [len(files) for files in served] == [2, 0]


def test_an_initramfs_is_fetched_served_and_not_kept_twice(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class There:
        def __init__(self, _: object) -> None:
            pass

        def __enter__(self) -> There:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def save(self, words: list[str], path: Path, *, timeout: float, max_bytes: int) -> None:
            assert words == ["cat", "/boot/initrd"]
            path.write_text("initramfs")

    monkeypatch.setattr(boot_request, "SSH", There)
    monkeypatch.setattr(boot_request, "restart_served", lambda _: None)
    plays.answer = "boot_id=one\nbooting=root=/dev/sda1\ninitrd=/boot/initrd\n"
    from_network(plays, tmp_path).request_boot(kernel(tmp_path), JOB, tmp_path, print)
    (file,) = tmp_path.glob("tftp/perfbisect/*/initrd")
    assert file.read_text() == "initramfs"
    assert not (tmp_path / "initrd").exists(), "60 MB a boot"


def test_why_a_network_boot_failed_is_told_though_the_machine_has_gone(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(words: str) -> Callable[[object], None]:
        def call(_: object) -> None:
            raise InfrastructureError(words)

        return call

    monkeypatch.setattr(boot_request, "restart_served", fail("the connection broke"))
    monkeypatch.setattr(boot_request, "end_request", fail("no route"))
    plays.answer = "boot_id=one\nbooting=root=/dev/sda1\ninitrd=\n"
    with pytest.raises(InfrastructureError, match="the connection broke"):
        from_network(plays, tmp_path).request_boot(kernel(tmp_path), JOB, tmp_path, print)


def test_crashes_of_before_the_boot_are_not_this_kernels(
    plays: Plays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of another kernel's panic would blame this commit."""
    known: list[Sequence[str]] = []

    def crash_records(_: object, before: Sequence[str]) -> str:
        known.append(before)
        return "a record"

    monkeypatch.setattr(boot_request, "crash_records", crash_records)
    plays.answer = f"boot_id=one\nran=aa\ncrashes=dmesg-1 dmesg-2\nbase_cmdline={'x' * 5000}\n"
    bed = method(plays)
    bed.request_boot(kernel(tmp_path), JOB, tmp_path, print)
    assert bed.crash() == "a record"
    assert known == [["dmesg-1", "dmesg-2"]]
    assert bed.ran == "aa"
    assert [len(text) for text in bed.facts.values()] == [4096], "a machine may say anything"


def test_a_kernel_whose_image_is_gone_is_told_here_and_not_by_the_machine(tmp_path: Path) -> None:
    one = kernel(tmp_path)
    one.config.unlink()
    assert "config" not in kernel_files(one, tmp_path)[0], "it does without"
    one.image.unlink()
    with pytest.raises(InfrastructureError, match="cannot read the kernel's files"):
        kernel_files(one, tmp_path)

"""What the booting script does on a machine, which is a folder here, with tools that only note their call.

Real machines: tests/lab.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from bisector.adapters.machine.boot import boot_script
from bisector.adapters.machine.boot.boot_script import SCRIPT, parse_answer, refusal
from bisector.adapters.machine.machine_parts import RunningKernel
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError, KernelRefused

REAL = (
    *("sh", "cat", "sed", "awk", "od", "tr", "tail", "head", "grep", "ls", "mkdir", "mv", "rm", "cp", "df"),
    *(
        "sha256sum",
        "gzip",
        "tar",
        "diff",
        "touch",
        "basename",
        "readlink",
        "sync",
        "nohup",
        "setsid",
        "sleep",
        "wc",
        "find",
        "xz",
        "zstd",
    ),
)
"""All that the script may use of this machine: no tool that would boot it."""

DEFAULT_CMDLINE = "BOOT_IMAGE=/boot/vmlinuz root=/dev/nvme0n1p1 ro console=ttyS0 panic=30"

NOTES = bytes.fromhex("040000001400000003000000474e5500") + bytes(range(20))


@dataclass
class FakeMachine:
    """A machine in a folder. Its tools write their name and arguments to `calls`."""

    root: Path
    built_in: tuple[str, ...] = ()
    """Names of the modules that the kernels have built in."""

    def __post_init__(self) -> None:
        self.tools, self.calls = self.root / "tools", self.root / "calls"
        self.tools.mkdir(parents=True)
        self.calls.touch()
        for name in REAL:
            (self.tools / name).symlink_to(shutil.which(name) or "/nonexistent")
        self.tool("nohup")
        self.write("proc/cmdline", DEFAULT_CMDLINE + "\n")
        self.write("proc/sys/kernel/osrelease", "6.1.0-own\n")
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.write("sys/kernel/notes", NOTES)
        self.write("proc/mounts", "/dev/root / ext4 rw 0 0\nproc /proc proc rw 0 0\n")
        self.write("proc/self/mountinfo", "21 1 259:1 / / rw - ext4 /dev/root rw\n")
        self.root_device("devices/pci/0:3/nvme/nvme0n1/nvme0n1p1", "devices/pci/0:3", "nvme")
        (self.root / "boot").mkdir()
        (self.root / "lib/modules").mkdir(parents=True)

    def root_device(self, place: str, driven: str, driver: str) -> None:
        """Have the root file system on this device; driver: of the device `driven` above it."""
        (self.root / "sys" / place).mkdir(parents=True, exist_ok=True)
        for link, target in (
            (self.root / "sys/dev/block/259:1", self.root / "sys" / place),
            (self.root / "sys" / driven / "driver", self.root / "sys/drivers" / driver),
        ):
            for folder in (link.parent, target):
                folder.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    def tool(self, name: str, says: str = "", code: int = 0, does: str = "") -> None:
        path = self.tools / name
        path.unlink(missing_ok=True)  # it may be a link to this machine's own, which would be written to
        path.write_text(
            f'#!/bin/sh\necho "{name} $*" >>{self.calls}\n{does}\n{says and f"echo {says}"}\nexit {code}\n'
        )
        path.chmod(0o755)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def has(self, name: str) -> bool:
        return (self.root / name).exists()

    def run(self, *action: str, folder: Path | None = None) -> tuple[int, dict[str, str]]:
        done = self.done(*action, folder=folder)
        return done.returncode, dict(parse_answer(done.stdout))

    def printed(self, *action: str) -> str:
        return self.done(*action).stdout

    def done(self, *action: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [shutil.which("dash") or "/bin/sh", SCRIPT, *action],
            env={"PATH": str(self.tools), "PB_ROOT": str(self.root)},
            cwd=folder or self.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "boot.sh:" not in done.stderr, done.stderr
        return done

    def send(self, key: str = "aa", release: str = "6.2.0-test", modules: bool = False) -> Path:
        """Put a kernel's files where the play puts them; return that folder."""
        folder = self.root / "var/lib/perfbisect/incoming"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "image").write_text(f"kernel {key}")
        (folder / "config").write_text("CONFIG_I6300ESB_WDT=m\n")
        if modules:
            tree = self.root / "tree/lib/modules" / release
            shutil.rmtree(self.root / "tree", ignore_errors=True)
            (tree / "kernel").mkdir(parents=True)
            (tree / "kernel/a.ko").write_text(f"module of {key}")
            (tree / "modules.builtin").write_text("".join(f"kernel/{name}.ko\n" for name in self.built_in))
            with tarfile.open(folder / "modules.tar.gz", "w:gz") as archive:
                archive.add(self.root / "tree/lib", arcname="lib")
        self.sums(folder)
        return folder

    def sums(self, folder: Path) -> None:
        names = [path.name for path in sorted(folder.iterdir())]
        lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
        (folder / "sums").write_text("".join(lines))

    def boot(
        self, method: str = "kexec", key: str = "aa", *, release: str = "6.2.0-test", modules: bool = False,
        cmdline: str = "", more: str = "", watchdog: int = 0,
    ) -> tuple[int, dict[str, str]]:  # fmt: skip
        folder = self.send(key, release, modules)
        return self.run("boot", method, key, release, cmdline, more, str(watchdog), folder=folder)

    def again(self, key: str) -> tuple[int, dict[str, str]]:
        """Boot a kernel that is there, so that its files are not sent."""
        (self.root / "empty").mkdir(exist_ok=True)
        return self.run("boot", "kexec", key, "6.2.0-test", "", "", "0", folder=self.root / "empty")

    def runs(self, key: str) -> None:
        """From now on the kernel under test runs."""
        self.write("proc/cmdline", f"root=/dev/x panic=10 perfbisect.kernel={key}\n")
        self.write("proc/sys/kernel/osrelease", "6.2.0-test\n")

    def called(self, wanted: str) -> list[str]:
        """Return the calls of a tool."""
        return [line for line in self.calls.read_text().splitlines() if line.startswith(wanted)]

    @property
    def booted(self) -> str:
        """What the machine was last told to do a second later, in the background; '' if nothing."""
        deadline = time.monotonic() + 60
        while not self.called("nohup") and time.monotonic() < deadline:
            time.sleep(0.02)
        return next((call.removeprefix("nohup setsid sh -c ") for call in reversed(self.called("nohup"))), "")


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    fake = FakeMachine(tmp_path / "machine")
    fake.tool("kexec")
    return fake


def with_grub(machine: FakeMachine, folder: str = "grub", number: str = "") -> None:
    machine.write(f"boot/{folder}/grub.cfg", "next_entry\nsource custom.cfg\n")
    machine.tool(f"grub{number}-probe", does="case $1 in *fs) echo ext2 ;; *uuid) echo 1234 ;; esac")
    machine.tool(f"grub{number}-mkrelpath", does="echo /boot/${1##*/}")
    machine.tool(f"grub{number}-reboot")


def test_a_machine_says_what_it_runs_and_notes_its_own_kernel_before_the_first_boot(
    machine: FakeMachine,
) -> None:
    code, said = machine.run("state")
    assert (code, said["release"], said["ours"], said["firmware"]) == (0, "6.1.0-own", "", "bios")
    assert said["build_id"] == bytes(range(20)).hex()
    assert said["default_release"] == said["left"] == ""
    assert machine.boot()[1]["ran"] == ""
    machine.runs("aa")
    _, said = machine.run("state")
    assert (said["release"], said["ours"]) == ("6.2.0-test", "aa")
    assert (said["default_release"], said["default_boot_id"]) == ("6.1.0-own", "boot-1")
    assert machine.boot(key="bb")[1]["ran"] == "aa", "it may hang at its shutdown"
    assert machine.run("state")[1]["default_release"] == "6.1.0-own", (
        "a kernel under test is never the default"
    )


def test_kexec_loads_the_kernel_with_the_default_kernels_command_line(machine: FakeMachine) -> None:
    code, said = machine.boot(more="nokaslr")
    line = "root=/dev/nvme0n1p1 ro console=ttyS0 panic=10 oops=panic perfbisect.kernel=aa nokaslr"
    assert (code, said["booting"], said["boot_id"]) == (0, line, "boot-1")
    (call,) = machine.called("kexec --load")
    assert call.endswith(f"kernels/aa/image --command-line={line}")
    assert machine.booted == "sleep 1; systemctl kexec || { sync; kexec --exec; }"
    machine.runs("aa")
    assert machine.boot(key="bb")[1]["booting"] == line.replace("=aa nokaslr", "=bb"), (
        "not that of the kernel before"
    )
    assert machine.boot(cmdline="root=/dev/sda1 quiet")[1]["booting"].startswith(
        "root=/dev/sda1 quiet panic=10 "
    )


def test_the_memory_for_dumps_of_crashes_is_the_machines_own_kernels(machine: FakeMachine) -> None:
    machine.write("proc/cmdline", "crashkernel=1G-4G:192M,4G-:256M root=/dev/sda1 crashkernel=64M,low ro\n")
    for said in (machine.boot()[1], machine.boot(key="bb", cmdline="root=/dev/sda1 ro")[1]):
        assert said["base_cmdline"] == "root=/dev/sda1 ro"
        assert said["booting"].startswith("root=/dev/sda1 ro panic=10 oops=panic ")
    asked = machine.boot(cmdline="root=/dev/sda1 crashkernel=1G")[1]
    assert "crashkernel=1G" in asked["booting"], "the lab's owner may want it"


def test_a_kernel_that_is_there_whole_is_not_sent_again(machine: FakeMachine) -> None:
    assert machine.run("ask", "aa", "10")[0] == 1
    machine.boot()
    assert machine.run("ask", "aa", "10")[0] == 0
    assert machine.again("aa")[0] == 0
    machine.write("var/lib/perfbisect/kernels/aa/image", "cut")
    assert machine.run("ask", "aa", "10")[0] == 1


def test_only_the_last_kernels_stay_and_their_modules_go_with_them(machine: FakeMachine) -> None:
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    for number, key in enumerate(("aa", "bb", "cc", "dd")):
        assert machine.run("ask", key, "10")[0] == 1
        assert machine.boot(key=key, release=f"6.{number}", modules=True)[0] == 0
    kept = sorted(path.name for path in (machine.root / "var/lib/perfbisect/kernels").iterdir())
    assert kept == ["bb", "cc", "dd"]
    assert sorted(path.name for path in (machine.root / "lib/modules").iterdir()) == ["6.1", "6.2", "6.3"]
    code, said = machine.run("ask", "ee", str(1 << 50))
    assert (code, "MiB free" in said["refused"]) == (65, True)
    assert not list((machine.root / "lib/modules").iterdir()), "room is made before anything is refused"


def test_modules_travel_and_the_machines_own_tool_makes_the_initramfs(machine: FakeMachine) -> None:
    machine.tool(
        "mkinitramfs", does=f"cp {machine.root}/boot/config-$3 {machine.root}/read; echo initramfs >$2"
    )
    machine.write("lib/modules/6.1.0-own/kernel/own.ko", "own")
    assert machine.boot(modules=True)[0] == 0
    assert machine.read("lib/modules/6.2.0-test/kernel/a.ko") == "module of aa"
    assert "CONFIG_I6300ESB" in machine.read("read"), "it says what the kernel can unpack"
    assert not machine.has("boot/config-6.2.0-test")
    assert "--initrd=" in machine.called("kexec --load")[-1]
    machine.again("aa")
    assert len(machine.called("mkinitramfs")) == 1, "once for a kernel"
    assert machine.boot(key="bb", modules=True)[0] == 0
    assert machine.read("lib/modules/6.2.0-test/kernel/a.ko") == "module of bb", "two kernels of one release"


@pytest.mark.parametrize(
    ("built_in", "device", "driver", "made"),
    [
        (("fs/ext4/ext4", "nvme/host/nvme"), "devices/pci/0:3/nvme/nvme0n1p1", "nvme", 0),
        (("fs/ext4/ext4", "scsi/sd-mod"), "devices/pci/0:3/sda/sda1", "sd", 0),
        (("nvme/host/nvme",), "devices/pci/0:3/nvme/nvme0n1p1", "nvme", 1),
        (("fs/ext4/ext4",), "devices/pci/0:3/nvme/nvme0n1p1", "nvme", 1),
        (("fs/ext4/ext4", "nvme/host/nvme"), "devices/virtual/block/dm-0", "nvme", 1),
    ],
    ids=["all built in", "named otherwise", "file system is a module", "driver is a module", "LVM"],
)
def test_a_kernel_with_all_drivers_of_the_root_built_in_gets_no_initramfs(
    machine: FakeMachine, built_in: tuple[str, ...], device: str, driver: str, made: int
) -> None:
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    machine.built_in = built_in
    machine.root_device(device, "devices/pci/0:3", driver)
    assert machine.boot(modules=True)[0] == 0
    assert len(machine.called("mkinitramfs")) == made
    assert len([call for call in machine.called("kexec --load") if "--initrd" in call]) == made
    assert machine.has("lib/modules/6.2.0-test/kernel/a.ko"), "the rest of its modules is loaded later"


def test_modules_of_the_machine_itself_are_never_replaced(machine: FakeMachine) -> None:
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    own = machine.write("lib/modules/6.2.0-test/kernel/a.ko", "another")
    code, said = machine.boot(modules=True)
    assert (code, own.read_text()) == (65, "another")
    assert "the machine's own" in said["refused"] and "LOCALVERSION" in said["cure"]
    own.write_text("module of aa")
    assert machine.boot(modules=True)[0] == 0, "it is the same package"
    machine.run("forget")
    assert own.read_text() == "module of aa"


@pytest.mark.parametrize("how", ["gzip", "xz", "zstd --rm -q"])
def test_the_machines_own_modules_are_the_same_package_also_where_they_are_compressed(
    machine: FakeMachine, how: str
) -> None:
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    own = machine.write("lib/modules/6.2.0-test/kernel/a.ko", "module of aa")
    subprocess.run([*how.split(), own], check=True)
    assert machine.boot(modules=True)[0] == 0
    assert [path.name for path in own.parent.iterdir()] != ["a.ko"], "they stay as they are"
    assert [path.name for path in (machine.root / "lib/modules").iterdir()] == ["6.2.0-test"]
    assert machine.boot(key="bb", modules=True)[0] == 65, "other modules are other modules"
    assert [path.name for path in (machine.root / "lib/modules").iterdir()] == ["6.2.0-test"]
    machine.write("lib/modules/6.2.0-test/kernel/b.ko.xz", "no archive")
    assert machine.boot(modules=True)[0] == 65


@pytest.mark.parametrize(
    ("folder", "number"), [("grub", ""), ("grub2", "2")], ids=["Debian", "Fedora and SUSE"]
)
def test_grub_boots_an_entry_once_and_the_users_own_entries_stay(
    machine: FakeMachine, folder: str, number: str
) -> None:
    with_grub(machine, folder, number)
    machine.write(f"boot/{folder}/custom.cfg", "menuentry 'mine' {}\n")
    for key in ("aa", "bb"):
        assert machine.boot("grub", key=key)[0] == 0
    menu = machine.read(f"boot/{folder}/custom.cfg")
    assert menu.startswith("menuentry 'mine' {}\n") and menu.count("menuentry 'perfbisect'") == 1
    assert "menuentry 'perfbisect' --unrestricted --id perfbisect {\n" in menu, "GRUB may ask for a password"
    assert "    linux /boot/vmlinuz-perfbisect root=/dev/nvme0n1p1" in menu and "kernel=bb" in menu
    assert machine.read("boot/vmlinuz-perfbisect") == "kernel bb"
    assert machine.called(f"grub{number}-reboot") == [f"grub{number}-reboot perfbisect"] * 2
    assert machine.booted == "sleep 1; systemctl reboot || reboot"
    assert f"/boot/{folder}/custom.cfg" in machine.run("state")[1]["left"]
    assert machine.run("forget")[0] == 0
    assert machine.read(f"boot/{folder}/custom.cfg") == "menuentry 'mine' {}\n"
    assert machine.run("state")[1]["left"] == ""


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("memmap=4G$4G quiet", r"memmap=4G\$4G quiet"),
        ("a={x};y&z|w <v> #u", r"a=\{x\}\;y\&z\|w \<v\> \#u"),
        ('dyndbg="file a;b $c" d$e', r'dyndbg="file a;b \$c" d\$e'),
        (r"what='x' C:\y", r"what=\'x\' C:\\y"),
        (r'"p\q"', r'"p\\q"'),
    ],
)
def test_grub_takes_each_character_of_the_command_line_as_it_is(
    machine: FakeMachine, said: str, written: str
) -> None:
    with_grub(machine)
    assert machine.boot("grub", cmdline=f"root=/dev/sda1 {said}")[0] == 0
    [line] = [at for at in machine.read("boot/grub/custom.cfg").splitlines() if at.startswith("    linux ")]
    assert f" root=/dev/sda1 {written} " in f"{line} "


def test_systemd_boot_gets_an_entry_for_one_boot(machine: FakeMachine) -> None:
    (machine.root / "sys/firmware/efi").mkdir(parents=True)
    machine.tool("bootctl", does=f"case $1 in -x) echo {machine.root}/efi ;; esac")
    (machine.root / "efi").mkdir()
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    assert machine.boot("systemd-boot", modules=True)[0] == 0
    entry = machine.read("efi/loader/entries/a-perfbisect.conf")
    assert "linux /vmlinuz-perfbisect\ninitrd /initrd-perfbisect\noptions root=/dev/nvme0n1p1" in entry
    assert machine.called("bootctl set-oneshot") == ["bootctl set-oneshot a-perfbisect.conf"]
    machine.run("up")
    assert machine.called("bootctl set-oneshot ")[-1] == "bootctl set-oneshot "
    assert machine.run("forget")[0] == 0
    assert [path.name for path in (machine.root / "efi").rglob("*") if path.is_file()] == []


def test_an_entry_that_systemd_boot_would_boot_by_default_is_taken_away_again(machine: FakeMachine) -> None:
    (machine.root / "sys/firmware/efi").mkdir(parents=True)
    (machine.root / "efi").mkdir()
    shown = "printf '        title: %s\\n' 'perfbisect (default) (not reported/new)' arch"
    machine.tool("bootctl", does=f"case $1 in -x) echo {machine.root}/efi ;; --no-pager) {shown} ;; esac")
    code, said = machine.boot("systemd-boot")
    assert (code, "default" in said["refused"]) == (65, True)
    assert f"{machine.root}/efi/loader/loader.conf" in said["cure"]
    assert list((machine.root / "efi/loader/entries").iterdir()) == []
    assert machine.called("bootctl set-oneshot") == machine.called("nohup") == []


def _no_kexec(machine: FakeMachine) -> None:
    (machine.tools / "kexec").unlink()


def _locked(machine: FakeMachine) -> None:
    machine.tool("kexec", "Operation not permitted", 255)
    machine.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")


def _refusing(machine: FakeMachine) -> None:
    machine.tool("kexec", "Bad magic", 1)


def _lvm(machine: FakeMachine) -> None:
    with_grub(machine)
    machine.tool("grub-probe", does="case $1 in *abstraction) echo lvm ;; esac")


def _secure(machine: FakeMachine) -> None:
    with_grub(machine)
    machine.write("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", b"\6\0\0\0\1")


def _no_custom(machine: FakeMachine) -> None:
    with_grub(machine)
    machine.write("boot/grub/grub.cfg", "next_entry\n")


def _no_one_shot(machine: FakeMachine) -> None:
    with_grub(machine)
    machine.write("boot/grub/grub.cfg", "source custom.cfg\n")


def _no_grub_reboot(machine: FakeMachine) -> None:
    with_grub(machine)
    (machine.tools / "grub-reboot").unlink()


def _disabled(machine: FakeMachine) -> None:
    machine.write("proc/sys/kernel/kexec_load_disabled", "1\n")


def _uuid(machine: FakeMachine) -> None:
    machine.write("proc/cmdline", "root=UUID=12-34 ro\n")
    machine.tool("blkid", code=2)


def _nothing(_: FakeMachine) -> None:
    pass


@pytest.mark.parametrize(
    ("method", "lacks", "words"),
    [
        ("kexec", _no_kexec, "kexec is not on the machine"),
        ("kexec", _disabled, "kexec_load_disabled=1"),
        ("kexec", _locked, "locked down"),
        ("kexec", _refusing, "kexec cannot load the kernel: Bad magic"),
        ("kexec", _uuid, "UUID=12-34, which a kernel without initramfs"),
        ("grub", _nothing, "no grub.cfg"),
        ("grub", _no_custom, "does not read custom.cfg"),
        ("grub", _no_one_shot, "knows no one-shot entry"),
        ("grub", _no_grub_reboot, "neither grub-reboot nor grub2-reboot"),
        ("grub", _lvm, "GRUB cannot forget a one-shot choice on lvm"),
        ("grub", _secure, "Secure Boot is on"),
        ("systemd-boot", _nothing, "started by a BIOS"),
        ("teleport", _nothing, "no boot method 'teleport'"),
    ],
)  # fmt: skip
def test_what_a_machine_lacks_is_told_apart_and_nothing_boots(
    machine: FakeMachine, method: str, lacks: object, words: str
) -> None:
    assert callable(lacks)
    lacks(machine)
    code, said = machine.boot(method)
    assert code == 65, said
    assert words in said["refused"] and said["cure"]
    assert not machine.called("nohup")
    error = refusal("box", "".join(f"{name}={value}\n" for name, value in said.items()))
    assert error is not None and error.message.startswith("the testbed 'box' cannot boot the kernel: ")
    of_kernel = lacks in (_refusing, _uuid)
    assert isinstance(error, KernelRefused if of_kernel else InfrastructureError)
    assert said["cure"] in (error.details if of_kernel else error.cure)


EFI_MENU = "### BEGIN /etc/grub.d/00_header ###\nnext_entry\nblscfg\nsource custom.cfg\n"
"""As grub2-mkconfig writes it: entries of the Boot Loader Specification are read by 'blscfg'."""

STUB = "search --fs-uuid --set=dev 1234\nset prefix=($dev)/grub2\nconfigfile $prefix/grub.cfg\n"


def with_grub_on_efi(machine: FakeMachine, menu: str = EFI_MENU, vendor: str = "redhat") -> Path:
    """Have it as RHEL 8's packages leave it on UEFI; return the file of the choice there."""
    with_grub(machine, "grub2", "2")
    (machine.root / "boot/grub2/grub.cfg").unlink()
    (machine.root / "sys/firmware/efi/efivars").mkdir(parents=True)
    machine.write(f"boot/efi/EFI/{vendor}/grub.cfg", menu)
    chosen = machine.write(f"boot/efi/EFI/{vendor}/grubenv", "kernelopts=root=/dev/x\n")
    (machine.root / "boot/grub2/grubenv").symlink_to(f"../efi/EFI/{vendor}/grubenv")
    env = machine.root / "boot/grub2/grubenv"
    machine.tool("grub2-reboot", does=f'echo "next_entry=$1" >>{env}')
    unset = 'kept=$(grep -v "^$3=" "$1"); echo "$kept" >"$1"'
    machine.tool("grub2-editenv", does=f'case $2 in list) cat "$1" ;; unset) {unset} ;; esac')
    return chosen


def started_by(machine: FakeMachine, path: str) -> None:
    """Have the firmware say which boot loader it started: of entry 001A of several."""
    guid, variables = "8be4df61-93ca-11d2-aa0d-00e098032b8c", "sys/firmware/efi/efivars"
    machine.write(f"{variables}/BootCurrent-{guid}", b"\6\0\0\0\x1a\0")
    name, device = "Linux\0".encode("utf-16-le"), b"\4\1\x2a\0\1\0\n\xff\x7f\4\4\x34\0"
    where = path.encode("utf-16-le") + b"\0\0\x7f\xff\4\0"
    machine.write(f"{variables}/Boot001A-{guid}", b"\7\0\0\0\1\0\0\0\x62\0" + name + device + where)


@pytest.mark.parametrize(
    ("vendor", "started"),
    [("redhat", ""), ("redhat", r"\EFI\BOOT\BOOTX64.EFI"), ("openEuler", r"\EFI\OPENEULER\shimx64.efi")],
)
def test_a_menu_on_the_efi_partition_boots_an_entry_once(
    machine: FakeMachine, vendor: str, started: str
) -> None:
    chosen = with_grub_on_efi(machine, vendor=vendor)
    machine.write("boot/grub2/grub.cfg", "next_entry\nsource custom.cfg\n")  # nobody reads it
    if started:
        started_by(machine, started)
    own = machine.write(f"boot/efi/EFI/{vendor}/custom.cfg", "# mine\n")
    assert machine.boot("grub", more="panic=10")[0] == 0
    entry = own.read_text()
    assert "--id perfbisect {" in entry and "search --no-floppy --fs-uuid --set=root 1234" in entry
    assert "linux /boot/vmlinuz-perfbisect root=" in entry and machine.has("boot/vmlinuz-perfbisect")
    assert chosen.read_text().splitlines() == ["kernelopts=root=/dev/x", "next_entry=perfbisect"]
    assert not machine.has("boot/grub2/custom.cfg")
    assert machine.run("state")[1]["left"].split()[-1] == f"/boot/efi/EFI/{vendor}/custom.cfg"
    assert machine.run("up")[0] == 0
    assert chosen.read_text() == "kernelopts=root=/dev/x\n", "it would boot once more"
    assert machine.run("forget")[0] == 0
    assert own.read_text() == "# mine\n" and (machine.root / "boot/grub2/grubenv").is_symlink()


def test_the_entry_has_the_commands_of_the_menu(machine: FakeMachine) -> None:
    """GRUB of RHEL 7 on UEFI has no 'linux'."""
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    with_grub_on_efi(machine, EFI_MENU + "menuentry 'own' {\n\tlinuxefi /vmlinuz\n}\n", "centos")
    assert machine.boot("grub", modules=True)[0] == 0
    entry = machine.read("boot/efi/EFI/centos/custom.cfg")
    assert "    linuxefi /boot/vmlinuz-perfbisect" in entry
    assert "    initrdefi /boot/initrd-perfbisect" in entry


@pytest.mark.parametrize("firmware", ["uefi", "bios"])
def test_a_stub_on_the_efi_partition_is_no_menu(machine: FakeMachine, firmware: str) -> None:
    chosen = with_grub_on_efi(machine, STUB if firmware == "uefi" else EFI_MENU)
    if firmware == "bios":
        (machine.root / "sys/firmware/efi/efivars").rmdir()
        (machine.root / "sys/firmware/efi").rmdir()
    machine.write("boot/grub2/grub.cfg", EFI_MENU)
    code, said = machine.boot("grub")
    assert code == 0, said
    assert machine.has("boot/grub2/custom.cfg")
    elsewhere = (
        "case $1 in *fs) echo ext2 ;; *uuid) case $2 in */efi/*) echo AB ;; *) echo 1234 ;; esac ;; esac"
    )
    machine.tool("grub2-probe", does=elsewhere)
    code, said = machine.boot("grub")
    assert code == 65
    assert "/boot/grub2/grubenv is a link to /boot/efi/EFI/redhat/grubenv, on another file" in said["refused"]
    assert "cp --remove-destination" in said["cure"]
    own = machine.root / "boot/grub2/grubenv"
    own.unlink()
    own.write_text(chosen.read_text())
    assert machine.boot("grub")[0] == 0


def _unlinked(machine: FakeMachine) -> None:
    with_grub_on_efi(machine)
    (machine.root / "boot/grub2/grubenv").unlink()


def _started_elsewhere(machine: FakeMachine) -> None:
    with_grub_on_efi(machine)
    started_by(machine, r"\EFI\rocky\shimx64.efi")


def _chosen_elsewhere(machine: FakeMachine) -> None:
    with_grub_on_efi(machine)
    machine.tool("grub2-reboot")


@pytest.mark.parametrize(
    ("lacks", "words"),
    [
        (_unlinked, "GRUB's menu is /boot/efi/EFI/redhat/grub.cfg, and /boot/grub2/grubenv is no link"),
        (_started_elsewhere, "started the boot loader of EFI/rocky, and /boot/grub2/grubenv is a link"),
        (_chosen_elsewhere, "does not write into /boot/efi/EFI/redhat/grubenv, which this menu reads"),
    ],
)  # fmt: skip
def test_a_menu_on_the_efi_partition_that_would_not_obey_is_told_apart(
    machine: FakeMachine, lacks: object, words: str
) -> None:
    assert callable(lacks)
    lacks(machine)
    code, said = machine.boot("grub")
    assert code == 65, said
    assert words in said["refused"] and "perfbisect_boot_method: kexec" in said["cure"]
    assert not machine.called("nohup") and "doubt" not in said


OBEYS = "load_env; next_entry; source custom.cfg"


def _prepare_menu(machine: FakeMachine, what: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.parents[2] / "prepare" / "files" / "grub_menu.sh"
    environment = {"PATH": str(machine.tools), "PB_ROOT": str(machine.root)}
    command = [shutil.which("dash") or "/bin/sh", str(script), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("folder", "prefix"), [("grub", "grub"), ("grub2", "grub2")])
def test_a_menu_that_knows_no_one_shot_entry_is_written_anew_and_no_other(
    machine: FakeMachine, folder: str, prefix: str
) -> None:
    machine.tool(f"{prefix}-reboot")
    machine.tool(f"{prefix}-mkconfig", does=f'echo "{OBEYS}" >"$2"')
    machine.write(f"boot/{folder}/grub.cfg", "by hand")
    default = machine.write("etc/default/grub", 'GRUB_DEFAULT="1>2"\n')
    assert "is written anew" in _prepare_menu(machine, "check").stdout
    assert machine.read(f"boot/{folder}/grub.cfg") == "by hand" and not machine.called(f"{prefix}-mkconfig")
    assert "is written anew" in _prepare_menu(machine, "write").stdout
    assert machine.read(f"boot/{folder}/grub.cfg").strip() == OBEYS
    assert "already" in _prepare_menu(machine, "write").stdout
    assert len(machine.called(f"{prefix}-mkconfig")) == 1
    assert "1>2" in default.read_text(), "its default kernel is its owner's choice"


def test_a_menu_on_the_efi_partition_is_written_anew_where_it_is(machine: FakeMachine) -> None:
    with_grub_on_efi(machine, EFI_MENU.replace("next_entry", ""))
    machine.write("boot/grub2/grub.cfg", OBEYS)  # nobody reads it
    machine.tool("grub2-mkconfig", does=f'echo "{OBEYS}" >"$2"')
    assert "EFI/redhat/grub.cfg is written anew" in _prepare_menu(machine, "write").stdout
    assert machine.read("boot/efi/EFI/redhat/grub.cfg").strip() == OBEYS
    machine.write("boot/efi/EFI/redhat/grub.cfg", STUB)
    assert "boot/grub2/grub.cfg obeys" in _prepare_menu(machine, "check").stdout


def test_a_menu_that_cannot_be_made_to_obey_is_told(machine: FakeMachine) -> None:
    done = _prepare_menu(machine, "write")
    assert done.returncode == 1 and "neither grub-reboot nor grub2-reboot" in done.stderr
    machine.tool("grub-reboot")
    done = _prepare_menu(machine, "write")
    assert done.returncode == 1 and "there is no grub.cfg" in done.stderr
    machine.write("boot/grub/grub.cfg", "by hand")
    machine.tool("grub-mkconfig")
    done = _prepare_menu(machine, "write")
    assert done.returncode == 1 and "still has no next_entry" in done.stderr


def test_without_tools_for_an_initramfs_the_machine_is_at_fault_and_where_they_fail_another_kernel_decides(
    machine: FakeMachine,
) -> None:
    code, said = machine.boot(modules=True)
    assert (code, "no tool that makes an initramfs" in said["refused"], "doubt" in said) == (65, True, False)
    machine.tool("dracut", "no space", 1)
    said = machine.boot(modules=True)[1]
    assert "was not made: no space" in said["refused"]
    assert said["doubt"] == "kernel"
    machine.tool("dracut", does='for last; do :; done; echo initramfs >"$last"')
    assert machine.boot(modules=True)[0] == 0


def test_an_initramfs_of_dracut_gives_the_machine_back_where_it_finds_no_root(machine: FakeMachine) -> None:
    """It opened a shell on the console, for ever; that of initramfs-tools reads panic=."""
    made = 'for last; do :; done; echo initramfs >"$last"'
    machine.tool("dracut", does=made)
    line = machine.boot(modules=True, more="nokaslr")[1]["booting"]
    assert line.endswith(" panic=10 oops=panic rd.shell=0 rd.emergency=reboot perfbisect.kernel=aa nokaslr")
    assert "rd." not in machine.boot(key="bb")[1]["booting"], "it has no initramfs"
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    assert "rd." not in machine.boot(key="cc", release="6.3", modules=True)[1]["booting"]


def test_after_a_refusal_the_next_kernel_takes_each_step_anew(machine: FakeMachine) -> None:
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    assert machine.boot(key="aa", release="6.1", modules=True)[0] == 0
    assert machine.boot(key="bb", release="6.2", modules=True)[0] == 0
    machine.runs("bb")
    machine.tool("mkinitramfs", "no space", 1)
    assert machine.boot(key="cc", release="6.3", modules=True)[1]["doubt"] == "kernel"
    assert not list((machine.root / "var/lib/perfbisect/kernels").iterdir())
    assert [path.name for path in (machine.root / "lib/modules").iterdir()] == ["6.2"], "it runs"
    for key, release in (("aa", "6.1"), ("bb", "6.2")):  # else the machine's fault would be held against 'cc'
        assert machine.boot(key=key, release=release, modules=True)[1]["doubt"] == "kernel"


def test_a_kernel_too_large_for_the_machine_may_be_at_fault(machine: FakeMachine) -> None:
    machine.boot(key="aa")
    machine.runs("aa")
    said = machine.run("ask", "bb", str(1 << 50))[1]
    assert (said["doubt"], "MiB free" in said["refused"]) == ("kernel", True)
    assert machine.run("ask", "aa", str(1 << 50))[0] == 65, "the one that runs needs its room anew, too"
    with_grub(machine)
    machine.tool("cp", code=1)
    said = machine.boot("grub", key="bb")[1]
    assert (said["doubt"], "no room for the kernel" in said["refused"]) == ("kernel", True)


@pytest.mark.parametrize("wrong", ["archive", "release", "own"])
def test_modules_that_cannot_be_used_may_be_the_kernels_fault(machine: FakeMachine, wrong: str) -> None:
    folder = machine.send(modules=True)
    if wrong == "archive":
        (folder / "modules.tar.gz").write_text("no archive")
        (folder / "sums").unlink()
        machine.sums(folder)
    if wrong == "own":
        machine.write("lib/modules/6.2.0-test/kernel/a.ko", "another")
    release = "6.9" if wrong == "release" else "6.2.0-test"
    code, said = machine.run("boot", "kexec", "aa", release, "", "", "0", folder=folder)
    assert (code, said.get("doubt")) == (65, "kernel"), said
    assert not machine.has("lib/modules/.perfbisect-new"), "it may have filled the disk"


def test_a_root_by_uuid_gets_a_name_that_the_kernel_itself_knows(machine: FakeMachine) -> None:
    _uuid(machine)
    machine.tool("blkid", does='case "$*" in *PARTUUID*) echo beef-01 ;; *) echo /dev/sda1 ;; esac')
    assert machine.boot()[1]["booting"].startswith("root=PARTUUID=beef-01 ro panic=10")


def test_files_that_did_not_arrive_whole_are_refused(machine: FakeMachine) -> None:
    folder = machine.send()
    (folder / "image").write_text("half")
    code, said = machine.run("boot", "kexec", "aa", "6.2", "", "", "0", folder=folder)
    assert (code, said["refused"]) == (65, "the kernel's files did not arrive whole")


def test_what_is_the_machines_own_in_each_boot_is_told(machine: FakeMachine) -> None:
    said = machine.boot(more="nokaslr")[1]
    assert (said["default_release"], said["default_build_id"]) == ("6.1.0-own", bytes(range(20)).hex())
    assert said["base_cmdline"] == "root=/dev/nvme0n1p1 ro console=ttyS0", "without what a workload adds"
    machine.runs("aa")
    again = machine.boot(key="bb")[1]
    assert (again["default_release"], again["base_cmdline"]) == ("6.1.0-own", said["base_cmdline"])
    assert machine.boot(cmdline="root=/dev/sda1")[1]["base_cmdline"] == "root=/dev/sda1"


def test_records_of_crashes_are_printed_and_removed_and_older_ones_stay(machine: FakeMachine) -> None:
    machine.write("sys/fs/pstore/dmesg-efi-1", "old")
    machine.write("var/lib/systemd/pstore/170/001/dmesg-efi-0", "older")
    known = machine.boot()[1]["crashes"].split()
    assert known == ["/var/lib/systemd/pstore/170/001/dmesg-efi-0", "/sys/fs/pstore/dmesg-efi-1"]
    machine.write("sys/fs/pstore/dmesg-efi-21", "Part1\n")
    machine.write("sys/fs/pstore/dmesg-efi-22", "Part2\n")
    machine.write("sys/fs/pstore/console-ramoops-0", "what every kernel prints")
    machine.write("var/lib/systemd/pstore/180/dmesg-efi-30", "moved\n")
    assert machine.printed("crashes", *known) == "moved\nPart2\nPart1\n"
    left = sorted(path.name for path in (machine.root / "sys/fs/pstore").iterdir())
    assert left == ["console-ramoops-0", "dmesg-efi-1"], "only what was read is gone"
    assert machine.printed("crashes", *known) == ""


@pytest.mark.parametrize("size", [1024, 70_000])
def test_of_a_crash_in_many_records_the_end_is_printed_and_all_are_removed(
    machine: FakeMachine, size: int
) -> None:
    for part in range(1, 21):  # pstore counts parts from the end of the log backwards
        machine.write(f"sys/fs/pstore/dmesg-efi-17000000{part:02}001", f"{'x' * size}\nPart{part}\n")
    text = machine.printed("crashes")
    parts = [line for line in text.splitlines() if line.startswith("Part")]
    assert parts == [f"Part{part}" for part in range(20, 0, -1)][-len(parts) :]
    assert len(parts) == (20 if size == 1024 else 8)  # the oldest in part
    assert len(text) <= 8 * 65536
    assert not list((machine.root / "sys/fs/pstore").iterdir())


def with_watchdog(machine: FakeMachine, stop: int = 0, nowayout: int = 0, timeout: int = 300) -> Path:
    (machine.root / "modules/i6300esb").mkdir(parents=True, exist_ok=True)
    dog = machine.root / "sys/class/watchdog/watchdog0"
    (dog / "device/driver").mkdir(parents=True, exist_ok=True)
    (dog / "device/driver/module").unlink(missing_ok=True)
    (dog / "device/driver/module").symlink_to(machine.root / "modules/i6300esb")
    machine.write("sys/class/watchdog/watchdog0/timeout", f"{timeout}\n")
    machine.write("sys/class/watchdog/watchdog0/nowayout", f"{nowayout}\n")
    machine.write("sys/module/watchdog/parameters/stop_on_reboot", f"{stop}\n")
    machine.tool("wdctl")
    return machine.write("dev/watchdog", "")


def test_a_watchdog_whose_driver_names_no_device_is_known_by_its_own_name(machine: FakeMachine) -> None:
    with_watchdog(machine)
    shutil.rmtree(machine.root / "sys/class/watchdog/watchdog0/device")
    machine.write("sys/class/watchdog/watchdog0/identity", "i6300ESB timer\n")  # as Linux 6.1 in QEMU has it
    assert machine.boot(watchdog=300)[1]["watchdog"] == "300 s by i6300esb"
    machine.write("sys/class/watchdog/watchdog0/identity", "Software Watchdog\n")
    assert "not known to survive" in machine.boot(watchdog=300)[1]["watchdog"]


def test_a_watchdog_is_armed_for_the_boot_only_where_it_survives_and_can_be_disarmed(
    machine: FakeMachine,
) -> None:
    assert machine.boot(watchdog=300)[1]["watchdog"] == "none"
    device = with_watchdog(machine)
    assert machine.boot(watchdog=300)[1]["watchdog"] == "300 s by i6300esb"
    assert device.read_text() == "perfbisect\n", "no letter V: it goes on when this is closed"
    assert machine.run("up")[0] == 0
    assert device.read_text() == "V"
    device.write_text("")
    machine.run("up")
    assert device.read_text() == "", "a watchdog of somebody else is left alone"
    for changed, words in (
        ({"stop": -1}, "off: i6300esb stops it when the machine goes down"),
        ({"nowayout": 1}, "off: nowayout"),
        ({"timeout": 60}, "off: i6300esb takes no 300 s"),
    ):
        with_watchdog(machine, **changed)
        assert machine.boot(watchdog=300)[1]["watchdog"].startswith(words)
        assert device.read_text() == ""


def test_no_watchdog_resets_a_machine_that_boots_nothing_for_us(machine: FakeMachine) -> None:
    device = with_watchdog(machine)
    machine.tool("kexec", says="no", code=1)
    assert machine.boot(watchdog=300)[0] == 65
    assert device.read_text() == "", "it is armed after all that may refuse"
    assert machine.boot("pxe", watchdog=300)[1]["watchdog"] == "300 s by i6300esb"
    assert machine.run("restart", "armed")[0] == 0
    assert device.read_text() == "perfbisect\n"
    assert machine.run("restart")[0] == 0
    assert device.read_text() == "V"
    machine.boot("pxe", watchdog=300)
    assert machine.boot("none")[0] == 65
    assert device.read_text() == "V", "that of a boot before is not left armed"


def test_the_way_back_goes_through_the_firmware(machine: FakeMachine) -> None:
    with_grub(machine)
    machine.write("boot/grub/grubenv", "")
    machine.tool("grub-editenv", does="case $2 in list) echo next_entry=perfbisect ;; esac")
    machine.write("etc/init.d/kexec-load", "")
    machine.runs("aa")
    assert machine.run("restart")[0] == 0
    assert machine.booted == "sleep 1; systemctl reboot || reboot"
    assert machine.called("kexec") == ["kexec --unload"]
    assert machine.has("no-kexec-reboot")
    assert machine.called("grub-editenv")[-1].endswith("unset next_entry")


def test_nothing_is_taken_away_while_a_kernel_under_test_runs(machine: FakeMachine) -> None:
    machine.tool("mkinitramfs", does="echo initramfs >$2")
    machine.boot(modules=True)
    own = machine.write("lib/modules/6.1.0-own/kernel/own.ko", "own")
    machine.runs("aa")
    code, said = machine.run("forget")
    assert (code, said["refused"]) == (65, "a kernel under test still runs")
    machine.write("proc/cmdline", DEFAULT_CMDLINE)
    assert machine.run("forget")[0] == 0
    assert machine.run("state")[1]["left"] == ""
    assert (
        own.exists() and not machine.has("var/lib/perfbisect") and not machine.has("lib/modules/6.2.0-test")
    )


def test_answers_are_read_line_by_line() -> None:
    assert parse_answer("a=b=c\nnoise\n") == {"a": "b=c"}
    assert refusal("box", "boot_id=1\n") is None


class There:
    """A login on the machine, where the script ends as a test says."""

    ran: ClassVar[list[list[str]]] = []
    code, output = 0, ""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> There:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, command: list[str], **_: object) -> SimpleNamespace:
        self.ran.append(command[4:])
        return SimpleNamespace(code=self.code, output=self.output)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> type[There]:
    monkeypatch.setattr(There, "ran", [])
    monkeypatch.setattr(boot_script, "SSH", There)
    return There


HOST = SSHHost("192.0.2.1", 22, "root", Path("key"), Path("known_hosts"))


def test_what_the_script_is_asked_to_do(there: type[There]) -> None:
    """A network boot keeps its watchdog; a record of before the boot stays where it is."""
    boot_script.restart_default(HOST)
    boot_script.restart_served(HOST)
    boot_script.end_request(HOST)
    boot_script.crash_records(HOST, ["dmesg-1", "dmesg-2"])
    boot_script.forget(HOST)
    assert there.ran == [
        ["restart"],
        ["restart", "armed"],
        ["up"],
        ["crashes", "dmesg-1", "dmesg-2"],
        ["forget"],
    ]


def test_what_a_machine_says_of_itself_and_of_what_is_left_there(
    there: type[There], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "boot_id=7\nrelease=6.1\nbuild_id=cafe\nours=aa\nleft=/boot/pb /etc/pb\ndefault_release=6.0\n"
    monkeypatch.setattr(there, "output", said)
    assert boot_script.running_kernel_of(HOST) == RunningKernel(
        boot_id="7",
        release="6.1",
        build_id="cafe",
        ours="aa",
        left=("/boot/pb", "/etc/pb"),
        default_release="6.0",
    )
    assert there.ran == [["state"]]
    monkeypatch.setattr(there, "output", "boot_id=7\nrelease=6.1\n")
    assert boot_script.running_kernel_of(HOST) == RunningKernel("7", "6.1", "", "")


def test_an_action_that_fails_says_why_in_the_machines_words(
    there: type[There], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(there, "code", 65)
    monkeypatch.setattr(there, "output", "refused=a kernel under test runs\ncure=restart it\n")
    with pytest.raises(InfrastructureError, match="a kernel under test runs") as error:
        boot_script.forget(HOST)
    assert error.value.cure == "restart it"
    monkeypatch.setattr(there, "output", "sh: not found\n")
    with pytest.raises(InfrastructureError, match=r"'forget' failed on root@.* with code 65") as error:
        boot_script.forget(HOST)
    assert error.value.details == "sh: not found\n"

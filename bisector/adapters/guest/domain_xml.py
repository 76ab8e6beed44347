"""The XML of a guest's libvirt domain; pure.

Kernel messages go to a serial console that is kept in a file. A guest with a distribution's user space has a
network, QEMU's user mode with one port of this machine's loopback forwarded to the guest's SSH, so neither a
bridge nor root is needed. One with an initramfs has a second serial port instead, and no disk.

The instruction clock (`-icount shift=0`): one executed instruction is one nanosecond of guest time.
sleep=off: an idle guest does not wait for the host's clock; measured over 3 boots of 6 pipe-tests on a busy
host, runs spread 0.06% against 0.12% (0.7% with the first run of each boot) for sleep=on, and cost two
thirds of the host's time. Its drawback, a racing clock and a busy host CPU while the guest is idle, is
avoided by suspending the guest between runs (libvirt_testbed). `-seed` makes the guest's RDRAND, and with it
every address and hash that the kernel randomises, the same in each boot with that seed. libvirt gives each
domain a random UUID, which the guest's firmware prints: how many instructions that takes depends on its
digits, so every later timer tick fell elsewhere, and by SMBIOS it reaches the kernel's random numbers. All
boots get the same UUID in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from bisector.adapters.system.architectures import X86_64, Machine
from bisector.model.facts import Userspace
from bisector.model.goal import TestbedClock

TICKS_PER_SECOND = 1e9
"""Rate of the agent's ticks under `-icount shift=0`: the processor's counter follows QEMU's virtual
nanoseconds, whatever the kernel in the guest believes."""

SCRATCH_SERIAL = "perfbisect"
"""The serial number of the scratch disk: programs that overwrite disks check for it."""

_BAUD = 115200

_SAME_UUID = "00000000-0000-0000-0000-000000000000"
"""The last one given to QEMU holds, and libvirt's own comes first."""

_FIRST_BOOT = 1_577_836_800
"""2020-01-01, by the guest's clock, at the start of a boot."""

_SECONDS_OF_A_YEAR = 365 * 86_400
"""Kernels before 3.0 know no RDRAND: they draw their random numbers from the time of their boot, and would
not notice the seed alone. So each seed is a time of 2020 for them."""

_ON_DISK = "root=/dev/vda ro rootfstype=ext2 init=/sbin/perfbisect-init net.ifnames=0"
"""ext2 rather than ext4's driver for it: small, and in every kernel."""

_END = "panic=-1 oops=panic random.trust_cpu=on"
"""Panic and oops reboot at once, and QEMU then exits. RDRAND seeds the pool, so boot does not wait for
entropy."""

_OLD_END = "panic=1 oops=panic ramdisk_blocksize=4096"
"""Before 2.6.38 a negative number of seconds means never; one second is the shortest time. A RAM disk before
2.6.25 loses what is on it when its block size changes, as mounting does, from 1024 to a file system's."""

_EMULATED = "no_timer_check tsc_early_khz=1000000 nolapic_timer"
"""Without these a boot spends 4 of 7 CPU seconds in calibration: the kernel waits 0.1 s of guest time for its
timers in a loop of PAUSE and RDTSC, each of which leaves emulated code. The time stamp counter's rate is
known exactly; the tick comes from the HPET, or where ACPI does not name it from the PIT, instead of the
local APIC."""

_NO_ACPI = "reboot=t"
"""A kernel without ACPI asks a keyboard controller, which is not there, for seconds before it restarts so."""

_NO_WATCHDOG = "tsc=reliable"
"""A kernel without ACPI has no second clock to check the counter against; it would not use precise timers."""

_OLD_EMULATED = "nolapic_timer noapictimer"
"""The same for old kernels on x86_64, by the names of 2.6.21 and later and of before. They do need their
check of the timer: it finds the way by which the tick comes."""

_OLD_TIMERS = "<timer name='hpet' present='no'/>"
"""x86_64 before 2.6.21 takes most ticks of QEMU's HPET twice: its clock gains 70%."""


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A distribution's user space. disk: its root, read-only; port: on this host's loopback, to its SSH.

    modules: the initramfs of a kernel that has its drivers as modules.
    """

    disk: Path
    port: int
    modules: Path | None = None


@dataclass(frozen=True, slots=True)
class OnSerial:
    """A user space in an initramfs. fifos: path of a pair (.in, .out) that is its second serial port."""

    archive: Path
    fifos: Path


@dataclass(frozen=True, slots=True)
class Guest:
    """The parameters of a guest. label: user and group QEMU runs as; scratch: the workload's disk.

    label: (uid, gid) for the system daemon, None for a session daemon, which has only one user anyway.
    old: whether the kernel is older than 3.0, and knows neither the machine nor the parameters of today.
    plugin: of QEMU, with its arguments; '' for none. confined_by: security models of this host that would
    keep QEMU from it (AppArmor, SELinux): their profiles name only files that the XML names.
    seed: of what is random in the guest under the instruction clock; with the same one every boot of a kernel
    executes the very same instructions.
    """

    name: str
    kernel: Path
    userspace: OnDisk | OnSerial
    console: Path
    clock: TestbedClock
    kvm: bool
    machine: Machine = X86_64
    memory_mb: int = 512
    cpus: int = 1
    cmdline: str = ""
    label: tuple[int, int] | None = None
    scratch: Path | None = None
    old: bool = False
    plugin: str = ""
    confined_by: tuple[str, ...] = ()
    seed: int = 1


def scratch_device(userspace: Userspace) -> str:
    """Return the scratch disk's path in the guest: virtio disks are named in the order of their slots."""
    return "/dev/vdb" if userspace == "debian" else "/dev/vda"


def command_line(guest: Guest) -> str:
    """Return the kernel's command line; `cmdline` of the lab comes last and so wins."""
    parts = [f"console={guest.machine.console.terminal},{_BAUD}"]
    if isinstance(guest.userspace, OnDisk):
        parts += [_ON_DISK, _END]
        parts += [_EMULATED] if guest.clock == "instructions" else []
    elif guest.machine is not X86_64:
        parts += [_END]
    elif guest.old:
        parts += [_OLD_END]
        parts += [_OLD_EMULATED] if guest.clock == "instructions" else []
    else:
        parts += [_END, _NO_ACPI]
        parts += [_EMULATED, _NO_WATCHDOG] if guest.clock == "instructions" else []
    return " ".join([*parts, *([guest.cmdline] if guest.cmdline else [])])


def domain_xml(guest: Guest) -> str:
    """Return the XML of a transient domain.

    Disk and network card sit on the root bus: bridges to them would be probed at each boot.
    """
    machine, x86 = guest.machine, guest.machine is X86_64
    # i8042, smbus and sata are probed with long timeouts by kernels that have the drivers.
    extra = ["-machine", "i8042=off,smbus=off,sata=off,vmport=off"] if x86 else []
    archive = guest.userspace.modules if isinstance(guest.userspace, OnDisk) else guest.userspace.archive
    initrd = f"<initrd>{escape(str(archive))}</initrd>" if archive is not None else ""
    if isinstance(guest.userspace, OnDisk):
        devices = _disk(guest.userspace.disk, "vda", 8, "<readonly/>")
        network = f"user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:{guest.userspace.port}-:22"
        extra += ["-netdev", network, "-device", "virtio-net-pci,netdev=net0,romfile=,bus=pcie.0,addr=0x10"]
    else:
        devices = _port(guest.userspace, machine)
    if x86 and not guest.old:
        timers, cpu = "", "<cpu mode='host-passthrough'/>" if guest.kvm else "<cpu mode='maximum'/>"
    else:
        timers, cpu = _OLD_TIMERS if x86 else "", machine.cpu
    if guest.scratch is not None:
        devices += _disk(guest.scratch, "vdb", 9, f"<serial>{SCRATCH_SERIAL}</serial>")
    clock = f"<clock offset='utc'>{timers}</clock>"
    if guest.clock == "instructions":
        extra += ["-icount", "shift=0,sleep=off,align=off", "-seed", str(guest.seed)]
        extra += ["-smbios", f"type=1,uuid={_SAME_UUID}"] if x86 else []
        # Counted by the guest's own clock: the host's must not leak in.
        timers += "<timer name='rtc' track='guest'/>"
        later = (guest.seed - 1) % _SECONDS_OF_A_YEAR if guest.old else 0
        clock = f"<clock offset='absolute' start='{_FIRST_BOOT + later}'>{timers}</clock>"
    if guest.plugin:
        extra += ["-plugin", guest.plugin]
    arguments = "".join(f"<qemu:arg value={quoteattr(value)}/>" for value in extra)
    return f"""<domain type='{"kvm" if guest.kvm else "qemu"}' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>{escape(guest.name)}</name>
  <memory unit='MiB'>{guest.memory_mb}</memory>
  <vcpu>{guest.cpus}</vcpu>
  <os>
    <type arch='{machine.guest}' machine='{machine.model}'>hvm</type>
    <kernel>{escape(str(guest.kernel))}</kernel>
    {initrd}
    <cmdline>{escape(command_line(guest))}</cmdline>
  </os>
  {"<features><acpi/><apic/></features>" if x86 else ""}
  {cpu}
  {clock}
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <serial type='file'>
      <source path={quoteattr(str(guest.console))} append='on'/>
      {machine.console.target}
    </serial>
    {devices}
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
  </devices>
  {_labels(guest)}
  <qemu:commandline>{arguments}</qemu:commandline>
</domain>
"""


def _labels(guest: Guest) -> str:
    """Return the XML of the security labels of QEMU's process."""
    labels = ""
    if guest.label is not None:
        # As the caller, and no file is given away: kernel and image lie in the caller's private cache.
        labels = (
            "<seclabel type='static' model='dac' relabel='no'>"
            f"<label>+{guest.label[0]}:+{guest.label[1]}</label></seclabel>"
        )
    if guest.plugin:
        labels += "".join(f"<seclabel type='none' model={quoteattr(model)}/>" for model in guest.confined_by)
    return labels


def _disk(disk: Path, name: str, slot: int, about: str) -> str:
    """Return the XML of a disk. What a guest writes ends with its boot: it need not reach the host's disk.

    error_policy: where the host cannot read or write the file, as when its disk is full, the guest is paused.
    An error that was reported to it would pass for one of its kernel.
    """
    return f"""<disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='unsafe' error_policy='stop'/>
      <source file={quoteattr(str(disk))}/>
      <target dev='{name}' bus='virtio'/>
      {about}
      <address type='pci' domain='0' bus='0' slot='{slot}' function='0'/>
    </disk>"""


def _port(userspace: OnSerial, machine: Machine) -> str:
    return f"""<serial type='pipe'>
      <source path={quoteattr(str(userspace.fifos))}/>
      {machine.line.target}
    </serial>"""

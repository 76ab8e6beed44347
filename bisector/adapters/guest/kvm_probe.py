"""Whether KVM works on this machine: a kernel is booted under it, once.

Nothing less proves it. Under nested virtualisation /dev/kvm may open, a guest may start and its firmware may
run, and Linux hangs or QEMU aborts all the same. The answer is stored in the cache folder until the host's
kernel, QEMU or the right to open the device changes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.system.command import run_command
from bisector.adapters.system.files import write_atomically
from bisector.errors import InfrastructureError
from bisector.linux.console_text import clean
from bisector.ports import Progress
from bisector.schemas.documents.json_reader import read_own_json

_BOOT_SECONDS = 20.0
"""Until the missing root file system is reported: 1 to 3 s under a KVM that works."""

_QEMU = "qemu-system-x86_64"
_DEVICE = Path("/dev/kvm")


@dataclass(frozen=True, slots=True)
class KvmAnswer:
    """works: a kernel booted. known: False where there was no kernel or QEMU to try with. why: in words."""

    works: bool
    known: bool
    why: str


class KvmProbe:
    """Asks once a host; remembers in `<cache>/kvm.json`."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._note = cache / "kvm.json"

    def remembered(self) -> KvmAnswer | None:
        """Return the answer of an earlier probe on this host kernel and QEMU, if there is one."""
        note = read_own_json(self._note, ("host", "works", "known", "why"))
        if note is None or note["host"] != _host():
            return None
        return KvmAnswer(bool(note["works"]), bool(note["known"]), str(note["why"]))

    def ask(self, progress: Progress, *, again: bool = False) -> KvmAnswer:
        """Return whether KVM works, booting a kernel to find out. again: even if there is a stored answer.

        'There was nothing to try with' is stored as well: the clock must not change during a bisection.
        """
        answer = None if again else self.remembered()
        if answer is None:
            answer = self._probe(progress)
            note = {"host": _host(), "works": answer.works, "known": answer.known, "why": answer.why}
            write_atomically(self._note, json.dumps(note, indent=1))
        return answer

    def _probe(self, progress: Progress) -> KvmAnswer:
        if not _DEVICE.exists():
            return KvmAnswer(False, True, "this machine has no /dev/kvm")
        if not _opens():
            cure = "as root 'usermod -aG kvm USER', then log in again"
            return KvmAnswer(False, True, f"/dev/kvm may not be opened by this user ({cure})")
        if shutil.which(_QEMU) is None:
            return KvmAnswer(False, False, f"{_QEMU} is not installed")
        kernels = self._kernels()
        if not kernels:
            return KvmAnswer(False, False, "no kernel is here to boot: neither in /boot nor built yet")
        progress("booting a kernel under KVM, to see whether it works here")
        return boots_under_kvm(kernels[0])

    def _kernels(self) -> Sequence[Path]:
        """Return kernels to try: the host's own first, which works on its CPU, then those of the cache."""
        found = [Path(f"/boot/vmlinuz-{os.uname().release}"), *sorted(Path("/boot").glob("vmlinuz-*"))]
        found += sorted((self._cache / "kernels").glob("*/image"))
        return [path for path in found if os.access(path, os.R_OK)]


def boots_under_kvm(kernel: Path) -> KvmAnswer:
    """Boot a kernel under KVM without a root file system: KVM works if the kernel reports that."""
    command: list[str | Path] = [
        *(_QEMU, "-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none", "-machine", "q35,accel=kvm"),
        *("-cpu", "host", "-m", "512", "-serial", "stdio", "-kernel", kernel),
        *("-append", "console=ttyS0,115200 earlyprintk=serial,ttyS0,115200 panic=-1"),
    ]
    try:
        done = run_command(command, timeout=_BOOT_SECONDS, check=False)
    except InfrastructureError as error:
        return KvmAnswer(False, True, f"{kernel.name} hangs under KVM: {error.message}")
    text = clean(done.output.encode())
    if "Unable to mount root fs" in text or "VFS: Cannot open root device" in text:
        return KvmAnswer(True, True, f"{kernel.name} booted under KVM")
    last = next((line for line in reversed(text.splitlines()) if line.strip()), "no word")
    return KvmAnswer(False, True, f"{kernel.name} does not boot under KVM: {last}")


def _opens() -> bool:
    return os.access(_DEVICE, os.R_OK | os.W_OK)


def _host() -> str:
    """Return what the answer depends on: the host's kernel, QEMU (its file's time), our rights."""
    path = shutil.which(_QEMU)
    stamp = int(Path(path).stat().st_mtime) if path else 0
    rights = "may open it" if _opens() else "may not open it"
    return f"{os.uname().release} {os.uname().version} {stamp} uid {os.geteuid()} {rights}"

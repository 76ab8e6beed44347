"""A machine of its own for a campaign on real guests, as far as libvirt and perfbisect's cache see it.

The campaign kills libvirtd and damages kernels of the cache. So it runs in namespaces of its own: with
another /run and other process ids its libvirtd is not the machine's; over the user's cache lies a copy.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.demo_history import CACHE

VARIABLE = "FAULT_CAMPAIGN_MACHINE"
"""Set inside: the folder with the copy of the cache."""

_ENTER = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/libvirt
mount --bind "$1/demo" "$1/copy/demo"
mount --rbind "$1/copy" "$2"
shift 2
"$@"
"""
"""The shell stays as process 1 and reaps QEMU, whose parent has ended: libvirtd waits until it is gone."""


def inside() -> bool:
    """Return whether this process is in there."""
    return VARIABLE in os.environ


def enter(work: Path, arguments: Sequence[str]) -> int:
    """Run a module of ours in there to its end; return its exit code. work: for the copy of the cache."""
    if os.geteuid() != 0:
        sys.exit("a campaign on real guests needs root, for namespaces and a libvirtd of its own")
    copy, demo = work / "copy", work / "demo"
    if not copy.exists():
        print(f"copying {CACHE} to {copy}: what the campaign damages there is nobody's", flush=True)
        partial = work / "copy.partial"
        shutil.rmtree(partial, ignore_errors=True)
        leave_out = shutil.ignore_patterns("demo")
        shutil.copytree(CACHE, partial, symlinks=True, ignore=leave_out)
        (partial / "demo").mkdir()
        partial.rename(copy)
    demo.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the namespaces with all in them
    subprocess.run(["mount", "--bind", str(CACHE / "demo"), str(demo)], check=True)
    try:
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            _ENTER,
            "sh",
        ]
        inner = [str(work), str(CACHE), sys.executable, "-m", "tests.campaign.run", *arguments]
        return subprocess.run(
            [*command, *inner], env={**os.environ, VARIABLE: str(copy)}, check=False
        ).returncode
    finally:
        subprocess.run(["umount", "--lazy", str(demo)], check=False)

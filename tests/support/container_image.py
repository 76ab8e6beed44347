"""A container image with a compiler and all that a kernel build needs, made of this machine's archives."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bisector.adapters.guest.debian_packages import bootstrap

NAME = "localhost/perfbisect-tests-gcc-11"
"""Kept from one run of the tests to the next: it takes a minute or two to make."""

PACKAGES = "gcc-11 make bc flex bison perl-base libelf-dev cpio git ccache python3-minimal diffutils"


def tools_missing() -> list[str]:
    """Return what is not installed of the programs that make and run it."""
    return [tool for tool in ("podman", "runc", "mmdebstrap") if shutil.which(tool) is None]


def image(work: Path) -> str:
    """Return NAME@sha256:... of the image, made if it is not there yet."""
    if subprocess.run(["podman", "image", "exists", NAME], check=False).returncode:
        _make(work)
    told = ["podman", "image", "inspect", NAME, "--format", "{{.Digest}}"]
    return f"{NAME}@{subprocess.run(told, check=True, capture_output=True, text=True).stdout.strip()}"


def _make(work: Path) -> None:
    archive = work / "image.tar"
    bootstrap(work, PACKAGES.split(), archive)
    subprocess.run(["podman", "import", "--quiet", str(archive), NAME], check=True)
    archive.unlink()

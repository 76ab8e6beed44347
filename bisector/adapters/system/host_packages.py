"""Installing what this machine lacks: Debian packages, and libvirt-python, which is compiled with them.

The list of packages and the script that installs them are those of `make deps`; the wheel has both.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import shlex
import sys

from bisector.adapters.system.command import run_command, run_on_terminal
from bisector.adapters.system.host_requirements import has_libvirt
from bisector.errors import InfrastructureError
from bisector.resources import resource

_EXTRA = 'extra == "libvirt"'
"""How the package's metadata marks what only guests need."""


def missing() -> list[str]:
    """Return the commands, as for a shell, that install what is missing; none if nothing is.

    Raises InfrastructureError if packages are missing and there is neither root nor sudo.
    """
    asked = run_command([*_debian("--dry-run")], check=False)
    if asked.code:
        message = "Debian packages are missing, and there is neither root nor sudo to install them"
        raise InfrastructureError(message, cure=asked.output.strip().splitlines()[-1])
    lines = [line for line in asked.output.splitlines() if " apt-get " in line]
    return lines if has_libvirt() else [*lines, shlex.join(_pip())]


def install_missing() -> None:
    """Install what is missing. Raises InfrastructureError; what the programs print goes to stderr."""
    if code := run_on_terminal(_debian()):
        raise InfrastructureError(
            f"the Debian packages were not installed (code {code})",
            cure="'perfbisect doctor --fix --dry-run' prints the commands; run them as root",
        )
    if has_libvirt():
        return
    if importlib.util.find_spec("pip") is None:
        raise InfrastructureError(
            f"this Python environment has no pip to install {_libvirt()}",
            cure="install it with the program that made the environment, such as 'uv tool' or 'pipx inject'",
        )
    if code := run_on_terminal(_pip()):
        cure = f"look at what pip printed above; then again: {shlex.join(_pip())}"
        raise InfrastructureError(f"libvirt-python was not installed (code {code})", cure=cure)
    importlib.invalidate_caches()


def _debian(*options: str) -> list[str]:
    folder = resource("packaging") / "debian"
    return ["sh", str(folder / "install"), *options, f"@{folder / 'packages'}"]


def _pip() -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", _libvirt()]


def _libvirt() -> str:
    """Return libvirt-python with the versions that this package asks for."""
    asked = importlib.metadata.requires("perfbisect") or []
    return next(line.partition(";")[0].strip() for line in asked if _EXTRA in line.replace("'", '"'))

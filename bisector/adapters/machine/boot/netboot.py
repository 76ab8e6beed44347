"""One boot from the network: files below a folder that this host serves, taken away again afterwards.

iPXE on the machine reads `perfbisect/MAC.ipxe`. As long as that is there the machine boots the kernel under
test; without it iPXE goes on to the disk. See playbooks/README.md for what the server's own script says.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from bisector.adapters.system.files import os_errors_reported, write_atomically
from bisector.schemas.machine.netboot_variables import NetbootVariables

_IMAGE = "perfbisect.image"
"""With a dot: on UEFI the kernel finds this name on its command line, and hands words without one to init."""


class Netboot:
    """The served files of one machine."""

    def __init__(self, variables: NetbootVariables) -> None:
        folder = Path(variables.folder).expanduser() / "perfbisect"
        self._script = folder / f"{variables.mac}.ipxe"
        self._files = folder / variables.mac
        self._url = f"{variables.url}/perfbisect/{variables.mac}"

    def publish(self, image: Path, initrd: Path | None, cmdline: str) -> None:
        """Have the machine boot this kernel, with this command line, whenever it asks from now on."""
        self.withdraw()
        with os_errors_reported(f"cannot write the files of a network boot below {self._files.parent}"):
            self._files.mkdir(parents=True)
            shutil.copyfile(image, self._files / _IMAGE)
            if initrd is not None:
                shutil.copyfile(initrd, self._files / "initrd")
        lines = ["#!ipxe", f"kernel {self._url}/{_IMAGE} {cmdline}"]
        if initrd is not None:
            # UEFI's loader in the kernel finds it by this name.
            lines[1] += " initrd=initrd"
            lines.append(f"initrd --name initrd {self._url}/initrd")
        # The script comes last: it is what the machine asks for.
        write_atomically(self._script, "\n".join([*lines, "boot", ""]))

    def withdraw(self) -> None:
        """Take the files away: the machine boots from its disk. Harmless if there are none."""
        with os_errors_reported(f"cannot remove {self._script}"):
            self._script.unlink(missing_ok=True)
            shutil.rmtree(self._files, ignore_errors=True)

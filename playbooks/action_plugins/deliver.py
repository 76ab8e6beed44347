"""The action 'deliver': unpack an archive on the host and run a command in it, in one SSH exchange.

Ansible's own way (copy, unarchive, script) takes five to ten exchanges and starts Python on the host twice;
in an emulated guest that is seconds a trial, and on the oldest kernels there is no Python to start. Here
the archive is the standard input of one shell.

Arguments: archive (a tar file of this machine), folder (made anew on the host), command (run in that folder).
gate, gate_timeout: wait until the file `gate` exists on this machine. Ansible needs seconds to start, so a
trial starts it beside the boot and opens the gate when SSH answers.
Returns rc, stdout, stderr.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

_POLL_SECONDS = 0.02


class ActionModule(ActionBase):
    """See the module's text."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Do it; never raises for what goes wrong on the host."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        if not _passed(arguments.get("gate", ""), float(arguments.get("gate_timeout", 0))):
            return result | {"failed": True, "msg": "the testbed did not become ready in time"}
        folder = shlex.quote(arguments["folder"])
        script = (
            f"rm -rf {folder} && mkdir -p {folder} && cd {folder} && tar -xf - && exec {arguments['command']}"
        )
        done = self._low_level_execute_command(
            f"sh -c {shlex.quote(script)}", in_data=Path(arguments["archive"]).read_bytes()
        )
        result |= {key: done.get(key, "") for key in ("rc", "stdout", "stderr")}
        result["changed"] = True
        if done["rc"] != 0:
            result |= {"failed": True, "msg": f"the command ended with code {done['rc']}"}
        return result


def _passed(gate: str, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while gate and not Path(gate).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True

"""The action 'deliver': unpack an archive on the host and run a command in it, in one SSH exchange.

Ansible's own way (copy, unarchive, script) takes five to ten exchanges and starts Python on the host twice;
in an emulated guest that is seconds a trial, and on the oldest kernels there is no Python to start. Here
the archive is the standard input of one shell.

Arguments: archive (a tar file of this machine), folder (made anew on the host), command (run in that folder).
files: name -> path of this machine, in place of an archive; has: a script of this machine and its arguments,
which the host's shell runs first. Where it ends with code 0 the host has the files, and only those that
`always` names are sent; with 1 all are; with another code nothing is done.
gate, gate_timeout: wait until the file `gate` exists on this machine. Ansible needs seconds to start, so a
trial starts it beside the boot and opens the gate when SSH answers.
Returns rc, stdout, stderr and sent, in bytes.
"""

from __future__ import annotations

import io
import shlex
import tarfile
import time
from pathlib import Path, PurePosixPath
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
        files = dict(arguments.get("files") or {})
        if arguments.get("has"):
            script, *words = arguments["has"]
            asked = self._low_level_execute_command(
                f"sh -s -- {shlex.join(map(str, words))}", in_data=Path(script).read_bytes()
            )
            if asked["rc"] not in (0, 1):
                return result | _ended(asked)
            if asked["rc"] == 0:
                files = {name: path for name, path in files.items() if name in arguments["always"]}
        data = Path(arguments["archive"]).read_bytes() if arguments.get("archive") else _archive(files)
        path = PurePosixPath(arguments["folder"])
        folder, parent = shlex.quote(str(path)), shlex.quote(str(path.parent))
        # Without -p: in a folder for all, such as /var/tmp, another user may put his own there in between.
        script = (
            f"rm -rf {folder} && mkdir -p {parent} && mkdir {folder} && cd {folder} && tar -xf - && "
            f"exec {arguments['command']}"
        )
        done = self._low_level_execute_command(f"sh -c {shlex.quote(script)}", in_data=data)
        return result | _ended(done) | {"changed": True, "sent": len(data)}


def _ended(done: dict[str, Any]) -> dict[str, Any]:
    result = {key: done.get(key, "") for key in ("rc", "stdout", "stderr")}
    if done["rc"] != 0:
        result |= {"failed": True, "msg": f"the command ended with code {done['rc']}"}
    return result


def _archive(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, path in files.items():
            archive.add(path, arcname=name, filter=_owned_by_root)
    return data.getvalue()


def _owned_by_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def _passed(gate: str, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while gate and not Path(gate).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True

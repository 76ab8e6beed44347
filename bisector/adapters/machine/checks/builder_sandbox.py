"""Whether the Makefiles of a kernel can be kept in a sandbox on a builder."""

from __future__ import annotations

from bisector.adapters.machine.machine_needs import Doubt
from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError
from bisector.resources import resource

_SECONDS = 60.0
"""Two programs start; on a busy machine that takes seconds."""

# Goes around sandbox.sh. In a folder of its own, and so as a user of its own: the sandbox of a user ends all
# processes of that user, and one of a container that container, which may be those of a build.
_BEFORE = r"""
set -eu -o pipefail
PB_FOLDER=$1/lab-check.$$
"""
_BEHIND = r"""
made=
[ -d "${PB_FOLDER%/*}" ] || made=yes
trap 'rm -rf "$PB_FOLDER"; [ -z "$made" ] || rmdir "${PB_FOLDER%/*}"' EXIT
mkdir -p "$builder"
sandbox_owner "$builder/try"
show_programs bash
choose_sandbox "$builder/try"
echo "sandbox=$sandbox"
! podman version >/dev/null 2>&1 || echo podman=yes
"""

_CURE = (
    "install bubblewrap there; in a container that forbids namespaces be root, and take a folder that "
    "every user may pass through"
)


def has_sandbox(ssh: SSH, folder: str) -> str:
    """Return which sandbox works for builds below a folder; what is made to try it is removed.

    Raises InfrastructureError where there is none, Doubt where it has the network or only images have one.
    """
    script = _BEFORE + (resource("playbooks") / "files" / "sandbox.sh").read_text("utf-8") + _BEHIND
    lines = ssh.run(["bash", "-c", script, "bash", folder], timeout=_SECONDS).output.splitlines()
    told = dict(line.split("=", 1) for line in lines if line.startswith(("sandbox=", "podman=")))
    match told.get("sandbox"):
        case "bubblewrap":
            return "bubblewrap works"
        case "namespaces":
            return "unshare works"
        case "user":
            raise Doubt(
                "no bubblewrap that works: builds run as another user, but with the network", cure=_CURE
            )
        case _ if "podman" in told:
            raise Doubt("none works but podman: only toolchains in an image can be used", cure=_CURE)
    raise InfrastructureError(
        "none works: the Makefiles of a kernel could do harm there, so nothing is built", cure=_CURE
    )

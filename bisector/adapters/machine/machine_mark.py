"""A mark on a machine that says who uses it: for a perfbisect on another host that shares no database.

Processes of one host, and of one database server, have locks and leases; they never meet here. The mark holds
for as long as its user said when it was set last, by the machine's own clock, and while the measuring agent
runs, which holds a lock. Both end by themselves: the mark of a user that died is stale soon.
"""

from __future__ import annotations

import hashlib
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from bisector.adapters.machine.machine_reach import MachineReach
from bisector.errors import InfrastructureError, MachineInUse

FOLDER = "/var/lib/perfbisect"
AGENT_LOCK = "/run/perfbisect-agent.lock"
"""Held by the measuring agent. In memory: no boot leaves it behind."""

_MARK = f"{FOLDER}/in-use"

_MOST_SECONDS = 4 * 3600
"""No mark holds longer: the longest boot timeout is an hour, and a mark is set for three of it and more. One
that does is of before the machine's clock was set back."""

_SET = """
umask 077
mkdir -p "$1" && exec 8>>"$1/in-use.lock" || exit 71
! command -v flock >/dev/null || flock -w 10 8 || exit 75
exec 9>>"$2"
busy=no
! command -v flock >/dev/null || flock -n 9 || busy=yes
exec 9>&-
now=$(date +%s) until=0 domain=
[ ! -f "$1/in-use" ] || { read -r until; read -r token; read -r domain; read -r user; } <"$1/in-use"
left=$((until - now))
if [ -n "$domain" ] && [ "$domain" != "$3" ]; then
    if [ $busy = yes ] || { [ $left -gt 0 ] && [ $left -le "$7" ]; }; then
        echo "refused $user"
        exit 0
    fi
fi
printf '%s\\n' $((now + $6)) "$4" "$3" "$5" >"$1/in-use.new" && mv "$1/in-use.new" "$1/in-use" || exit 71
echo "ours ${token:-}"
"""
"""$1: folder; $2: lock of the agent; $3: domain; $4: token; $5: user; $6: seconds; $7: the most of them."""

_WHOSE = 'sed -n 2p "$1/in-use" 2>/dev/null'


@dataclass(frozen=True, slots=True)
class MachineUser:
    """Who uses machines: this process. domain: equal for all that have common locks or a common database.

    text: for people, one line.
    """

    domain: str
    text: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)


def machine_user(database: object | None, lock_dir: Path, text: str) -> MachineUser:
    """Return this process. database: of the settings; without one, a common lock folder keeps users apart.

    Cloned hosts may have one machine-id or one name, and hardly both.
    """
    common = str(database)
    if database is None:
        machine = Path("/etc/machine-id")
        identity = machine.read_text(encoding="ascii").strip() if machine.exists() else ""
        common = f"{socket.gethostname()} {identity} {lock_dir.resolve()}"
    return MachineUser(hashlib.sha256(common.encode()).hexdigest()[:16], text)


@dataclass(frozen=True, slots=True)
class MachineMark:
    """Our mark on one machine. name: of the testbed."""

    name: str
    reach: MachineReach
    user: MachineUser

    def set(self, seconds: float) -> bool:
        """Say that we use the machine for so many seconds from now; return whether another's mark was stale.

        Raises MachineInUse, naming who does, or InfrastructureError where nothing can be written there.
        """
        text = " ".join(self.user.text.split())
        given = (self.user.domain, self.user.token, text, str(round(seconds)), str(_MOST_SECONDS))
        said = self.reach.run(["sh", "-c", _SET, "sh", FOLDER, AGENT_LOCK, *given], check=False).strip()
        word, _, rest = said.splitlines()[-1].partition(" ") if said else ("", "", "")
        if word == "refused":
            raise MachineInUse(
                f"the machine of the testbed '{self.name}' is in use: {rest}",
                cure="wait until that ends, or name another testbed; what nobody renews ends by itself",
            )
        if word != "ours":
            raise InfrastructureError(
                f"the testbed '{self.name}' cannot be marked as used: {FOLDER} there is not writable",
                details=said,
                cure="make room on the machine's disk, and have it mounted for writing",
            )
        return rest not in ("", self.user.token)

    def is_taken_over(self) -> bool:
        """Return whether another process has marked the machine since; not where it cannot be asked."""
        try:
            said = self.reach.run(["sh", "-c", _WHOSE, "sh", FOLDER], check=False).strip()
        except InfrastructureError:
            return False
        return said not in ("", self.user.token)

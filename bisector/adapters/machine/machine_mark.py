"""A mark on a machine that says who uses it: for a perfbisect on another host that shares no database.

Processes of one host, and of one database server, have locks and leases; they never meet here. The mark holds
for as long as its user said when it was set last, by the machine's own clock, and while the measuring agent
runs, which holds a lock. Both end by themselves: the mark of a user that died is stale soon. One that lives
renews it (`mark_keeper`).
"""

from __future__ import annotations

import hashlib
import socket
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bisector.adapters.machine.machine_reach import MachineReach
from bisector.errors import InfrastructureError, MachineInUse

FOLDER = "/var/lib/perfbisect"
AGENT_LOCK = "/run/perfbisect-agent.lock"
"""Held by the measuring agent. In memory: no boot leaves it behind."""

_MARK = f"{FOLDER}/in-use"

MOST_SECONDS = 4 * 3600
"""No mark holds longer: the longest boot timeout is an hour, and a mark is set for a bit more than three of
them. One that seems to hold longer was set before the machine's clock was set back."""

_MOST_SHOWN = 200
"""Characters of what the machine's shell says; a reason has fewer."""

_SCRIPT = """
umask 077
if [ "$8" != ask ]; then
    for try in 1 2 3; do
        mkdir -p "$1" && exec 8>>"$1/in-use.lock" || exit 71
        ! command -v flock >/dev/null || flock -w 10 8 || exit 75
        [ ! "$1/in-use.lock" -ef /proc/self/fd/8 ] || break # else who had the lock has removed it
    done
fi
busy=no
if [ -e "$2" ] && command -v flock >/dev/null; then
    exec 9>>"$2"
    flock -n 9 || busy=yes
    exec 9>&-
fi
now=$(date +%s) until=0 token= domain= user=
[ ! -f "$1/in-use" ] || { read -r until; read -r token; read -r domain; read -r user; } <"$1/in-use"
left=$((until - now)) others=no
if [ -n "$domain" ] && [ "$domain" != "$3" ]; then
    if [ $busy = yes ] || { [ $left -gt 0 ] && [ $left -le "$7" ]; }; then others=yes; fi
fi
case $8 in
    ask) [ $others = no ] && echo free || echo "refused $user"; exit 0 ;;
    set) [ $others = no ] || { echo "refused $user"; exit 0; } ;;
    drop)
        [ "$token" != "$4" ] || rm -f "$1/in-use"
        [ -e "$1/in-use" ] || { rm -f "$1/in-use.lock"; rmdir "$1" 2>/dev/null; }
        echo free; exit 0 ;;
    renew) [ -z "$token" ] || [ "$token" = "$4" ] || { echo "refused $user"; exit 0; } ;;
esac
printf '%s\\n' $((now + $6)) "$4" "$3" "$5" >"$1/in-use.new" && mv "$1/in-use.new" "$1/in-use" || exit 71
echo "ours ${token:-}"
"""
"""$1: folder; $2: lock of the agent; $3: domain; $4: token; $5: user; $6: seconds; $7: the most of them.

$8: set, where nobody of another domain uses the machine; renew, where nobody else has marked it since; ask;
drop, what is ours, with the folder where nothing else is in it.
"""


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
        """Mark the machine as ours for so many seconds from now; return whether a stale mark was there.

        Raises MachineInUse, naming who does, or InfrastructureError where nothing can be written there.
        """
        word, rest = self._run("set", seconds)
        if word == "refused":
            raise self._in_use(rest)
        return rest not in ("", self.user.token)

    def renew(self, seconds: float) -> bool:
        """Use the machine for so many seconds from now; return False where another has marked it since.

        Raises SSHRefused where it does not answer, or another InfrastructureError.
        """
        return self._run("renew", seconds)[0] == "ours"

    def holder(self) -> str:
        """Return who uses the machine on another host, with another database; '' for nobody.

        Nothing is changed there. Raises as `renew`.
        """
        word, rest = self._run("ask", 0.0)
        return rest if word == "refused" else ""

    def require_free(self) -> None:
        """Raise MachineInUse where another host's perfbisect uses the machine; raises as `renew`."""
        user = self.holder()
        if user:
            raise self._in_use(user)

    def _in_use(self, user: str) -> MachineInUse:
        return MachineInUse(
            f"the machine of the testbed '{self.name}' is in use: {user}",
            cure="wait until that ends, end it there, or name another testbed; what nobody renews ends by "
            f"itself. Where nobody can be using it: remove {_MARK} there",
        )

    def release(self) -> None:
        """Take our mark away; another's stays. Raises as `renew`."""
        self._run("drop", 0.0)

    def _run(self, what: Literal["set", "renew", "ask", "drop"], seconds: float) -> tuple[str, str]:
        text = " ".join(self.user.text.split())
        most = min(round(seconds), MOST_SECONDS)
        given = (self.user.domain, self.user.token, text, str(most), str(MOST_SECONDS), what)
        output = self.reach.run(["sh", "-c", _SCRIPT, "sh", FOLDER, AGENT_LOCK, *given], check=False).strip()
        last = "".join(filter(str.isprintable, output.splitlines()[-1])) if output else ""
        word, _, rest = last.partition(" ")
        if word not in ("ours", "refused", "free"):
            raise InfrastructureError(
                f"the testbed '{self.name}' cannot be marked as used: {FOLDER} there is not writable"
                + (f": {last[:_MOST_SHOWN]}" if last else ""),
                details=output,
                cure="make room on the machine's disk, and have it mounted for writing",
            )
        return word, rest or ("somebody" if word == "refused" else "")

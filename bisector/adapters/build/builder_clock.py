"""A builder whose clock is wrong: its build.sh compares it with ours, before it builds and afterwards."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.errors import BuilderUnwell


def require_clock(host: str, facts: Mapping[str, str]) -> None:
    """Raise BuilderUnwell where a builder has answered that its clock is wrong, and built nothing."""
    if facts.get("status") != "wrong-clock":
        return
    ahead = int(facts["ahead"])
    side = "ahead of" if ahead > 0 else "behind"
    raise BuilderUnwell(
        f"the clock of the builder '{host}' is {abs(ahead)} s {side} ours",
        details="make decides by the times of files what it compiles; nothing is built there",
        cure="set one of the two clocks right, by NTP: chronyc makestep, or systemctl restart "
        "systemd-timesyncd; the builder is tried again by itself",
    )

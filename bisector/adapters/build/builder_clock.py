"""Whether a builder's clock can be trusted: make decides by the times of files what it compiles."""

from __future__ import annotations

from collections.abc import Mapping

from bisector.adapters.build.build_answer import number_of
from bisector.errors import BuilderUnwell

_SKEW_SECONDS_MAX = 120.0
"""A clock that NTP keeps is off by milliseconds, one without it by seconds a day. One that is off by minutes
will be set right in one step: files of before and after it are then older or younger than they are, and make
leaves out what it should compile, or compiles everything. Below two minutes no build ends."""


def skew_seconds(now: float, began: float, ended: float) -> float:
    """Return by how much a clock is off at least; positive: it is ahead.

    now: what it said at some moment between `began` and `ended`, which are of this machine's clock.
    """
    return now - ended if now > ended else min(0.0, now - began)


def require_clock(host: str, facts: Mapping[str, str], began: float, ended: float) -> None:
    """Raise BuilderUnwell where the answer of a builder shows that its clock is wrong.

    facts: 'now' is its time, in whole seconds, while the play ran from `began` to `ended`.
    """
    if "now" not in facts:  # an answer that was kept from an earlier play
        return
    skew = skew_seconds(number_of(facts, "now"), began - 1, ended)
    if abs(skew) > _SKEW_SECONDS_MAX:
        side = "ahead of" if skew > 0 else "behind"
        raise BuilderUnwell(
            f"the clock of the builder '{host}' is {abs(skew):.0f} s {side} ours",
            details="make decides by the times of files what it compiles; what was built is not used",
            cure="set one of the two clocks right, by NTP: chronyc makestep, or systemctl restart "
            "systemd-timesyncd; the builder is tried again by itself",
        )

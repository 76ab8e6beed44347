"""The next bisection that a free testbed serves. Pure: what is known goes in, a choice comes out.

Bisections share testbeds boot by boot. A more urgent one comes first. Among equals, testbeds are spread
evenly over owners, then over the bisections of each; those who have waited longest come first. What counts
against a bisection are testbeds that it could use itself, with whichever executor: nobody waits because its
owner measures on others.

While the kernel of a bisection is built, which takes minutes, the testbed that it would boot on goes to
others that can use it at once: to those that have none, or have measured there. It competes again when the
kernel is there.

Levels differ from testbed to testbed, so a bisection measures its references anew on each that it comes to.
Of those that have waited about equally long, one that has measured on the testbed before comes first: 20
bisections on 10 testbeds took half of the time and of the machine hours that taking turns alone took.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

_EQUAL_SECONDS = 600.0
"""Times are compared in steps of this length, and count as equal within one: a few of the longest visits."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A bisection that shares testbeds with others.

    priority: 1 is served first; created: seconds since the epoch; testbeds: those that it can use; has: those
    that it uses now; served: testbed -> when its last visit there ended, seconds on any clock; builds: those
    that it can do nothing on before a kernel is built; elsewhere: those that it can use with other executors;
    measured: those that it has measured on, with whichever executor; waits: it must not be served here, for
    its owner has had what is allowed, or because others execute it.
    """

    id: str
    owner: str
    priority: int
    created: float
    testbeds: frozenset[str]
    has: frozenset[str] = frozenset()
    served: Mapping[str, float] | None = None
    builds: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()
    waits: bool = False


def choose(testbed: str, claimants: Sequence[Claimant]) -> str | None:
    """Return the bisection that a free testbed serves next, None if none could use it.

    One that uses it with another executor needs it from nobody: two executors of one bisection would pass a
    machine on boot by boot, each time with a reboot to give it back.
    """
    ranks = _Ranks(testbed, claimants)
    able = [c for c in ranks.able if testbed not in c.has]
    return min(able, key=ranks.rank).id if able else None


def should_yield(testbed: str, holder: str, claimants: Sequence[Claimant], now: float) -> bool:
    """Return whether a testbed should go to another bisection when it can be left. now: on the same clock.

    It goes to a more urgent one, to one that has none (or whose owner has none), and to one that has fewer
    even afterwards: passing it on for less would cost a boot, and it would come back. While a kernel is built
    for the holder, it goes to one that has none or has measured there, and waits for no kernel itself.
    `choose` would not give it to the holder then.
    """
    ranks = _Ranks(testbed, [_without(c, testbed, now) if c.id == holder else c for c in claimants])
    mine = next((c for c in claimants if c.id == holder), None)
    if mine is None or mine.waits or testbed not in mine.testbeds:
        return True
    if testbed in mine.builds:
        at_once = [c for c in ranks.able if not c.builds]
        return any(not c.has or testbed in {*(c.served or {}), *c.measured} for c in at_once)
    mine = next(c for c in ranks.able if c.id == holder)
    return any(ranks.rank(other) < ranks.rank(mine) and ranks.gains(other, mine) for other in ranks.able)


class _Ranks:
    """The order of bisections at a testbed. able: those that could use it."""

    def __init__(self, testbed: str, claimants: Iterable[Claimant]) -> None:
        has: dict[str, set[str]] = defaultdict(set)  # of owners
        served: dict[str, dict[str, float]] = defaultdict(dict)
        self._testbed = testbed
        self.able = []
        for c in claimants:
            has[c.owner] |= c.has
            for name, when in (c.served or {}).items():
                served[c.owner][name] = max(when, served[c.owner].get(name, 0.0))
            if testbed in c.testbeds - c.builds and not c.waits:
                self.able.append(c)
        self._shares: dict[tuple[str, int], tuple[int, float]] = {}
        """(owner, priority) -> how many testbeds the owner has and when it last had one, of those that its
        worst-served bisection could use."""
        for c in self.able:
            share = len(has[c.owner] & (c.testbeds | c.elsewhere)), _last(served[c.owner], c.testbeds)
            known = self._shares.get((c.owner, c.priority), share)
            self._shares[c.owner, c.priority] = min(known, share)

    def rank(self, c: Claimant) -> tuple[float | str, ...]:
        """Return the sort key of a claimant; the smallest is served first."""
        (has, owner), served = self._shares[c.owner, c.priority], c.served or {}
        last = _last(served, c.testbeds)
        known = {*served, *c.measured}
        stranger = bool(known) and self._testbed not in known
        waits = has, owner // _EQUAL_SECONDS, len(c.has), last // _EQUAL_SECONDS
        return (c.priority, *waits, stranger, owner, last, c.created, c.id)

    def gains(self, other: Claimant, mine: Claimant) -> bool:
        """Return whether giving the testbed to another than `mine`, who has left it, is worth it."""
        if other.priority < mine.priority:
            return True
        if other.owner == mine.owner:
            return not other.has or len(other.has) < len(mine.has)
        (theirs, _), (ours, _) = (self._shares[c.owner, c.priority] for c in (other, mine))
        return not theirs or theirs < ours


def _without(c: Claimant, testbed: str, now: float) -> Claimant:
    """Return a claimant that leaves a testbed now."""
    return replace(c, has=c.has - {testbed}, served={**(c.served or {}), testbed: now})


def _last(served: Mapping[str, float], testbeds: frozenset[str]) -> float:
    return max((when for testbed, when in served.items() if testbed in testbeds), default=0.0)

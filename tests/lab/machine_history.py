"""A short history for machines: half-way lie four commits in a row that they are rescued from."""

from __future__ import annotations

from dataclasses import replace

from tests.support.small_history import CHANGES as GUEST_CHANGES
from tests.support.small_history import Change

_PROBE = """\
	u16 max_queue_pairs;
	int mtu = 0;

	/* Find if host supports multiqueue/rss virtio_net device */
"""
_NO_CARD = _PROBE.replace("	/*", "	if (vdev)\n		return -ENODEV;\n\n	/*")
_KTHREADD = "	wait_for_completion(&kthreadd_done);\n"
_PANIC = _KTHREADD + '	panic("this commit does not boot");\n'
_HANG = _KTHREADD + "	while (system_state < SYSTEM_HALT)\n		cpu_relax();\n"
_SLOW = next(change for change in GUEST_CHANGES if change.kind == "slow")
"""On emulated machines the clock on the wall decides, so the loss is one that no load of this host hides."""

_CARDS = "drivers/net/virtio_net.c"

CHANGES = (
    *GUEST_CHANGES[:2],
    Change("virtio_net: Look for no card", _CARDS, _PROBE, _NO_CARD, "no network"),
    Change("init: Give up before the first program", "init/main.c", _KTHREADD, _PANIC, "panic"),
    Change("init: Wait for ever before the first program", "init/main.c", _PANIC, _HANG, "hang"),
    Change("init: Go on to the first program", "init/main.c", _HANG, _KTHREADD, "no network"),
    Change("virtio_net: Look for cards again", _CARDS, _NO_CARD, _PROBE),
    replace(_SLOW, new=_SLOW.new.replace("spin < 400", "spin < 8000")),
    GUEST_CHANGES[-1],
)
"""The ends differ by the eighth."""

CULPRIT = next(number for number, change in enumerate(CHANGES, start=1) if change.kind == "slow")
LAST = len(CHANGES)

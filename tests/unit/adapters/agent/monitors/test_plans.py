"""What the agent is told about monitors."""

from __future__ import annotations

from bisector.adapters.agent.monitors import plan_text, plans
from bisector.schemas.workload.monitors import Monitors

_STAT_COMMAND = "perf stat -j -r 3 -o perfbisect-observed/stat.json -e cycles --"


def test_what_the_agent_is_told() -> None:
    wanted = Monitors().with_requested(["dmesg", "proc=/proc/stat", "ftrace=schedule", "perf-stat=cycles"])
    text = plan_text(plans(wanted))
    assert text.splitlines() == [
        *("monitor dmesg", "log", "monitor proc", "file /proc/stat", "monitor perf-stat"),
        *(f"word {w}" for w in _STAT_COMMAND.split(" ")),
        *("monitor ftrace", "trace schedule"),
    ]

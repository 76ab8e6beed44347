"""Monitors: `plans` returns what the agent does for each; `summarise` reads the files that it sent."""

from bisector.adapters.agent.monitors.monitor_files import summarise
from bisector.adapters.agent.monitors.plans import plan_text, plans

__all__ = ["plan_text", "plans", "summarise"]

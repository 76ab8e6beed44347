"""What watches a workload in runs of its own: `plans` says what the agent does, `summary` what came of it."""

from bisector.adapters.agent.monitors.monitor_files import summarise
from bisector.adapters.agent.monitors.plans import plan_text, plans

__all__ = ["plan_text", "plans", "summarise"]

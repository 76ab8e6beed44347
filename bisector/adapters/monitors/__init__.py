"""What watches a workload in runs of its own: `plans` says what the agent does, `summary` what came of it."""

from bisector.adapters.monitors.plans import plan_text, plans
from bisector.adapters.monitors.summary import summarise

__all__ = ["plan_text", "plans", "summarise"]

"""The planner of `perfbisect try`: three kernels in place of a history."""

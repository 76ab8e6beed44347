"""DBOS workflows: bisection, build, trial; recovery after any kill."""

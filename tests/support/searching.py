"""A planner driven by hand: a straight history, a goal, and what is measured given as a function."""

from bisector.model.records import Booted, Built, CommitGraph, Conclusion, Goal, Left, Metric, Ran, Threshold
from bisector.model.state import fold
from bisector.search.planner import Planner


def linear(n, **more):
    parents = tuple(() if i == 0 else (i - 1,) for i in range(n + 1))
    return CommitGraph(tuple(f"{i:040x}" for i in range(n + 1)), parents, (False, *[True] * n), 0, n, **more)


def goal(**more):
    return Goal(Metric("real", "s", "lower", Threshold(0.05)), **more)


def drive(graph, wanted, value, limit=400, planner=None, unbuildable=()):
    """Carry out what the planner asks; value(commit, run) is what is measured, or None for no boot."""
    planner = planner or Planner()
    records = []
    decisions = []
    for k in range(limit):
        state = fold(graph, wanted, records)
        decision = planner.next(state)
        decisions.append(decision)
        if isinstance(decision, Conclusion):
            return decision, records, decisions
        boot = decision.boot
        if boot is None:
            live = [v.boot for v in state.visits if v.live]
            records += [Left(b) for b in live]
            if decision.commit in unbuildable:
                records.append(Built(decision.commit, False, 20.0, failure="error: simulated"))
                continue
            if (decision.commit, decision.layout) not in state.binaries:
                name = f"k{decision.commit}.{decision.layout}"
                records.append(Built(decision.commit, True, 20.0, name, decision.layout))
            boot = f"b{k}"
            ok = value(decision.commit, 0) is not None
            records.append(
                Booted(boot, decision.commit, "t", ok, 5.0, float(k), decision.layout, decision.purpose)
            )
            if not ok:
                continue
        begun = sum(isinstance(r, Ran) and r.boot == boot for r in records)
        for i in range(decision.runs):
            y = value(decision.commit, begun + i)
            records.append(Ran(boot, begun + i, {"real": y}, 1.0, k + i / 100))
    raise AssertionError("no end")


def step(at, effect=0.1):
    return lambda commit, run: 100.0 * (1 + effect * (commit >= at)) * (1 + 0.001 * ((run * 7919) % 5 - 2))

"""The benchmark's results as Markdown, and the plot of cost against success."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

GOALS: tuple[tuple[str, str, str, str, float], ...] = (
    # cell, rival, quantity, what is compared, at most this part of the rival's
    ("costs 0,0,1 d=0.5", "git-bayesect", "runs", "equal", 0.6),
    ("costs 0,0,1 d=1", "git-bayesect", "runs", "equal", 0.6),
    ("costs 0,0,1 d=2", "git-bayesect", "runs", "equal", 0.75),
    ("costs 0,0,1 d=4", "git-bayesect", "runs", "equal", 1.0),
    ("costs 0,0,1 d=0.5", "git-bayesect", "runs", "as is", 0.9),
    ("costs 0,0,1 d=1", "git-bayesect", "runs", "as is", 0.9),
    ("d 0.5", "git-bayesect", "cost", "equal", 0.25),
    ("centre d=1", "git-bayesect", "cost", "equal", 0.35),
    ("d 2", "git-bayesect", "cost", "equal", 0.55),
    ("d 0.5", "git bisect", "cost", "equal", 0.7),
    ("centre d=1", "git bisect", "cost", "equal", 0.95),
    ("d 2", "git bisect", "cost", "equal", 1.05),
    ("d 0.5", "oracle", "cost", "whole", 1.6),
    ("centre d=1", "oracle", "cost", "whole", 1.5),
    ("d 2", "oracle", "cost", "whole", 1.55),
    ("costs 60,5,1 d=0.5", "git-bayesect", "cost", "equal", 0.25),
    ("costs 60,5,1 d=1", "git-bayesect", "cost", "equal", 0.35),
    ("costs 60,5,1 d=2", "git-bayesect", "cost", "equal", 0.55),
    ("costs 60,5,1 d=0.5", "git bisect", "cost", "equal", 0.7),
    ("costs 60,5,1 d=1", "git bisect", "cost", "equal", 0.95),
    ("costs 60,5,1 d=2", "git bisect", "cost", "equal", 1.05),
)
ORACLE_COST = {"d 0.5": 710.0, "centre d=1": 429.0, "d 2": 295.0}
"""The design's own figures for an oracle at cost (20, 5, 1); the benchmark runs its own as well. It knows all
parameters, only searches, and neither verifies nor proves; ours is the whole search."""
DUTIES = ("verify", "certify")
DECISION_MS, SLOWEST_DECISION_MS = 5.0, 100.0
"""Goals of the time of a decision at 1,024 commits: on average in each cell, and of any one."""
PURPOSES = ("verify", "search", "certify", "attribute")
SEARCHES = """## Searches

Success includes the verification of both ends and the certificate. *Wrong* is any false claim, of all answers
but 'inconclusive'. *Held* is the share of 95% intervals of the total, of proven changes and of the rest that
hold the truth. *At* is the commit of the measured code."""
PARTS = """## Where the cost goes

Mean cost (builds / boots / runs). The bound knows all parameters, and only searches."""
RIVALS = """## Rivals

Each at its cheapest setting with at least 95% success. *Equal duties* adds to it what our verification of the
ends and our certificate cost."""

Line = dict[str, Any]


class Cell:
    """What was measured of one cell: our searches, and the rivals'."""

    def __init__(self, name: str, grid: Line | None, rivals: Line | None) -> None:
        self.name = name
        self.grid = grid or {}
        self.ours: dict[str, Any] | None = self.grid.get("ours")
        self.rivals: dict[str, Any] = (rivals or {}).get("rivals", {})
        self.rivals_line = rivals or {}


def cells_of(lines: Iterable[Line]) -> list[Cell]:
    """Return the cells of these lines, in their order."""
    by_name: dict[str, dict[str, Line]] = {}
    for line in lines:
        by_name.setdefault(line["cell"], {})[line["bench"]] = line
    return [Cell(name, of.get("grid"), of.get("rivals")) for name, of in by_name.items()]


def duties(ours: dict[str, Any], quantity: str) -> float:
    """Return what the ends' verification and the certificate cost us: added to a rival at equal duties."""
    return float(sum(ours["by_purpose"][p][quantity] for p in DUTIES))


def ratio(cell: Cell, rival: str, quantity: str, kind: str) -> tuple[float, float] | None:
    """Return (ours, the rival's) in the quantity, None where the rival cannot be compared."""
    ours, best = cell.ours, cell.rivals.get(rival, {}).get("best")
    if ours is None:
        return None
    mine = float(ours[quantity]["mean"])
    if kind == "whole" and cell.name in ORACLE_COST:
        return mine, ORACLE_COST[cell.name]
    if rival == "oracle":
        best = (cell.rivals.get(rival, {}).get("curve") or [None])[0]
    if not best:
        return None
    return mine, float(best[quantity]) + (duties(ours, quantity) if kind == "equal" else 0.0)


def markdown(lines: Iterable[Line]) -> str:
    """Return all tables."""
    cells = cells_of(lines)
    parts = [
        SEARCHES,
        _searches(cells),
        PARTS,
        _parts(cells),
        RIVALS,
        _rivals(cells),
        "## Goals",
        _goals(cells),
    ]
    errors = [f"- {c.name}: {e}" for c in cells for e in c.grid.get("errors", ())[:3]]
    if errors:
        parts += ["## Defects", "\n".join(errors)]
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def percent(share: Mapping[str, Any]) -> str:
    """Return a share with its interval, in percent."""
    return f"{100 * share['share']:.1f} ({100 * share['low']:.0f}-{100 * share['high']:.0f})"


def _searches(cells: Sequence[Cell]) -> str:
    rows = []
    for cell in cells:
        o = cell.ours
        if not cell.grid:
            continue
        if not o:
            rows.append([cell.name, cell.grid["at"], "every trial failed"] + [""] * 12)
            continue
        sets = f"{o['sets']['count']} x {o['sets']['mean_size']:.1f}" if o["sets"]["count"] else ""
        other = [f"{o[k]} {k}" for k in ("not_reproduced", "incomplete", "spread", "fixed") if o[k]]
        held = [o["intervals"].get(kind) for kind in ("total", "effect", "rest")]
        rows.append(
            [
                cell.name,
                cell.grid["at"],
                str(o["trials"]),
                percent(o["success"]),
                sets,
                f"{o['inconclusive']}",
                ", ".join(other).replace("_", " "),
                f"{o['wrong_claims']['count']} of {o['wrong_claims']['of']}",
                f"{o['mean_confidence']:.3f}",
                " / ".join(f"{100 * h['share']:.0f}" if h else "-" for h in held),
                f"{o['runs']['mean']:.0f}",
                f"{o['boots']['mean']:.0f}",
                f"{o['builds']['mean']:.1f}",
                f"{o['cost']['mean']:.0f} / {o['cost']['p90']:.0f}",
                f"{1000 * o['planner_cpu_seconds_per_decision']:.1f} / {1000 * cell.grid['slowest']:.0f}",
            ]
        )
    head = "cell,at,trials,success % (95%),sets x size,inconclusive,other,wrong,stated,held %"
    more = ["runs", "boots", "builds", "cost mean / p90", "ms a decision mean / max"]
    return table([*head.split(","), *more], rows)


def _parts(cells: Sequence[Cell]) -> str:
    rows = []
    for cell in cells:
        if not cell.ours:
            continue
        row = [cell.name]
        for purpose in PURPOSES:
            p = cell.ours["by_purpose"][purpose]
            row.append(f"{p['cost']:.0f} ({p['builds']:.1f} / {p['boots']:.1f} / {p['runs']:.0f})")
        b = cell.grid.get("bounds")
        row.append(f"{b['search_cost']:.0f}, {b['fano_runs']:.0f} runs" if b else "")
        rows.append(row)
    return table(["cell", *PURPOSES, "bound of the search"], rows)


def _rivals(cells: Sequence[Cell]) -> str:
    rows = []
    for cell in cells:
        measured = [cell.name, cell.rivals_line.get("at", ""), str(cell.rivals_line.get("trials", ""))]
        for name, rival in cell.rivals.items():
            best, curve = rival["best"], rival["curve"]
            if not best:
                top = max(curve, key=lambda c: c["success"])
                text = f"never 95%; at most {100 * top['success']:.0f}% for {top['cost']:.0f}"
                if name != "oracle":
                    rows.append([*measured, name, text, "", "", ""])
                    continue
                best = curve[0]
            shown = []
            for kind in ("as is", "equal"):
                pair = ratio(cell, name, "cost", kind)
                shown.append(f"{pair[0] / pair[1]:.2f}" if pair and pair[1] else "")
            text = f"{100 * best['success']:.0f}% at {best['knob']:g}"
            rows.append(
                [*measured, name, text, f"{best['runs']:.0f}", f"{best['cost']:.0f}", " / ".join(shown)]
            )
    head = "cell,at,trials,rival,success at setting,runs,cost,our cost / its: as is / equal duties"
    return table(head.split(","), rows)


def _goals(cells: Sequence[Cell]) -> str:
    rows = [*_goals_of_cost(cells), *_goals_of_answers(cells), *_goals_of_time(cells)]
    return table(["goal", "at", "trials", "reached", "limit", ""], rows)


def _goal(cell: Cell, label: str, reached: str, limit: str, met: bool, more: str = "") -> list[str]:
    trials = str(cell.ours["trials"]) if cell.ours else ""
    return [label, cell.grid.get("at", ""), trials, reached, limit, ("met" if met else "**missed**") + more]


def _goals_of_cost(cells: Sequence[Cell]) -> list[list[str]]:
    by_name = {c.name: c for c in cells}
    rows = []
    for name, rival, quantity, kind, most in GOALS:
        cell = by_name.get(name)
        pair = ratio(cell, rival, quantity, kind) if cell else None
        if cell is None or cell.ours is None or pair is None:
            continue
        value = pair[0] / pair[1]
        more = "" if cell.ours["success_with_sets"]["share"] >= 0.95 else ", success below 95%"
        reached = f"{pair[0]:.0f} / {pair[1]:.0f} = {value:.2f}"
        label = f"{name}: {quantity} against {rival}, {kind}"
        rows.append(_goal(cell, label, reached, f"{most:g}", value <= most, more))
    centre = by_name.get("centre d=1")
    for name in ("0.1", "0.25", "1"):
        cell = by_name.get(f"threshold/effect {name}")
        if cell and centre and cell.ours and centre.ours:
            value = cell.ours["cost"]["mean"] / centre.ours["cost"]["mean"]
            label = f"threshold / effect {name}: cost against .5"
            rows.append(_goal(cell, label, f"{value:.2f}", "0.85 to 1.15", abs(value - 1) <= 0.15))
    return rows


def _goals_of_answers(cells: Sequence[Cell]) -> list[list[str]]:
    rows = []
    for cell in cells:
        claims = cell.ours["wrong_claims"] if cell.ours else None
        if claims and claims["count"] > 0.05 * claims["of"]:
            met = claims["low"] <= 0.05
            more = ", within chance" if met else ""
            rows.append(_goal(cell, f"{cell.name}: wrong claims", percent(claims), "5%", met, more))
    by_name = {c.name: c for c in cells}
    for name, key, most in (("culprits 0", "not_reproduced", 0.95), ("culprits 2 same sign", "correct", 0.9)):
        found = by_name.get(name)
        if found and found.ours:
            value = found.ours[key] / found.ours["trials"]
            label = f"{name}: {key.replace('_', ' ')}"
            rows.append(_goal(found, label, f"{100 * value:.1f}%", f"{most:.0%}", value >= most))
    return rows


def _goals_of_time(cells: Sequence[Cell]) -> list[list[str]]:
    small = [c for c in cells if c.ours and c.grid["n"] <= 1024]
    if not small:
        return []
    mean, slowest = (
        max(small, key=lambda c: float((c.ours or {})["planner_cpu_seconds_per_decision"])),
        max(small, key=lambda c: float(c.grid["slowest"])),
    )
    ms = 1000 * float((mean.ours or {})["planner_cpu_seconds_per_decision"])
    longest = 1000 * float(slowest.grid["slowest"])
    return [
        _goal(mean, f"mean decision, {mean.name}", f"{ms:.1f} ms", f"{DECISION_MS:g} ms", ms <= DECISION_MS),
        _goal(
            slowest,
            f"longest decision, {slowest.name}",
            f"{longest:.0f} ms",
            f"{SLOWEST_DECISION_MS:g} ms",
            longest <= SLOWEST_DECISION_MS,
        ),
    ]


def plot(lines: Iterable[Line], path: Path) -> None:
    """Draw cost against success for the cells with costs that have rivals: their curves, and our point."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [
        c
        for c in cells_of(lines)
        if c.ours
        and c.rivals
        and (c.grid["factor"] in ("centre", "d") or c.grid["factor"].startswith("costs"))
    ]
    if not shown:
        return
    columns = min(4, len(shown))
    height = -(-len(shown) // columns)
    figure, axes = pyplot.subplots(height, columns, figsize=(4 * columns, 3.2 * height), squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.axis("off")
    for axis, cell in zip(axes.flat, shown, strict=False):
        assert cell.ours is not None
        for name, rival in cell.rivals.items():
            for kind, style in (("as is", ":"), ("equal", "-")):
                more = duties(cell.ours, "cost") if kind == "equal" else 0.0
                costs = [c["cost"] + more for c in rival["curve"]]
                label = f"{name}, {kind}"
                if name == "oracle":
                    if kind == "equal":
                        axis.plot(costs, [100 * c["success"] for c in rival["curve"]], "k+", label=label)
                    continue
                color = "tab:orange" if name == "git bisect" else "tab:blue"
                axis.plot(
                    costs, [100 * c["success"] for c in rival["curve"]], style, color=color, label=label
                )
        o = cell.ours
        s = o["success"]
        error = [[100 * (s["share"] - s["low"])], [100 * (s["high"] - s["share"])]]
        axis.errorbar(
            [o["cost"]["mean"]], [100 * s["share"]], yerr=error, fmt="o", color="tab:red", label="perfbisect"
        )
        axis.axhline(95, color="gray", linewidth=0.5)
        axis.set(title=cell.name, xscale="log", ylim=(40, 101), xlabel="mean cost", ylabel="success, %")
    axes.flat[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)

"""The benchmark's results as Markdown, and the plot of cost against success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

GOALS: tuple[tuple[str, str, str, str, float], ...] = (
    # cell, rival, quantity, duties, at most this part of the rival's
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
    ("d 0.5", "oracle", "cost", "search", 1.15),
    ("centre d=1", "oracle", "cost", "search", 1.15),
    ("d 2", "oracle", "cost", "search", 1.15),
    ("costs 60,5,1 d=0.5", "git-bayesect", "cost", "equal", 0.25),
    ("costs 60,5,1 d=1", "git-bayesect", "cost", "equal", 0.35),
    ("costs 60,5,1 d=2", "git-bayesect", "cost", "equal", 0.55),
    ("costs 60,5,1 d=0.5", "git bisect", "cost", "equal", 0.7),
    ("costs 60,5,1 d=1", "git bisect", "cost", "equal", 0.95),
    ("costs 60,5,1 d=2", "git bisect", "cost", "equal", 1.05),
)
ORACLE_COST = {"d 0.5": 710.0, "centre d=1": 429.0, "d 2": 295.0}
"""The design's own figures for an oracle at cost (20, 5, 1); the benchmark runs its own as well."""
DUTIES = ("verify", "certify")


def duties(ours: dict[str, Any], quantity: str) -> float:
    """Return what the ends' verification and the certificate cost us: added to a rival at equal duties."""
    return float(sum(ours["by_purpose"][p][quantity] for p in DUTIES))


def ratio(cell: dict[str, Any], rival: str, quantity: str, kind: str) -> tuple[float, float] | None:
    """Return (ours, the rival's) in the quantity, None where the rival cannot be compared."""
    ours, best = cell["ours"], cell["rivals"].get(rival, {}).get("best")
    if rival == "oracle":
        best = (cell["rivals"].get(rival, {}).get("curve") or [None])[0]
    if not ours or not best:
        return None
    if kind == "search":
        return float(ours["by_purpose"]["search"][quantity]), float(best[quantity])
    mine = float(ours[quantity]["mean"])
    return mine, float(best[quantity]) + (duties(ours, quantity) if kind == "equal" else 0.0)


def markdown(report: dict[str, Any]) -> str:
    """Return the whole report."""
    parts = [
        "# Search benchmark",
        f"{report['trials']} trials a cell (weighted), seed {report['seed']}, {report['seconds']:.0f} s. "
        "Success of perfbisect includes the verification of both ends and the certificate.",
        _cells(report),
        "## Where the cost goes (mean)",
        _parts(report),
        "## Rivals at their cheapest setting with at least 95% success",
        _rivals(report),
        "## Goals",
        _goals(report),
    ]
    errors = [f"- {c['name']}: {e}" for c in report["cells"] for e in c["errors"][:3]]
    if errors:
        parts += ["## Defects", "\n".join(errors)]
    return "\n\n".join(parts) + "\n"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _percent(share: dict[str, Any]) -> str:
    return f"{100 * share['share']:.1f} ({100 * share['low']:.0f}-{100 * share['high']:.0f})"


def _cells(report: dict[str, Any]) -> str:
    rows = []
    for cell in report["cells"]:
        o = cell["ours"]
        if not o:
            rows.append([cell["name"], "every trial failed"] + [""] * 12)
            continue
        sets = f"{o['sets']['count']} x {o['sets']['mean_size']:.1f}" if o["sets"]["count"] else ""
        other = [f"{o[k]} {k}" for k in ("not_reproduced", "incomplete", "spread", "fixed") if o[k]]
        rows.append(
            [
                cell["name"],
                str(o["trials"]),
                _percent(o["success"]),
                sets,
                f"{o['wrong']}",
                f"{o['inconclusive']}",
                ", ".join(other).replace("_", " "),
                _percent(o["wrong_claims"]),
                f"{o['mean_confidence']:.3f}",
                f"{100 * o['total_within_interval']['share']:.0f}",
                f"{o['runs']['mean']:.0f}",
                f"{o['boots']['mean']:.0f}",
                f"{o['builds']['mean']:.1f}",
                f"{o['cost']['mean']:.0f} / {o['cost']['p90']:.0f}",
                f"{1000 * o['planner_cpu_seconds_per_decision']:.1f}",
            ]
        )
    head = "cell,trials,success % (95%),sets x size,wrong,inconcl.,other,wrong of claims %,stated,total in %"
    return _table([*head.split(","), "runs", "boots", "builds", "cost mean / p90", "ms a decision"], rows)


def _parts(report: dict[str, Any]) -> str:
    rows = []
    for cell in report["cells"]:
        if not cell["ours"]:
            continue
        row = [cell["name"]]
        for purpose in ("verify", "search", "certify", "attribute"):
            p = cell["ours"]["by_purpose"][purpose]
            row.append(f"{p['cost']:.0f} ({p['builds']:.1f} / {p['boots']:.1f} / {p['runs']:.0f})")
        b = cell["bounds"]
        row.append(f"{b['search_cost']:.0f}, {b['fano_runs']:.0f} runs" if b else "")
        rows.append(row)
    return _table(
        [
            "cell: cost (builds / boots / runs)",
            "verify",
            "search",
            "certify",
            "attribute",
            "bound of the search",
        ],
        rows,
    )


def _rivals(report: dict[str, Any]) -> str:
    rows = []
    for cell in report["cells"]:
        for name, rival in cell["rivals"].items():
            best, curve = rival["best"], rival["curve"]
            if not best:
                top = max(curve, key=lambda c: c["success"])
                text = f"never 95%; at most {100 * top['success']:.0f}% for {top['cost']:.0f}"
                if name != "oracle":
                    rows.append([cell["name"], name, text, "", "", ""])
                    continue
                best = curve[0]
            shown = []
            for kind in ("as is", "equal"):
                pair = ratio(cell, name, "cost", kind)
                shown.append(f"{pair[0] / pair[1]:.2f}" if pair and pair[1] else "")
            text = f"{100 * best['success']:.0f}% at {best['knob']:g}"
            rows.append(
                [cell["name"], name, text, f"{best['runs']:.0f}", f"{best['cost']:.0f}", " / ".join(shown)]
            )
    return _table(
        ["cell", "rival", "success at setting", "runs", "cost", "our cost / its: as is / equal duties"], rows
    )


def _goals(report: dict[str, Any]) -> str:
    by_name = {c["name"]: c for c in report["cells"]}
    rows = []
    for name, rival, quantity, kind, most in GOALS:
        cell = by_name.get(name)
        pair = ratio(cell, rival, quantity, kind) if cell else None
        if rival == "oracle" and pair and name in ORACLE_COST:
            pair = pair[0], ORACLE_COST[name]
        if cell is None or pair is None:
            continue
        value = pair[0] / pair[1]
        enough = cell["ours"]["success"]["share"] >= 0.95
        verdict = ("met" if value <= most else "missed") + ("" if enough else " (success below 95%)")
        label = f"{name}: {quantity} against {rival}, {kind}"
        rows.append([label, f"{pair[0]:.0f} / {pair[1]:.0f} = {value:.2f}", f"{most:g}", verdict])
    centre = by_name.get("centre d=1")
    for name in ("0.1", "0.25", "1"):
        cell = by_name.get(f"threshold/effect {name}")
        if cell and centre and cell["ours"] and centre["ours"]:
            value = cell["ours"]["cost"]["mean"] / centre["ours"]["cost"]["mean"]
            ok = "met" if abs(value - 1) <= 0.15 else "missed"
            rows.append([f"threshold / effect {name}: cost against .5", f"{value:.2f}", "0.85 to 1.15", ok])
    for cell in report["cells"]:
        if cell["ours"]:
            claims = cell["ours"]["wrong_claims"]
            if claims["low"] > 0.05:
                rows.append([f"{cell['name']}: wrong among claims", _percent(claims), "5%", "missed"])
    for name, key, most in (("culprits 0", "not_reproduced", 0.95), ("culprits 2 same sign", "correct", 0.9)):
        cell = by_name.get(name)
        if cell and cell["ours"]:
            value = cell["ours"][key] / cell["ours"]["trials"]
            ok = "met" if value >= most else "missed"
            rows.append([f"{name}: {key.replace('_', ' ')}", f"{100 * value:.1f}%", f"{most:.0%}", ok])
    slow = max(
        (
            c["ours"]["planner_cpu_seconds_per_decision"]
            for c in report["cells"]
            if c["ours"] and c["n"] <= 1024
        ),
        default=0,
    )
    rows.append(
        [
            "slowest mean decision, n <= 1024",
            f"{1000 * slow:.1f} ms",
            "5 ms",
            "met" if slow <= 0.005 else "missed",
        ]
    )
    return _table(["goal", "reached", "limit", ""], rows)


def plot(report: dict[str, Any], path: Path) -> None:
    """Draw cost against success for the cells with costs that have rivals: their curves, and our point."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [
        c
        for c in report["cells"]
        if c["ours"] and c["rivals"] and (c["factor"] in ("centre", "d") or c["factor"].startswith("costs"))
    ]
    if not shown:
        return
    columns = min(4, len(shown))
    height = -(-len(shown) // columns)
    figure, axes = pyplot.subplots(height, columns, figsize=(4 * columns, 3.2 * height), squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.axis("off")
    for axis, cell in zip(axes.flat, shown, strict=False):
        for name, rival in cell["rivals"].items():
            for kind, style in (("as is", ":"), ("equal", "-")):
                more = duties(cell["ours"], "cost") if kind == "equal" else 0.0
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
        o = cell["ours"]
        s = o["success"]
        error = [[100 * (s["share"] - s["low"])], [100 * (s["high"] - s["share"])]]
        axis.errorbar(
            [o["cost"]["mean"]], [100 * s["share"]], yerr=error, fmt="o", color="tab:red", label="perfbisect"
        )
        axis.axhline(95, color="gray", linewidth=0.5)
        axis.set(title=cell["name"], xscale="log", ylim=(40, 101), xlabel="mean cost", ylabel="success, %")
    axes.flat[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)

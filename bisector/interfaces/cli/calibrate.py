"""`perfbisect calibrate`: how noisy is this testbed under this workload, and what can it show?"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bisector.interfaces.cli import options, output
from bisector.interfaces.cli.arguments import completion
from bisector.interfaces.cli.arguments.number_options import whole
from bisector.model.format import count, two_figures
from bisector.report.phrases import duration

if TYPE_CHECKING:
    from bisector.app.calibrate import KexecComparison
    from bisector.model.decisions import Interval
    from bisector.stats.aa_analysis import Calibration


def command(
    rev: Annotated[
        str,
        completion.commit_argument("The commit to measure."),
    ] = "HEAD",
    workload: options.WorkloadName = None,
    testbed: options.Testbed = None,
    boots: Annotated[int, whole(2, 10_000, "Boots in total, with those stored before.")] = 8,
    runs: Annotated[int, whole(2, 10_000, "Runs in each boot.")] = 10,
    metric: options.Metric = None,
    recipe: options.RecipeName = None,
    repo: options.Repo = None,
    trust_repo: options.TrustRepo = False,
    lab: options.Lab = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use boots stored before.")] = False,
    kexec: Annotated[
        bool, typer.Option("--kexec", help="Compare boots by kexec with boots after a reboot, half of each.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure one commit again and again (A/A): noise, drift, false alarms, smallest detectable effect.

    The result is stored for the workload on this testbed. Later bisections and 'perfbisect plan' use it. Each
    boot is stored when it ends: after Ctrl-C, the same command continues.

    With --kexec it shows instead whether a kernel measures the same on a machine where
    perfbisect_between_boots is kexec.

    Examples:

      perfbisect calibrate v6.1 --repo ~/linux --workload pipe-test

      perfbisect calibrate v6.1 --workload pipe-test --boots 20 --json

      perfbisect calibrate v6.1 --testbed box1 --workload pipe-test --kexec --boots 12
    """
    from bisector.app import single_run

    wiring = options.make_wiring(lab=lab, repo=repo, trust_repo=trust_repo)
    wanted = single_run.RepeatedRuns(
        rev,
        workload=options.workload_name(wiring.settings, workload),
        testbed=testbed,
        recipe=recipe or wiring.settings.recipe,
        metric=metric,
        boots=boots,
        runs=runs,
        fresh=fresh,
    )
    if kexec:
        compared, path = single_run.kexec_comparison(wiring, wanted, output.print_note)
        if as_json:
            output.print_json({**dataclasses.asdict(compared), "kept": str(path)})
        else:
            print(kexec_text(compared, path))
        return
    result, path = single_run.calibration(wiring, wanted, output.print_note)
    if as_json:
        output.print_json({**calibration_json(result), "kept": str(path)})
        return
    print(calibration_text(result, path))


def calibration_json(result: Calibration) -> dict[str, Any]:
    """Return the calibration as JSON data; deviations, drift and effects are relative to the level."""
    smallest = [{"boots": b, "runs": k, "effect": effect} for b, k, effect in result.smallest]
    return {**dataclasses.asdict(result), "smallest": smallest}


def calibration_text(result: Calibration, path: Path) -> str:
    """Return the calibration for people."""
    rows = {
        "level": f"{result.level:g}, from {result.runs} runs in {result.boots} boots",
        "runs of a boot spread": _with_interval(result.run_sd),
        "boots spread": _with_interval(result.boot_sd),
        "drift": _drift(result),
        "neighbouring runs": f"correlate by {result.correlation:+.2f}",
        "outliers": f"{result.outliers} of {result.runs} runs",
        "modes": _modes(result),
        "false alarms": _alarms(result),
        "best use of the time": f"{count(result.runs_per_boot, 'run')} a boot",
    }
    lines = [output.pairs(rows, indent="  "), "", "The smallest effect that is shown 19 times in 20:", ""]
    runs = sorted({k for _, k, _ in result.smallest})
    table = [
        [f"{b} boots a side", *(two_figures(result.smallest_effect(b, k)) for k in runs)]
        for b in sorted({b for b, _, _ in result.smallest})
    ]
    lines.append(output.table(["", *(f"{k} run{'s' * (k > 1)} a boot" for k in runs)], table))
    lines += [f"warning: {warning}" for warning in result.warnings]
    lines += ["", f"kept in {path}; bisections with this workload on this testbed start from it"]
    return "\n".join(lines)


def kexec_text(result: KexecComparison, path: Path) -> str:
    """Return the comparison of kexec with reboots for people."""
    found = result.compared
    rows = [
        (side.name, str(side.boots), str(side.runs), f"{side.median:g} {found.unit}", two_figures(side.cv))
        for side in (found.a, found.b)
    ]
    lines = [output.table(("", "BOOTS", "RUNS", "MEDIAN", "SPREAD"), rows), ""]
    change = _with_interval(found.effect, "+")
    if found.significant:
        lines.append(f"kexec differs: {change}, p {found.p:.2g}. Leave perfbisect_between_boots: reboot.")
    elif found.verdict == "same":
        lines.append(f"kexec measures the same within the metric's threshold: {change}.")
    else:
        lines.append(f"no difference is shown, nor excluded: {change}. More boots tell more.")
    if result.saved > 0 and not found.significant:
        lines.append(f"perfbisect_between_boots: kexec saves {duration(result.saved)} a boot.")
    lines += [f"warning: {warning}" for warning in found.warnings]
    return "\n".join([*lines, "", f"kept in {path}"])


def _with_interval(value: Interval, sign: str = "") -> str:
    size, low, high = (two_figures(x, sign) for x in (value.estimate, value.low, value.high))
    return f"{size} (95% interval {low} to {high})"


def _drift(result: Calibration) -> str:
    if result.drift is None:
        return "not known; it takes four boots"
    size, low, high = (
        two_figures(x, "+") for x in (result.drift.estimate, result.drift.low, result.drift.high)
    )
    size = f"{size} an hour ({low} to {high})"
    return size if result.drifts else f"none to be seen: {size}"


def _modes(result: Calibration) -> str:
    if result.modes is None:
        return "one"
    modes = result.modes
    owner = "a boot keeps its mode" if modes.by_boot else "runs change between them"
    return f"two, {two_figures(modes.high - modes.low)} apart, {100 * modes.share:.0f}% high; {owner}"


def _alarms(result: Calibration) -> str:
    if result.alarms is None or result.naive_alarms is None:
        return "not known; it takes four boots"
    return (
        f"{100 * result.alarms:.0f}% at alpha {result.alpha:g} comparing boots; "
        f"{100 * result.naive_alarms:.0f}% if runs counted as independent"
    )

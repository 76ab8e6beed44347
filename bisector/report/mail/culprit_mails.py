"""Mails about a culprit: to the lab, and to those who wrote and keep the code."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from bisector.model.commit_graph import as_written, described
from bisector.model.decisions import Finding
from bisector.model.format import count
from bisector.model.machines.firmware import TESTBED
from bisector.model.outbox import State
from bisector.model.stored_bisection import workload_name
from bisector.report import phrases, stored_samples, text, trials
from bisector.report.comparison import kernel_test_robot
from bisector.report.mail import measured_on
from bisector.report.mail.paragraphs import MAIL_WIDTH, paragraph
from bisector.report.report_model import Material
from bisector.report.sections import reproduction
from bisector.schemas.request import command_line
from bisector.stats import comparison_table

_MAX_SUBSYSTEM_CHARACTERS = 40
"""Characters of a subsystem in a subject line: chosen, real prefixes of commits are shorter."""
_MAX_COMMIT_CHARACTERS = 120
"""Characters of a commit's subject in a mail's: chosen, the kernel's are a line. The text has all of it."""
_PARAMETERS = ("recipe", "threshold", "apply", "with_fix")
"""Fields of the request that a reader needs to do the same; paths and names of the lab stay private."""


def size_in_words(material: Material, finding: Finding) -> str:
    """Return '19.4% slower': a sign alone can be read two ways."""
    effect = finding.effect.estimate
    return f"{phrases.tenths(100 * abs(effect))}% {phrases.verdict(effect, material.goal.metric)}"


def lab_subject(material: Material, finding: Finding) -> str:
    """Return the subject of a report to the lab."""
    commit = material.commit(finding.commits[-1])
    culprit = described(commit.sha, phrases.cut(commit.subject, _MAX_COMMIT_CHARACTERS))
    return f"{workload_of(material)} {size_in_words(material, finding)} since {culprit}"


def lab_text(
    material: Material, link: str, state: State | None, reasons: Sequence[str], others: Sequence[str] = ()
) -> str:
    """Return a report to the lab: the result, and what becomes of a report to maintainers.

    link: to the report on a web server, or where it lies; state: of the mail to maintainers, and why; None
    where there is none; others: lines of what else the culprit changes (`effects_table`).
    """
    out = [*text.short(material).splitlines(), "", *others, *whole_report(material, link), ""]
    if state is None:
        words = "There is no mail to maintainers: it was found among listed kernels, not commits."
        out += paragraph(words)
    elif state == "draft":
        out.append("There is a draft for the maintainers that is not to be sent:")
    elif state == "approved":
        words = (
            "A mail to the maintainers is sent without approval, for the series is public: 'perfbisect mail "
            "list' shows it."
        )
        out += paragraph(words)
    else:
        words = (
            "A mail to the maintainers waits for approval: 'perfbisect mail list' shows it, 'perfbisect mail "
            "approve' sends it."
        )
        out += paragraph(words)
    return phrases.page([*out, *phrases.bullets(reasons, width=MAIL_WIDTH)])


def whole_report(material: Material, link: str) -> list[str]:
    """Return what was measured, under which name, and where all of it is read."""
    words = f"Measured: {metric_of(material)}"
    if material.attempt is None and older_end(material):
        words += f" from {older_end(material)} to {newer_end(material)}"
    return [*paragraph(f"{words} (bisection {material.id})."), f"The whole report: {link}"]


def ready_text(material: Material, finding: Finding, number: int) -> str:
    """Return the note to the lab that nothing speaks against a mail to maintainers any more.

    number: of that mail in the outbox.
    """
    commit = material.commit(finding.commits[-1])
    words = (
        f'What spoke against the mail to the maintainers of {commit.sha[:12]} ("{commit.subject}") is over: '
        f"it waits for approval now. 'perfbisect mail preview {number}' shows it, 'perfbisect mail approve "
        f"{number}' sends it, 'perfbisect mail stop {number}' does not."
    )
    return phrases.page(paragraph(words))


def upstream_subject(material: Material, finding: Finding, branch: str = "") -> str:
    """Return '[linux:v6.2] [x86]  4444444444: pipe-test.real 19.4% slower', the kernel test robot's form.

    branch: that was measured, where it is known; else the name of the newer end stands there.
    """
    commit = material.commit(finding.commits[-1])
    return (
        f"[{_tree(material)}:{branch or newer_end(material)}] [{_subsystem(commit.subject)}]  "
        f"{commit.sha[:10]}: {metric_of(material)} {size_in_words(material, finding)}"
    )


def upstream_text(
    material: Material,
    finding: Finding,
    *,
    reporter: str,
    link: str,
    notes: Sequence[str] = (),
    branch: str = "",
    url: str = "",
    others: Sequence[str] = (),
) -> str:
    """Return the mail to author, maintainers and lists.

    reporter, link: for the tags of a fix; notes: what is missing; branch: as in the subject; url: where the
    tree is fetched from, '' if others do not get it there; others: lines of what else the commit changes.
    """
    culprit, metric = finding.commits[-1], material.goal.metric
    commit, machines = material.commit(culprit), measured_on.machines(material, finding)
    out = ["Hello,", ""]
    words = f"perfbisect noticed that {metric_of(material)} is {size_in_words(material, finding)} on:"
    out += [*paragraph(words), "", "", f'commit: {commit.sha} ("{commit.subject}")']
    out += [
        f"git tree: {url or _tree(material)} {branch or newer_end(material)}",
        "",
        f"testcase: {workload_of(material)}",
    ]
    out += [*measured_on.lines(material, finding, machines), "parameters:", ""]
    out += [f"\t{name}: {value}" for name, value in parameters_of(material).items()]
    words = (
        f"The metric {metric.name} is in {metric.unit}; {metric.better} is better. The change, with its 95% "
        f"interval, is {phrases.effect(finding.effect, metric)}. {_proof(material, finding)}"
    )
    out += ["", *paragraph(words), ""]
    for note in notes:
        out += [*paragraph(note), ""]
    words = (
        "If you fix the issue in a separate patch or commit (not just a new version of the same one), "
        "please add these tags:"
    )
    fixes = f'| Fixes: {commit.sha[:12]} ("{commit.subject}")'
    out += [
        *paragraph(words),
        fixes,
        f"| Reported-by: {reporter}",
        f"| Closes: {link}",
        "",
    ]
    out += [
        *(("", *others) if others else ()),
        "",
        f"#regzbot introduced: {commit.sha[:12]}",
        "",
        "",
        "Details are as below:",
        "=" * MAIL_WIDTH,
        *_setting(material),
        "",
    ]
    out += [f"commit: {material.label(parent)}" for parent in finding.parents]
    out += [f"commit: {material.label(culprit)}", "", *table(material, finding, machines), ""]
    out += ["", "To reproduce:", "", *(f"\t{line}" for line in _steps(material, finding)), ""]
    words = f"The numbers are those of the machine{'s' * (len(machines) > 1)} above. "
    words += "Other hardware, compilers and settings may show others."
    return phrases.page([*out, "", *paragraph(words)])


def table(material: Material, finding: Finding, machines: Mapping[str, str]) -> list[str]:
    """Return the comparison of a culprit with its first parent in the columns of the kernel test robot.

    machines: what the testbeds are called (`measured_on`).
    """
    metric = material.goal.metric
    columns = [
        [
            replace(one, testbed=machines[bed])
            for one in stored_samples.sets(material, index, material.commit(index).sha, {metric.name: metric})
            if (bed := one.facts.get(TESTBED, "")) in machines
        ]
        for index in (*finding.parents[:1], finding.commits[-1])
    ]
    if len(columns) < 2 or not all(columns):
        return ["The samples are no longer there."]
    try:
        found = comparison_table.build(columns, alpha=material.goal.alpha)
    except ValueError:
        return ["The two kernels have no metric in common."]
    return kernel_test_robot.render(replace(found, sentences=(), warnings=())).splitlines()


def workload_of(material: Material) -> str:
    """Return the workload's name, without the folder that it lies in."""
    return workload_name(str(material.request.get("workload") or "a command"))


def metric_of(material: Material) -> str:
    """Return 'pipe-test.real'."""
    return f"{workload_of(material)}.{material.goal.metric.name}"


def parameters_of(material: Material) -> dict[str, str]:
    """Return what a reader needs to do the same, by name."""
    found = {"metric": f"{material.goal.metric.name} ({material.goal.metric.unit})"}
    found["clock"] = material.goal.clock
    for name in _PARAMETERS:
        value = material.request.get(name)
        if value:
            found[name] = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    for kernel in (material.kernel(material.graph.bad), material.kernel(material.graph.good)):
        if kernel.toolchain:
            found.setdefault("compiler", kernel.toolchain)
    return found


def _setting(material: Material) -> list[str]:
    """Return 'clock/compiler/testcase:' and the values below it, the kernel test robot's two lines."""
    known = {**parameters_of(material), "testcase": workload_of(material)}
    del known["metric"]
    values = ("-".join(value.split()).replace("/", "-") for value in known.values())
    return ["/".join(known) + ":", "  " + "/".join(values)]


def newer_end(material: Material) -> str:
    """Return the name of the newer end, as the user wrote it; of a full id the beginning."""
    return _end(material, material.goal.terms.new)


def older_end(material: Material) -> str:
    """Return the name of the older end likewise."""
    return _end(material, material.goal.terms.old)


def _end(material: Material, which: str) -> str:
    return as_written(str(material.request.get(which) or ""))


def _tree(material: Material) -> str:
    return PurePath(str(material.request.get("repo") or "linux")).name.removesuffix(".git") or "linux"


def _subsystem(subject: str) -> str:
    """Return what stands before the last colon of a subject, as kernel commits have it."""
    before = subject.rpartition(": ")[0]
    return before[:_MAX_SUBSYSTEM_CHARACTERS] or "kernel"


def _proof(material: Material, finding: Finding) -> str:
    both = (*finding.parents[:1], finding.commits[-1])
    found = [*trials.levels_by_testbed(material, both).values()] if finding.parents else []
    levels = ""
    if len(found) == 1:  # the table has those of each of several testbeds
        before, after = found[0]
        levels = (
            f" The means of all boots{material.pattern.words} are {phrases.number(before, after)} and "
            f"{phrases.number(after)} {material.goal.metric.unit}."
        )
    parents = "its parent" if len(finding.parents) < 2 else f"each of its {len(finding.parents)} parents"
    boots = count(trials.fresh_boots(material, finding), "fresh boot")
    return f"The commit was compared with {parents} in {boots}, interleaved.{levels}"


def _steps(material: Material, finding: Finding) -> list[str]:
    """Return the commands, with a checkout of the reader's own in place of the lab's paths.

    A command of `--run` is a workload only inside its bisection: elsewhere its two kernels are compared anew.
    """
    assert material.conclusion is not None, "only a conclusion has a culprit"
    request = {k: v for k, v in material.request.items() if k != "testbeds"} | {"repo": _tree(material)}
    if request.get("run"):
        old, new = (material.graph.shas[i] for i in (finding.parents[0], finding.commits[-1]))
        ends: dict[str, str] = {material.goal.terms.old: old, material.goal.terms.new: new}
        return [shlex.join(command_line({**request, **ends, "skip": (), "paths": (), "priors": ""}))]
    request["workload"] = workload_of(material)
    alone = replace(material.conclusion, findings=(finding,))  # other culprits are of other maintainers
    single, _ = reproduction.commands(replace(material, request=request), alone)
    return [line for line in single if not line.startswith("git ")]

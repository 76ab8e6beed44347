"""Other effects of a culprit, laid out as in the kernel test robot's mails: one row for each proof."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from bisector.model.decisions import Finding
from bisector.model.printable import printable_line
from bisector.report import phrases
from bisector.report.mail.culprit_mails import metric_of, parameters_of
from bisector.report.mail.measured_on import machine_of
from bisector.report.mail.paragraphs import MAIL_WIDTH, paragraph
from bisector.report.report_model import Material

MAX_EFFECTS = 10
"""Most effects in a mail: chosen, so that a reader can compare them at a glance; the rest is only counted."""
_NAME = 16
"""Columns of the names at the left: 'testcase: change'."""
_VALUE = MAIL_WIDTH - _NAME - len("|  |  |")
_MAX_VALUE_CHARACTERS = 200
"""Characters of a value that are shown: chosen, four lines of the box."""


def render(effects: Sequence[tuple[Material, Finding]], *, lab: bool = False) -> list[str]:
    """Return the lines of a section; none where nothing else is known.

    effects: other bisections that have proven the same commit, each with its finding; lab: whether readers
    may know their ids.
    """
    if not effects:
        return []
    text = "The commit also changes these, each proven by fresh boots in a bisection of its own:"
    rule = f"+{'-' * (_NAME + 2)}+{'-' * (_VALUE + 2)}+"
    out = [*paragraph(text), "", rule]
    for material, finding in effects[:MAX_EFFECTS]:
        for name, value in _rows(material, finding, lab=lab).items():
            out += _cell(name, value)
        out.append(rule)
    if len(effects) > MAX_EFFECTS:
        out.append(f"and {len(effects) - MAX_EFFECTS:,} more")
    return [*out, ""]


def _rows(material: Material, finding: Finding, *, lab: bool) -> dict[str, str]:
    effect = phrases.effect(finding.effect, material.goal.metric)
    found = {
        "testcase: change": f"{metric_of(material)} {effect}",
        "test machine": machine_of(material, finding.commits[-1]),
        "test parameters": ", ".join(
            f"{name}={value}" for name, value in parameters_of(material).items() if name != "metric"
        ),
    }
    return {**found, "bisection": material.id} if lab else found


def _cell(name: str, value: str) -> list[str]:
    """Return a row of the box. What is hostile is escaped first, so that its lines keep their width."""
    shown = printable_line(value)[:_MAX_VALUE_CHARACTERS]
    lines = textwrap.wrap(shown, _VALUE) or [""]
    names = [name, *[""] * (len(lines) - 1)]
    return [f"| {left:<{_NAME}} | {line:<{_VALUE}} |" for left, line in zip(names, lines, strict=True)]

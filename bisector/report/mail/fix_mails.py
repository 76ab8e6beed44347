"""Mails about a culprit that a later commit reverts or mends."""

from __future__ import annotations

from bisector.model.commit_graph import described
from bisector.model.decisions import Finding
from bisector.report import phrases
from bisector.report.mail.culprit_mails import metric_of, size_in_words
from bisector.report.mail.paragraphs import paragraph
from bisector.report.report_model import Material


def later_commit(fix: str, subject: str, *, is_revert: bool) -> str:
    """Return what is known of a culprit from a later commit's words alone."""
    does = "reverts it" if is_revert else "names it in 'Fixes:'"
    return f"a later commit {does} (not measured): {described(fix, subject)}"


def fixed_text(
    material: Material,
    finding: Finding,
    *,
    fix: str,
    fix_subject: str,
    is_revert: bool,
    back_since: str,
    back_subject: str,
) -> str:
    """Return the follow-up for the thread of a culprit's report: a later commit reverts it, or mends it.

    back_since: the commit since which at the latest the old level is measured, with the fix in it; '' if it
    is not.
    """
    culprit, size = material.label(finding.commits[-1]), size_in_words(material, finding)
    does = "reverts that commit" if is_revert else "names that commit in 'Fixes:'"
    text = f"{metric_of(material)} {'was' if back_since else 'has been'} {size} since {culprit}. "
    text += f"A later commit {does}: {described(fix, fix_subject)}. "
    if not back_since:
        text += "Whether the old level is back was not measured."
    elif back_since == fix:
        text += "Since then the old level is measured again."
    else:
        back = described(back_since, back_subject)
        text += f"The old level is measured again, at the latest since {back}, which has it in its history."
    out = paragraph(text)
    return phrases.page([*out, "", f"#regzbot fix: {fix[:12]}"] if is_revert or back_since else out)

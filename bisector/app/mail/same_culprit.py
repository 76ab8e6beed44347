"""Other bisections of the store that have proven the same commit, by other workloads, metrics or machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bisector.app.load_report import load_material
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError
from bisector.report.mail.culprit_mails import metric_of
from bisector.report.mail.may_send import doubts_about
from bisector.report.mail.measured_on import machine_of

if TYPE_CHECKING:
    from bisector.model.decisions import Finding
    from bisector.report.report_model import Material


def other_effects(
    wiring: Wiring, material: Material, finding: Finding, *, suspect: Mapping[str, str]
) -> list[tuple[Material, Finding]]:
    """Return what others have proven of a culprit, newest first: one for each metric of a kind of machine.

    suspect: testbeds that are not good now. Findings that could not be reported to maintainers on their own
    are left out. A loss counts as well as a gain that was searched for.
    """
    sha = material.graph.shas[finding.commits[-1]]
    told = {(metric_of(material), machine_of(material, finding.commits[-1]))}
    found = []
    for summary in wiring.store.list(statuses=["done"]):
        if summary.id == material.id or sha not in summary.culprits:
            continue
        try:
            other = load_material(wiring, summary.id)
        except PerfbisectError:  # it was removed just now, or cannot be read
            continue
        for one in other.conclusion.culprits if other.conclusion is not None else ():
            if not _is_proof(other, one, sha) or doubts_about(other, one, suspect=suspect):
                continue
            what = metric_of(other), machine_of(other, one.commits[-1])
            if what not in told:
                told.add(what)
                found.append((other, one))
    return found


def _is_proof(material: Material, finding: Finding, sha: str) -> bool:
    """Return whether a finding is that one commit, proven; a patch that was tried is another kernel."""
    commits = [material.graph.shas[index] for index in finding.commits]
    return finding.certified and commits == [sha] and material.attempt is None

"""The operations on the database of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bisector.app.operations import bisection_values
from bisector.app.operations.foreign_requests import ForeignRequests
from bisector.app.operations.local_alerts import LocalAlerts
from bisector.app.operations.local_outbox import LocalOutbox
from bisector.app.operations.local_series import LocalSeries
from bisector.app.operations.operations import Said, Values
from bisector.app.wiring import Wiring
from bisector.model.stored_bisection import Action

if TYPE_CHECKING:
    from bisector.app.watching.watch_bisection import Watching
    from bisector.linux.profile import Profile
    from bisector.model.leases import TestbedState
    from bisector.model.stored_bisection import Stored
    from bisector.ports import Progress
    from bisector.report.report_model import Material
    from bisector.stats.samples import SampleSet


class LocalOperations(LocalAlerts, LocalSeries, LocalOutbox, ForeignRequests):
    """operations.Operations, carried out here."""

    def __init__(self, wiring: Wiring, person: str = "", progress: Progress = lambda text: None) -> None:
        """person: who asks; by default the owner in the settings. progress: called with what takes long."""
        self._wiring, self._progress = wiring, progress
        self._person = person or wiring.settings.owner

    def bisections(self, limit: int | None) -> list[Values]:
        """Return the rows of `list`, the latest first."""
        from bisector.app.execution.current_status import current_statuses, latest_searches

        store = self._wiring.store
        found = store.list() if limit is None else latest_searches(store, limit)
        statuses = current_statuses(self._wiring, found)
        return [
            bisection_values.list_row(summary, status)
            for summary, status in zip(found, statuses, strict=True)
        ]

    def status(self, identity: str | None) -> Values:
        """Return what `status` prints."""
        return bisection_values.status_values(self._material(identity))

    def trials(self, identity: str | None) -> list[Values]:
        """Return every trial."""
        from bisector.report import json_report

        found: list[Values] = json_report.render(self._material(identity))["trials"]
        return found

    def drawing(self, identity: str | None, width: int) -> Values:
        """Return the lines of 'pictures' and of 'trials'."""
        from bisector.report import pictures, trials

        material = self._material(identity)
        return {"pictures": pictures.section(material, width), "trials": list(trials.lines(material))}

    def samples(self, identity: str | None, rev: str) -> list[SampleSet]:
        """Return the samples of a commit."""
        from bisector.app.operations import stored_measurements

        return stored_measurements.samples(self._wiring, identity, rev)

    def recording(self, identity: str | None, rev: str) -> Profile:
        """Return what a monitor recorded of a commit."""
        from bisector.app.operations import stored_measurements

        return stored_measurements.recording(self._wiring, identity, rev)

    def commit(self, identity: str | None, rev: str) -> Values:
        """Return what is known of one commit."""
        from bisector.app import load_report
        from bisector.report import json_report

        material = self._material(identity)
        index = load_report.commit_index(self._wiring, material, rev)
        sha = material.graph.shas[index]
        return {
            "commit": sha,
            "subject": material.commit(index).subject,
            "untestable": material.state.untestable.get(index),
            "mark": material.mark(index),
            "metric": material.goal.metric.name,
            "unit": material.goal.metric.unit,
            "kernel": json_report.kernel(material, index),
            "trials": [t for t in json_report.render(material)["trials"] if t["commit"] == sha],
            "facts": dict(material.facts(index)),
        }

    def report(self, identity: str | None) -> Values:
        """Return the report."""
        from bisector.report import json_report

        return json_report.render(self._material(identity, so_far=True))

    def report_text(self, identity: str | None, *, short: bool = False) -> str:
        """Return the report as text."""
        from bisector.report import text

        material = self._material(identity, so_far=not short)
        return text.short(material) if short else text.render(material)

    def report_page(self, identity: str | None) -> str:
        """Return the report as an HTML page, with the profiles that can be read."""
        from bisector.app.import_results import recorded_profiles
        from bisector.report.html import bisection_page

        material = self._material(identity, so_far=True)
        return bisection_page.render(material, recorded_profiles(material))

    def export(self, identity: str | None, to: Path | None) -> Values:
        """Write the archive of a bisection to a file."""
        from bisector.app import transfer

        stored = self._stored(identity)
        path = to or transfer.default_archive(stored.id)
        files = transfer.export_bisection(self._wiring, stored, path, self._progress)
        return transfer.exported_values(stored.id, path, files)

    def import_(self, archive: Path) -> Values:
        """Add a bisection from an archive."""
        from bisector.app import transfer

        stored = transfer.import_bisection(self._wiring, archive)
        return {"id": stored.id, "status": stored.status}

    def log(self, identity: str | None) -> Values:
        """Return the steps."""
        from bisector.report import bisect_log

        material = self._material(identity)
        return {"id": material.id, "steps": bisect_log.steps(material)}

    def log_text(self, identity: str | None) -> str:
        """Return them as `git bisect replay` reads them."""
        from bisector.report import bisect_log

        return bisect_log.render(self._material(identity))

    def queue(self) -> Values:
        """Return who executes, and the rows of `queue`."""
        from bisector.app.execution.queue_state import read_queue

        found = read_queue(self._wiring)
        rows = [
            bisection_values.queue_row(place, entry) for place, entry in enumerate(found.entries, start=1)
        ]
        return {"executor": found.executor, "bisections": rows, "now": found.now}

    def testbeds(self) -> Values:
        """Return the rows of `testbed list`."""
        from bisector.app.operations import testbed_states

        return testbed_states.read(self._wiring)

    def set_testbed(self, name: str, state: TestbedState, reason: str) -> Values:
        """Take a testbed out of use, or let it be used again."""
        from bisector.app.operations import testbed_states

        return testbed_states.change(self._wiring, name, state, reason, self._person)

    def reserve_testbed(self, name: str, hours: float, wait: float) -> Values:
        """Keep a testbed for oneself."""
        from bisector.app.operations import testbed_states

        return testbed_states.reserve(self._wiring, name, hours, wait, self._person)

    def remove(self, identities: Sequence[str], *, dry_run: bool) -> Values:
        """Remove bisections that have ended."""
        from bisector.app.upkeep import retention

        found = retention.to_remove(self._wiring, identities)
        if dry_run:
            return {"items": retention.values(found), "freed_bytes": 0}
        return retention.remove_all(self._wiring, found)

    def watch(self, identity: str | None, observer: Watching) -> str:
        """Report what happens to a bisection until it ends; return its id."""
        from bisector.app.watching import watch_bisection

        return watch_bisection.watch(self._wiring, identity, observer).id

    def set_priority(self, identity: str, priority: int, reason: str) -> Values:
        """Serve a bisection before or after others."""
        from bisector.app import bisections, load_report

        summary = load_report.find_summary(self._wiring, identity)
        bisections.set_priority(self._wiring.store, summary, priority, self._person, reason)
        return {"id": summary.id, "priority": priority, "by": self._person, "reason": reason}

    def resume(self, identity: str | None, reason: str) -> Values:
        """Queue a bisection that rests."""
        from bisector.app import find_culprit
        from bisector.app.execution.queueing import queue_bisection

        stored = find_culprit.find_to_resume(self._wiring, identity)
        queue_bisection(self._wiring, stored, Action("resumed", self._person, reason))
        return {"id": stored.id, "status": self._wiring.store.status(stored.id)}

    def pause(self, identity: str | None, reason: str) -> Values:
        """Let a bisection rest."""
        from bisector.app import bisections

        stored = self._stored(identity)
        bisections.pause(self._wiring.store, stored, self._person, reason)
        return {"id": stored.id, "status": "paused", "by": self._person, "reason": reason}

    def cancel(self, identity: str | None, reason: str) -> Values:
        """End a bisection for good."""
        from bisector.app import bisections

        stored = self._stored(identity)
        bisections.cancel(self._wiring.store, stored, self._person, reason)
        return {"id": stored.id, "status": "cancelled", "by": self._person, "reason": reason}

    def mark(self, identity: str, rev: str, verdict: Said, note: str) -> Values:
        """Set the verdict of a commit, in the user's terms."""
        from bisector.app import bisections, load_report
        from bisector.schemas.request import read_accepted

        stored = self._stored(identity)
        request = read_accepted(stored.request).request
        if request.trust_repo:
            self._wiring.trust(Path(request.repo))
        commit = load_report.find_commit(self._wiring, stored.id, stored.graph, request.model_dump(), rev)
        sha, marked = stored.graph.shas[commit], request.terms.verdict(verdict)
        bisections.mark(self._wiring.store, stored, sha, marked, note)
        return {"id": stored.id, "commit": sha, "verdict": marked, "note": note}

    def discard(self, identity: str, kind: Literal["boot", "testbed"], name: str, note: str) -> Values:
        """Discard the samples of a boot or a testbed."""
        from bisector.app import bisections

        stored = self._stored(identity)
        bisections.discard(self._wiring.store, stored, kind, name, note)
        return {"id": stored.id, "kind": kind, "name": name, "note": note}

    def _stored(self, identity: str | None) -> Stored:
        from bisector.app import load_report

        return load_report.find_bisection(self._wiring, identity)

    def _material(self, identity: str | None, *, so_far: bool = False) -> Material:
        from bisector.app import load_report

        return load_report.load_material(self._wiring, identity, so_far=so_far)

"""Bisections begun by requests from elsewhere; they may name only what the settings list."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from bisector.app.operations.operations import Values
from bisector.errors import RequestError

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.engine.events import OnEvent
    from bisector.ports import Progress
    from bisector.schemas.remote_request import RemoteRequest
    from bisector.schemas.request import Request


class ForeignRequests:
    """The part of `LocalOperations` for them."""

    _wiring: Wiring
    _progress: Progress

    def start(self, asked: RemoteRequest) -> Values:
        """Queue what a request from elsewhere asks for; 'notes' are those of `start`. Raises RequestError."""
        from bisector.app import find_culprit
        from bisector.app.mail.notices import read_notices

        notes = _Notes()
        told = read_notices(self._wiring, asked.notify, waits=False)
        stored = find_culprit.queue(self._wiring, self._resolved(asked), notes, asked.priority, told)
        return self._queued(stored.id, notes)

    def plan(self, asked: RemoteRequest) -> Values:
        """Return what `start` would do with a request from elsewhere. Raises RequestError."""
        from bisector.app.mail.notices import read_notices
        from bisector.app.operations.plan_values import plan_of

        read_notices(self._wiring, asked.notify, waits=False)
        return plan_of(self._wiring, self._resolved(asked), self._progress)

    def try_commit(self, identity: str | None, rev: str, max_hours: float | None, *, dry_run: bool) -> Values:
        """Queue a comparison of a commit with a culprit, or say what it would be. Raises RequestError."""
        from bisector.app.attempts.accept_attempt import accept_attempt
        from bisector.app.find_culprit import queue_try
        from bisector.app.operations.plan_values import attempt_plan
        from bisector.schemas.remote_request import require_listed

        accepted, graph = accept_attempt(self._wiring, identity, (), rev, max_hours=max_hours)
        for testbed in accepted.testbeds:
            require_listed(self._wiring.settings.web, testbed)
        if dry_run:
            return attempt_plan(self._wiring, accepted, graph)
        notes = _Notes()
        return self._queued(queue_try(self._wiring, accepted, graph, notes).id, notes)

    def import_foreign(self, archive: Path) -> Values:
        """Add a bisection from an archive that somebody has sent."""
        from bisector.app.operations.foreign_bisection import import_foreign

        stored = import_foreign(self._wiring, archive)
        return {"id": stored.id, "status": stored.status}

    def _queued(self, identity: str, notes: _Notes) -> Values:
        from bisector.app.execution.queue_state import read_queue

        executor = read_queue(self._wiring).executor
        return {"id": identity, "status": "queued", "executor": executor, "notes": notes.texts}

    def _resolved(self, asked: RemoteRequest) -> Request:
        """Return the request with what the settings list under its names. Raises RequestError."""
        from bisector.schemas.request import Request
        from bisector.schemas.web_settings import WebSettings
        from bisector.schemas.workload.workload import workload_names

        settings = self._wiring.settings
        testbeds = [spec.name for spec in self._wiring.lab.testbeds]
        values = asked.resolve(settings.web or WebSettings(), workload_names(), testbeds)
        require_repository(self._wiring, values["repo"])
        return Request.model_validate({"alpha": settings.alpha, "recipe": settings.recipe, **values})


def require_repository(wiring: Wiring, repo: str) -> None:
    """Raise RequestError where a listed repository is none, which only the administrator can mend."""
    try:
        wiring.source(repo)
    except RequestError as error:
        cure = "tell the server's administrator, who lists repositories below [web] in perfbisect.toml"
        raise RequestError(f"at the server: {error.message}", details=error.details, cure=cure) from error


class _Notes:
    """observer.Observer that keeps the notes; nobody looks on."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)

    def progress(self, *_: object) -> AbstractContextManager[OnEvent]:
        return nullcontext(lambda event: None)

    def concluded(self, material: object) -> None:
        """Nothing: what is queued here is executed elsewhere."""

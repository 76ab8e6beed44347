"""The operations on the outbox in the database of the settings; `local_operations` has all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.app.operations.operations import Values

if TYPE_CHECKING:
    from bisector.app.wiring import Wiring
    from bisector.mail_ports import Outbox


class LocalOutbox:
    """What `mail` asks for. Modules are imported where they are used: other commands need none of them."""

    _wiring: Wiring
    _person: str

    def messages(self, limit: int | None) -> list[Values]:
        """Return the rows of `mail list`, the latest first."""
        from bisector.app.mail import outbox_view
        from bisector.app.mail.delivery import outbox_of

        if not self._wiring.has_store:
            return []
        found = outbox_view.latest(outbox_of(self._wiring), limit)
        return [outbox_view.row(entry) for entry in outbox_view.with_waits(self._wiring, found)]

    def message(self, number: int) -> Values:
        """Return a message with its text."""
        from bisector.app.mail import outbox_view

        (entry,) = outbox_view.with_waits(self._wiring, [self._outbox(number).entry(number)])
        return {**outbox_view.row(entry), "text": outbox_view.whole(self._wiring, entry)}

    def approve_message(self, number: int) -> Values:
        """Approve a message for sending."""
        from bisector.app.mail import outbox_view

        return outbox_view.row(self._outbox(number).approve(number, self._person))

    def stop_message(self, number: int, reason: str) -> Values:
        """Stop a message: it is not sent any more."""
        from bisector.app.mail import outbox_view

        return outbox_view.row(self._outbox(number).stop(number, self._person, reason))

    def _outbox(self, number: int) -> Outbox:
        from bisector.adapters.store.outbox.outbox_refusals import unknown
        from bisector.app.mail.delivery import outbox_of

        if not self._wiring.has_store:
            raise unknown(number)
        return outbox_of(self._wiring)

"""The chore of an executor: fill the outbox with what has happened, then send what is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bisector.app.load_report import load_material
from bisector.app.mail.culprit_offers import offer_reports
from bisector.app.mail.delivery import SEND_SECONDS, deliverers_of, outbox_of, send_approved
from bisector.app.mail.follow_ups import look_at_drafts, offer_event, offer_fixes, offer_week
from bisector.app.mail.lab_events import offer_changes
from bisector.app.mail.notices import ENDED, Notice, run_commands, tell_ended
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError
from bisector.model.outbox import Channel

if TYPE_CHECKING:
    from bisector.report.report_model import Material

FIRST_SECONDS = 86400.0
"""How old endings may be that are still reported when mail is first set up: a day, chosen."""
LONGEST_SECONDS = 30 * 86400.0
"""Older endings are no longer news, even if nothing was executed and reported since. Chosen."""
_OVERLAP_SECONDS = 600.0
"""How far each look reaches back before the last one: a transaction may become visible after a later one."""
_FIXES_SECONDS = 6 * 3600.0
"""Pause between looks for upstream fixes: a repository is fetched once a night."""


_DRAFTS_SECONDS = 3600.0
"""Pause between looks at drafts: each look runs git and the tree's script."""


class MailChore:
    """What one process does for the outbox. Any number may do it at once, since each key has one message."""

    seconds = SEND_SECONDS

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._offered: set[tuple[Channel, str]] = set()
        self._fixes_at = self._drafts_at = float("-inf")

    def do(self) -> None:
        """Do whatever is due now."""
        wiring = self._wiring
        if not wiring.has_store or not deliverers_of(wiring):
            return
        wrong: list[PerfbisectError] = []
        steps = (
            self._offer_ended,
            self._offer_changes,
            self._look_at_drafts,
            self._offer_fixes,
            self._tell_ended,
            self._offer_week,
        )
        for step in (*steps, self._send):
            try:
                if not wiring.stop.is_set():
                    step()
            except PerfbisectError as error:  # must not hold up other messages
                wrong.append(error)
        if wrong:
            raise wrong[0]

    def _send(self) -> None:
        send_approved(self._wiring)

    def _tell_ended(self) -> None:
        tell_ended(self._wiring)

    def _offer_week(self) -> None:
        offer_week(self._wiring)

    def _offer_ended(self) -> None:
        settings = self._wiring.settings
        wrong: list[PerfbisectError] = []
        if settings.mail is not None:
            wrong += self._offer("mail", offer_reports)
        if settings.webhook is not None and settings.webhook.url is not None:
            wrong += self._offer("webhook", offer_event)
        if wrong:
            raise wrong[0]

    def _offer(self, channel: Channel, offer: Callable[[Wiring, Material], object]) -> list[PerfbisectError]:
        """Put what has ended since any process last did this into the outbox; return what failed.

        Imported bisections have ended elsewhere, maybe years ago: they are no news.
        """
        wiring, outbox = self._wiring, outbox_of(self._wiring)
        now, told = wiring.coordinator.now(), outbox.told_until(channel)
        since = now - FIRST_SECONDS if told is None else max(told, now - LONGEST_SECONDS)
        ended = wiring.store.list(statuses=["done"], since=since - _OVERLAP_SECONDS)
        until, wrong = max([since, *(one.changed for one in ended)]), list[PerfbisectError]()
        for summary in ended:
            if summary.ended_here and (channel, summary.id) not in self._offered:
                try:
                    offer(wiring, load_material(wiring, summary.id))
                    self._offered.add((channel, summary.id))
                except PerfbisectError as error:  # it is tried again
                    wrong.append(error)
                    until = min(until, summary.changed)
        if until != told:
            outbox.tell_until(channel, until)
        return wrong

    def _offer_changes(self) -> None:
        hook = self._wiring.settings.webhook
        if hook is None or hook.url is None:
            return
        outbox, now = outbox_of(self._wiring), self._wiring.coordinator.now()
        told = outbox.told_until("changes")
        since = now - FIRST_SECONDS if told is None else max(told, now - LONGEST_SECONDS)
        until = offer_changes(self._wiring, since - _OVERLAP_SECONDS)
        if told is None or until > told:
            outbox.tell_until("changes", max(since, until))

    def _look_at_drafts(self) -> None:
        now = self._wiring.coordinator.now()
        if now - self._drafts_at >= _DRAFTS_SECONDS:
            self._drafts_at = now
            look_at_drafts(self._wiring)

    def _offer_fixes(self) -> None:
        now = self._wiring.coordinator.now()
        if now - self._fixes_at >= _FIXES_SECONDS:
            self._fixes_at = now
            offer_fixes(self._wiring)


def tell_end(
    wiring: Wiring, bisection: str, notices: Sequence[Notice], note: Callable[[str], object]
) -> None:
    """Notify whoever asked for it that a bisection has ended or failed. note: called with what goes wrong.

    Nothing that goes wrong here may change how the search ended.
    """
    try:
        if wiring.store.status(bisection) not in ENDED:
            return
        if notices:
            for wrong in run_commands(wiring, load_material(wiring, bisection), notices):
                note(wrong)
        MailChore(wiring).do()
    except PerfbisectError as error:
        note(f"nobody could be told of the end: {error.message}; 'perfbisect mail list' shows what waits")

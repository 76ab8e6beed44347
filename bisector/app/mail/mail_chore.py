"""The chore of an executor: fill the outbox with what has happened, then send what is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bisector.app.load_report import load_material
from bisector.app.mail.culprit_offers import offer_reports
from bisector.app.mail.delivery import SEND_SECONDS, deliverers_of, send_approved
from bisector.app.mail.follow_ups import look_at_drafts, offer_event, offer_fixes, offer_week
from bisector.app.mail.notices import ENDED, Notice, run_commands, tell_ended
from bisector.app.wiring import Wiring
from bisector.errors import PerfbisectError

OFFERED_SECONDS = 86400.0
"""Bisections that ended before are reported no more: mail was not set up then."""
_FIXES_SECONDS = 6 * 3600.0
"""Between looks for fixes upstream: a repository is fetched once a night."""


_DRAFTS_SECONDS = 3600.0
"""Between looks at drafts: each asks git and the tree's script."""


class MailChore:
    """What one process does for the outbox. Any number may do it at once: a key has one message."""

    seconds = SEND_SECONDS

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._offered: set[str] = set()
        self._fixes_at = self._drafts_at = float("-inf")

    def do(self) -> None:
        """Do whatever is due now."""
        wiring = self._wiring
        if not wiring.has_store or not deliverers_of(wiring):
            return
        wrong: list[PerfbisectError] = []
        steps = (
            self._offer_ended,
            self._look_at_drafts,
            self._offer_fixes,
            self._tell_ended,
            self._offer_week,
        )
        for step in (*steps, self._send):
            try:
                if not wiring.stop.is_set():
                    step()
            except PerfbisectError as error:  # what one message lacks holds up no other
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
        since = self._wiring.coordinator.now() - OFFERED_SECONDS
        wrong: list[PerfbisectError] = []
        for summary in self._wiring.store.list(statuses=["done"]):
            if summary.changed >= since and summary.id not in self._offered:
                try:
                    offer_ended(self._wiring, summary.id)
                    self._offered.add(summary.id)
                except PerfbisectError as error:
                    wrong.append(error)
        if wrong:
            raise wrong[0]

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
    """Tell whoever wants to know that a bisection has ended or failed. note: told what goes wrong.

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


def offer_ended(wiring: Wiring, bisection: str) -> None:
    """Put all that is to be told of a bisection's conclusion into the outbox."""
    material = load_material(wiring, bisection)
    offer_reports(wiring, material)
    offer_event(wiring, material)

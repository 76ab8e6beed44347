"""The chores of whoever executes: each a line here, and a function of its own domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bisector.engine.chores import Chore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bisector.app.wiring import Wiring


def chores_of(wiring: Wiring, worker: str) -> Sequence[Chore]:
    """Return what an executor looks after beside measuring, see `engine.chores`.

    worker: our name as a worker, '' if we are none. `wiring.stop` says when the executor is told to end;
    what takes long asks for it.
    """
    from functools import partial

    from bisector.app.alerts.alert_context import alert_context
    from bisector.app.alerts.follow_alerts import FOLLOW_SECONDS, follow
    from bisector.app.mail.mail_chore import MailChore
    from bisector.app.series.alert_sink import AlertsOfSeries
    from bisector.app.series.night_chore import CHORE_SECONDS, NightChore

    mail = MailChore(wiring)
    alerts = alert_context(wiring)
    return (
        Chore("nightly series", CHORE_SECONDS, NightChore(wiring, AlertsOfSeries(alerts), worker).do),
        Chore("alerts", FOLLOW_SECONDS, partial(follow, alerts)),
        Chore("mail", mail.seconds, mail.do),
    )

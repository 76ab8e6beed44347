"""Which states of an alert the lab's webhook is told. How events look: tests/integration/mail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.mail.delivery import outbox_of
from bisector.app.mail.lab_events import offer_changes
from bisector.app.wiring import Wiring
from bisector.model.alerts import BY_PROGRAM, Finding, HistoryEntry, Triage
from bisector.schemas.mail_settings import WebhookSettings
from bisector.schemas.settings import Settings
from tests.support.series.alert_lab import found

ALERT = found(1, 2, id="a" * 10)


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    hook = WebhookSettings(url="http://127.0.0.1:1/")
    return Wiring(Settings(state_dir=tmp_path / "state", cache_dir=tmp_path, webhook=hook))


def finds(wiring: Wiring, *findings: Finding) -> None:
    """Let the program find out more of the alert."""
    alerts = open_alerts(wiring)
    for finding in findings:
        alerts.change(replace(alerts.load(ALERT.id), finding=finding), [HistoryEntry(BY_PROGRAM, finding)])


@pytest.mark.parametrize("closing", ["invalid", "infrastructure", "wontfix", "fixed"])
def test_what_is_found_out_of_a_closed_alert_is_no_event(wiring: Wiring, closing: Triage) -> None:
    """The webhook was told 'culprit' of an alert that had been called invalid, and stayed so."""
    alerts = open_alerts(wiring)
    alerts.add(ALERT, HistoryEntry(BY_PROGRAM, "suspect", "night 7"))
    finds(wiring, "confirmed")
    set_alert(alerts, ALERT.id, AlertChange(closing), "ann")
    finds(wiring, "bisecting", "culprit")
    set_alert(alerts, ALERT.id, AlertChange("acknowledged", note="it is one after all"), "ann")
    finds(wiring, "not found")
    offer_changes(wiring, 0.0)
    told = [json.loads(entry.message.text)["state"] for entry in outbox_of(wiring).entries()]
    assert sorted(told) == sorted(["suspect", "confirmed", closing, "acknowledged", "not found"])

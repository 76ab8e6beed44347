"""The chore that sends: each message once, with many processes, and when one is killed at any step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.mail.smtp import SmtpDeliverer
from bisector.adapters.mail.webhook import WebhookDeliverer
from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.outbox.sql_outbox import SqlOutbox
from bisector.app.mail import delivery
from bisector.app.mail.delivery import deliverers_of, send_approved, send_due
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.mail_ports import Deliverer
from bisector.model.outbox import SENDING_SECONDS, Channel, Key, Message
from bisector.schemas.mail_settings import MailSettings, WebhookSettings
from bisector.schemas.settings import load_settings
from tests.support.servers.mail_server import mail_server

ROOT = Path(__file__).parents[4]
KEY = Key("c" * 40, "pipe-test", "regression", "lab")
MESSAGE = Message(("a@x.org", "b@x.org"), "slower", "text\n")


def by_mail(port: int) -> dict[Channel, Deliverer]:
    values = {"host": "127.0.0.1", "port": port, "security": "none", "from": "lab@y.org"}
    return {"mail": SmtpDeliverer(MailSettings.model_validate(values), lambda: "")}


def test_many_processes_send_each_message_once(tmp_path: Path) -> None:
    outbox = SqlOutbox(open_state_file(tmp_path / "state.sqlite"))
    for number in range(12):
        outbox.put(replace(KEY, about=str(number)), "mail", MESSAGE, "approved", by="w")
    with mail_server() as sink:

        def work() -> None:
            own = SqlOutbox(open_state_file(tmp_path / "state.sqlite"))
            send_due(own, by_mail(sink.port), 10)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(sink.arrived) == 10, "the daily limit"
        assert len({mail["Message-ID"] for mail in sink.mails}) == 10
    assert [e.state for e in outbox.entries()] == ["approved"] * 2 + ["sent"] * 10


@pytest.mark.parametrize("step", ["EHLO", "MAIL", "RCPT", "DATA", "TEXT", "AFTER"])
def test_who_is_killed_while_it_sends_leaves_a_message_for_a_person(tmp_path: Path, step: str) -> None:
    state = tmp_path / "state.sqlite"
    outbox = SqlOutbox(open_state_file(state))
    outbox.put(KEY, "mail", MESSAGE, "approved", by="w")
    program = (
        "import pathlib, sys\n"
        "from tests.unit.app.mail.test_delivery import *\n"
        "outbox = SqlOutbox(open_state_file(pathlib.Path(sys.argv[1])))\n"
        "send_due(outbox, by_mail(int(sys.argv[2])), 9)\n"
    )
    with mail_server() as sink:
        command = [sys.executable, "-c", program, str(state), str(sink.port)]

        def kill() -> None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

        sink.at[step] = kill
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert process.wait(60) == -signal.SIGKILL
        arrived = len(sink.arrived)
        assert outbox.entry(1).state == "sending" and arrived == (step in ("TEXT", "AFTER"))
        sink.at.clear()
        deliverers = by_mail(sink.port)
        assert send_due(outbox, deliverers, 9) == [], "nobody sends it again by himself"
        (left,) = outbox.abandon(0)
        assert left.state == "unsure" and "may have arrived" in left.note
        assert send_due(outbox, deliverers, 9) == [] and len(sink.arrived) == arrived
        outbox.approve(1, "ann")
        assert [e.state for e in send_due(outbox, deliverers, 9)] == ["sent"]
        assert len({mail["Message-ID"] for mail in sink.mails}) == 1, "readers see the same message"


def test_who_cannot_write_down_that_it_sends_sends_nothing(tmp_path: Path) -> None:
    outbox = SqlOutbox(open_state_file(tmp_path / "state.sqlite"))
    outbox.put(KEY, "mail", MESSAGE, "approved", by="w")
    with mail_server() as sink:

        def freeze() -> None:
            outbox.abandon(0)  # for others it counts as dead

        sink.at["RCPT"] = freeze
        (entry,) = send_due(outbox, by_mail(sink.port), 9)
        assert sink.arrived == [] and entry.state == "approved", "it knows that it sent nothing"


def test_the_settings_say_what_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    file, password = tmp_path / "perfbisect.toml", tmp_path / "password"
    file.write_text("")
    assert deliverers_of(Wiring(load_settings(file))) == {}
    send_approved(Wiring(load_settings(file)))
    password.write_text("topsecret\n")
    password.chmod(0o644)
    with mail_server() as sink:
        file.write_text(
            f'[mail]\nhost = "127.0.0.1"\nport = {sink.port}\nsecurity = "none"\nfrom = "lab@y.org"\n'
            f'user = "lab"\npassword_file = "{password}"\n[webhook]\nsecret_file = "{password}"\n'
        )
        wiring = Wiring(load_settings(file))
        assert sorted(deliverers_of(wiring)) == ["mail", "webhook"]
        outbox = SqlOutbox(wiring.database)
        outbox.put(KEY, "mail", MESSAGE, "approved", by="w")
        hook = Message(("http://127.0.0.1:1/",), "bisection.ended", "{}")
        outbox.put(replace(KEY, kind="event"), "webhook", hook, "approved", by="w")
        send_approved(wiring)
        notes = [entry.note for entry in outbox.entries()]
        assert notes[0] == f"webhook.secret_file {password}: others can read it"
        assert f"mail.password_file {password}: others can read it" in notes[1]
        assert "topsecret" not in str(notes) + str(wiring.settings)
        assert sink.arrived == []


def test_who_is_told_to_stop_begins_no_further_message(tmp_path: Path) -> None:
    outbox = SqlOutbox(open_state_file(tmp_path / "state.sqlite"))
    for number in range(3):
        outbox.put(replace(KEY, about=str(number)), "mail", MESSAGE, "approved", by="w")
    with mail_server() as sink:
        sent = send_due(outbox, by_mail(sink.port), 10, lambda: len(sink.mails) > 0)
    assert (len(sent), len(sink.mails)) == (1, 1)
    assert len(outbox.entries(["approved"])) == 2


def test_who_sends_tells_what_a_process_that_died_has_left(tmp_path: Path) -> None:
    """Else the message would be "sending" for ever, and nobody would look at it."""
    database = open_state_file(tmp_path / "state.sqlite")
    outbox = SqlOutbox(database)
    outbox.put(KEY, "mail", MESSAGE, "approved", by="w")
    assert outbox.claim("a process that dies", 9) is not None
    with mail_server() as sink:
        assert send_due(outbox, by_mail(sink.port), 9) == []
        assert outbox.entry(1).state == "sending", "it may be at work"
        database.execute("UPDATE outbox SET changed = changed - :seconds", seconds=SENDING_SECONDS)
        assert send_due(outbox, by_mail(sink.port), 9) == []
        assert outbox.entry(1).state == "unsure" and sink.arrived == []


def test_a_host_sends_what_its_settings_describe_and_leaves_the_rest_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "perfbisect.toml"
    with mail_server() as sink:
        file.write_text(
            f'[mail]\nhost = "127.0.0.1"\nport = {sink.port}\nsecurity = "none"\nfrom = "lab@y.org"\n'
            "daily_limit = 2\n"
        )
        wiring = Wiring(load_settings(file))
        outbox = SqlOutbox(wiring.database)
        hook = Message(("http://127.0.0.1:1/",), "bisection.ended", "{}")
        outbox.put(replace(KEY, kind="event"), "webhook", hook, "approved", by="w")
        for number in range(3):
            outbox.put(replace(KEY, about=str(number)), "mail", MESSAGE, "approved", by="w")
        wiring.stop.set()
        send_approved(wiring)
        assert sink.arrived == [], "who is told to end begins no further one"
        wiring.stop.clear()
        send_approved(wiring)
        assert len(sink.arrived) == 2, "the daily limit of the settings"
    assert [entry.state for entry in outbox.entries()] == ["approved", "sent", "sent", "approved"]
    monkeypatch.setenv("PERFBISECT_WEBHOOK_SECRET", "topsecret")
    assert sorted(deliverers_of(wiring)) == ["mail", "webhook"], "the variable is enough"
    file.write_text('[webhook]\nprivate_hosts = ["hooks.lab"]\n')
    (hooks,) = deliverers_of(Wiring(load_settings(file))).values()
    assert isinstance(hooks, WebhookDeliverer) and hooks._trusted == {"hooks.lab"}


def test_a_secret_that_is_not_there_is_told_and_no_empty_one_used() -> None:
    values = {"host": "mail.lab", "user": "robot", "from": "lab@y.org"}
    mail = MailSettings.model_validate(values)
    with pytest.raises(RequestError, match="there is no password of 'robot' at the mail server"):
        delivery._password(mail)
    with pytest.raises(RequestError, match="there is no secret for the signatures of webhooks"):
        delivery.webhook_secret(WebhookSettings())

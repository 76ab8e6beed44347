"""The command that serves: what it says, refuses, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bisector.interfaces.cli import run
from bisector.interfaces.cli.web import listen
from tests.support.servers.web import make_tokens, wiring_in

COMMAND = [sys.executable, "-c", "from bisector.interfaces.cli import main; main()"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, how: signal.Signals) -> None:
    environment = {**os.environ, "PERFBISECT_STATE_DIR": str(tmp_path / "state")}
    command = [*COMMAND, "web", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = ""
        while "serving" not in said:
            line = server.stderr.readline()
            assert line, said
            said += line
        url = re.search(r"(http://127\.0\.0\.1:\d+)/;", said)
        assert url is not None and "warning" not in said
        assert httpx.get(f"{url[1]}/healthz", timeout=60).status_code == 200
        server.send_signal(how)
        rest = server.stderr.read()
    assert (server.returncode, rest) == (0, "stopped\n")


def test_streams_end_when_it_is_told_to_stop(tmp_path: Path) -> None:
    environment = {**os.environ, "PERFBISECT_STATE_DIR": str(tmp_path / "state")}
    wiring = wiring_in(tmp_path)
    headers = {"Authorization": f"Bearer {make_tokens(wiring)['read']}"}
    command = [*COMMAND, "web", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        url = re.search(r"(http://127\.0\.0\.1:\d+)/;", server.stderr.readline())
        assert url is not None
        with httpx.stream("GET", f"{url[1]}/changes", headers=headers, timeout=60.0) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: changed"
            server.send_signal(signal.SIGTERM)
            assert not [line for line in lines if line.startswith("event")]
        rest = server.stderr.read()
    assert (server.returncode, rest) == (0, "stopped\n")


def test_an_answer_waits_for_no_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_that_cannot_be_had_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["web", "--port", port]) == 1
        assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in capsys.readouterr().err
    for host in ("192.0.2.7", "no.such.host.invalid", "a" * 300):
        assert run(["web", "--host", host, "--port", "0"]) == 1, host
        assert "cure: name an address of this machine" in capsys.readouterr().err

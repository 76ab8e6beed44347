"""The service on one machine: PostgreSQL, a worker, the web server and a mail server, all on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.installed_command import PERFBISECT
from tests.support.servers.free_port import free_port
from tests.support.servers.mail_server import Sink, mail_server
from tests.support.servers.postgres import postgres_server

_START_SECONDS = 120.0
"""For the web server to answer on a machine that is busy with other things."""
_END_SECONDS = 60.0
"""A worker ends its guest within this time."""

_INVENTORY = """
all:
  children:
    testbeds:
      vars: {perfbisect_kind: libvirt, perfbisect_memory_mb: 256, perfbisect_cpus: 1}
      hosts:
        guest: {perfbisect_worker: demo}
    builders:
      hosts:
        here: {ansible_connection: local}
"""
_SETTINGS = """
health_checks = "never"

[mail]
host = "127.0.0.1"
port = %(port)d
security = "none"
from = "Demo lab <lab@perfbisect.invalid>"
lab = ["team@perfbisect.invalid"]
web = "%(url)s"

[web.repositories]
linux = "%(repo)s"
"""


class Failed(Exception):
    """What went wrong, for a person."""


@dataclass
class Service:
    """The running service. url: of its pages; token: opens them; sink: the mail server."""

    folder: Path
    environment: Mapping[str, str]
    sink: Sink
    url: str
    token: str = ""

    def run(self, *command: str) -> str:
        """Return what a command of perfbisect prints. Raises Failed."""
        done = subprocess.run(
            [PERFBISECT, *command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"perfbisect {' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def ask(self, *command: str) -> Any:
        """Return what a command prints with --json."""
        return json.loads(self.run(*command, "--json"))

    def page(self, path: str) -> bytes:
        """Return a page, or its data with the suffix .json. Raises Failed."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text: bytes = answer.read()
        except urllib.error.URLError as error:  # an answer that is none, or no answer
            raise Failed(f"{path}: {error}; the web server says:\n{self.log('web')}") from error
        return text

    def wait(self, what: str, true: Callable[[], bool], seconds: float) -> None:
        """Wait until something is true. Raises Failed after so many seconds."""
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not within {seconds:.0f} s; the worker says:\n{self.log('worker')}")
            time.sleep(0.5)

    def log(self, name: str) -> str:
        """Return the end of what a process of the service has printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]


@contextmanager
def service(folder: Path, repo: Path) -> Iterator[Service]:
    """Start everything in a new folder; everything has ended afterwards."""
    with ExitStack() as running:
        sink = running.enter_context(mail_server())
        database = running.enter_context(postgres_server()).new_database()
        (folder / "lab.yml").write_text(_INVENTORY)
        port = free_port()  # mails name it before the web server has it
        url = f"http://127.0.0.1:{port}"
        (folder / "perfbisect.toml").write_text(_SETTINGS % {"port": sink.port, "url": url, "repo": repo})
        environment = {
            **os.environ,
            "PERFBISECT_STATE_DIR": str(folder / "state"),
            "PERFBISECT_LAB": str(folder / "lab.yml"),
            "PERFBISECT_DATABASE": database.secret,
            "PERFBISECT_ARTEFACTS": str(folder / "artefacts"),
            "PERFBISECT_REPO": str(repo),
        }
        (folder / "artefacts").mkdir()
        found = Service(folder, environment, sink, url)
        found.run("db", "upgrade", "--yes")
        found.token = found.ask("token", "add", "demo", "--role", "operate")["token"]
        running.enter_context(_process(found, "web", "web", "--port", str(port)))
        running.enter_context(_process(found, "worker", "worker", "demo"))
        found.wait("the web server answers", lambda: url in found.log("web"), _START_SECONDS)
        yield found


@contextmanager
def _process(found: Service, name: str, *command: str) -> Iterator[None]:
    with (found.folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [PERFBISECT, *command],
            cwd=found.folder,
            env={**found.environment, "PERFBISECT_STATE_DIR": str(found.folder / name)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the demo, which ends them in its order
        )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

"""What every console promises, whatever it is read by: a command, TCP, netconsole, serial over LAN."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisector.adapters.machine.console.open_console import open_console
from bisector.adapters.machine.console.recorded_console import RecordedConsole
from bisector.schemas.lab import TestbedSpec, lab_from_inventory
from tests.support.servers.bmc_simulators import ipmi_simulator
from tests.support.servers.free_port import free_port
from tests.support.waiting import until

PASSWORD = "canary-5f2e1"
SECONDS = 60
DEAF_SECONDS = 90
"""For as long at most nothing is heard after a connection broke: ipmitool asks its BMC four times."""


class SerialPort:
    """A machine's serial port behind a console server; connections can be cut."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.connections.append(self.server.accept()[0])
            except OSError:
                return

    def say(self, data: bytes) -> None:
        until(lambda: bool(self.connections), SECONDS)
        self.connections[-1].sendall(data)

    def cut(self) -> None:
        until(lambda: bool(self.connections), SECONDS)
        self.connections.pop().close()

    def close(self) -> None:
        self.server.close()


@dataclass
class Given:
    """A testbed with a console, what makes its machine print, and what breaks the connection."""

    spec: TestbedSpec
    say: Callable[[bytes], object]
    cut: Callable[[], object] | None


def box(**variables: object) -> TestbedSpec:
    data = {"_meta": {"hostvars": {"box": {"ansible_host": "127.0.0.1", **variables}}}}
    return lab_from_inventory({**data, "testbeds": {"hosts": ["box"]}}, Path("/lab.yml")).testbed("box")


def _tcp(folder: Path) -> Iterator[Given]:
    port = SerialPort()
    console = {"kind": "tcp", "address": "127.0.0.1", "port": port.port}
    yield Given(box(perfbisect_console=console), port.say, port.cut)
    port.close()


def _ser2net(folder: Path) -> Iterator[Given]:
    """A real console server: it asks by telnet for more than it is given, and doubles bytes of 255."""
    if shutil.which("ser2net") is None:
        pytest.skip("ser2net is not installed: make test-deps")
    port = free_port()
    machine, line = os.openpty()
    (folder / "ser2net.yaml").write_text(
        f"connection: &box\n"
        f"  accepter: telnet(rfc2217),tcp,127.0.0.1,{port}\n"
        f"  connector: serialdev,{os.ttyname(line)},115200n81,local\n"
        f"  options:\n    kickolduser: true\n"
    )
    command = ["ser2net", "-n", "-u", "-c", str(folder / "ser2net.yaml")]
    servers = [subprocess.Popen(command)]

    def restart() -> None:
        servers[-1].kill()
        servers[-1].wait()
        servers.append(subprocess.Popen(command))

    def listens() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listens, SECONDS)
        console = {"kind": "tcp", "address": "127.0.0.1", "port": port}
        yield Given(box(perfbisect_console=console), lambda data: os.write(machine, data), restart)
    finally:
        servers[-1].kill()
        servers[-1].wait()
        os.close(machine)
        os.close(line)


def _conserver(folder: Path) -> Iterator[Given]:
    """A real console server, whose client is perfbisect's command: it only listens, so no user is bumped."""
    if shutil.which("conserver") is None or shutil.which("console") is None:
        pytest.skip("conserver is not installed: make test-deps")
    port, serving = SerialPort(), free_port()
    (folder / "conserver.cf").write_text(
        f"config * {{ sslrequired no; logfile {folder}/server.log; }}\n"
        f"default * {{ rw *; master localhost; logfile {folder}/&.log; }}\n"
        f"console box {{ type host; host 127.0.0.1; port {port.port}; protocol raw; options reinitoncc; }}\n"
        "access * { trusted 127.0.0.1; }\n"
    )
    command = ["conserver", "-n", "-C", str(folder / "conserver.cf"), "-p", str(serving), "-m", "1"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=folder, start_new_session=True)

    def end(server: subprocess.Popen[bytes]) -> None:
        """End it with the process that has the line."""
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()

    servers = [start()]

    def restart() -> None:
        end(servers[-1])
        port.cut()
        servers.append(start())

    client = ["console", "-n", "-E", "-M", "127.0.0.1", "-p", str(serving), "-k", "-s", "box"]
    try:
        yield Given(box(perfbisect_console=client), port.say, restart)
    finally:
        end(servers[-1])
        port.close()


def _command(folder: Path) -> Iterator[Given]:
    port = SerialPort()
    script = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
    (folder / "cat.py").write_text(
        f"{script}assert sys.stdin.isatty()\nwhile d := s.recv(999): sys.stdout.buffer.raw.write(d)\n"
    )
    command = ["python3", "-IS", str(folder / "cat.py"), str(port.port)]
    yield Given(box(perfbisect_console=command), port.say, port.cut)
    port.close()


def _netconsole(folder: Path) -> Iterator[Given]:
    port = free_port()

    def say(data: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(data, ("127.0.0.1", port))

    yield Given(box(perfbisect_console={"kind": "netconsole", "port": port}), say, None)


def _sol(folder: Path) -> Iterator[Given]:
    if shutil.which("ipmi_sim") is None or shutil.which("ipmitool") is None:
        pytest.skip("ipmi_sim and ipmitool are not installed: make deps")
    port = SerialPort()
    with ipmi_simulator(folder / "bmc", PASSWORD, port.port) as bmc:

        def restart() -> None:
            """Have the BMC reset itself: it says no goodbye, and knows nothing of its sessions afterwards."""
            bmc.kill()
            port.cut()
            bmc.start()

        spec = box(perfbisect_power=bmc.variables, perfbisect_console={"kind": "sol"})
        yield Given(spec, port.say, restart)
    port.close()


@pytest.fixture(params=[_tcp, _ser2net, _conserver, _command, _netconsole, _sol])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Given]:
    yield from request.param(tmp_path)


def _heard(console: RecordedConsole, given: Given, text: str) -> bool:
    """Say something until it is heard: what comes before a connection is there is nobody's."""
    given.say(f"{text}\r\n".encode())
    return text in console.end()


def test_what_the_machine_prints_is_kept_and_a_death_of_this_boot_is_seen(
    given: Given, tmp_path: Path
) -> None:
    console = open_console(given.spec, tmp_path / "boot" / "console.log")
    try:
        assert console.state() == "silent"
        until(lambda: _heard(console, given, "Kernel panic - not syncing: of the boot before"), SECONDS)
        until(lambda: console.death() is not None, SECONDS)
        given.say(b"it goes down\r\n")
        until(lambda: "it goes down" in console.end(), SECONDS)
        console.begin_boot()
        assert (console.state(), console.death()) == ("silent", None)
        until(lambda: _heard(console, given, "Linux version 6.1"), SECONDS)
        assert (console.state(), console.death()) == ("heard", None)
        given.say(b"Kernel panic - \xff\xffnot syncing\x1b[0m\r\n\x1b[31mKernel panic - not syncing: x\r\n")
        until(lambda: console.death() is not None, SECONDS)
        assert "Kernel panic - not syncing: x" in str(console.death())
    finally:
        console.close()
    assert console.path is not None
    assert b"Linux version 6.1\r\n" in console.path.read_bytes()
    assert PASSWORD.encode() not in console.path.read_bytes()


def test_a_connection_that_breaks_is_made_again_and_what_was_heard_stays(
    given: Given, tmp_path: Path
) -> None:
    if given.cut is None:
        pytest.skip("this one has no connection of its own to cut")
    console = open_console(given.spec, tmp_path / "console.log")
    try:
        until(lambda: _heard(console, given, "Kernel panic - not syncing: x"), SECONDS)
        until(lambda: console.death() is not None, SECONDS)
        given.cut()
        until(lambda: _heard(console, given, "firmware"), DEAF_SECONDS)
        assert "Kernel panic - not syncing: x\n" in str(console.death())
        assert console.state() == "heard"
    finally:
        console.close()


def test_a_session_that_somebody_left_open_is_taken_over(tmp_path: Path) -> None:
    for given in _sol(tmp_path):
        first, second = (open_console(given.spec, tmp_path / name) for name in ("first.log", "second.log"))
        try:
            until(lambda: _heard(second, given, "for the second"), SECONDS)  # noqa: B023
        finally:
            second.close()
            first.close()


def test_a_console_that_is_not_there_is_lost_with_its_reason(tmp_path: Path) -> None:
    tcp = {"kind": "tcp", "address": "127.0.0.1", "port": free_port()}
    console = open_console(box(perfbisect_console=tcp), tmp_path / "console.log")
    try:
        until(lambda: console.state() == "lost", SECONDS)
        assert "refused" in console.reason()
    finally:
        console.close()


def test_a_testbed_without_a_console_has_none(tmp_path: Path) -> None:
    console = open_console(box(), tmp_path / "console.log")
    assert (console.state(), console.path, console.death(), console.reason()) == ("off", None, None, "")
    console.close()

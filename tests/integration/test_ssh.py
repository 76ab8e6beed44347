"""SSH against a real server: commands, deadlines, and every way a connection can fail."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from bisector.adapters.agent.result_files import fetch_over_ssh
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system import ssh as module
from bisector.adapters.system.channel import CommandUnanswered, LineClosed, LineFlood, LineSilent
from bisector.adapters.system.ssh import SSH, LoginRefused, SSHRefused, UnverifiedHost
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError
from tests.support.loopback_sshd import Server, keygen, known
from tests.support.servers.free_port import free_port


def test_runs_commands_with_their_output_and_code(sshd: Server) -> None:
    with SSH(sshd.host) as ssh:
        ran = ssh.run(["sh", "-c", "echo out; echo more; printf end"])
        assert (ran.output, ran.code) == ("out\nmore\nend\n", 0)
        assert ssh.run(["sh", "-c", "echo err >&2"]).output == "err\n"
        assert ssh.run(["echo", "a b", "$HOME"]).output == "a b $HOME\n"
        with pytest.raises(InfrastructureError, match=r"'false' on .* failed with code 1"):
            ssh.run(["false"])
        assert ssh.run(["sh", "-c", "exit 7"], check=False).code == 7


def test_files_of_a_run_are_brought_home(sshd: Server, tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "run-000.results"
    (work / "out" / "0").mkdir(parents=True)
    (work / "out" / "0" / "a b").write_bytes(bytes(range(256)) * 1000)
    (work / "out" / "link").symlink_to("/etc/passwd")
    with SSH(sshd.host) as ssh:
        bring = fetch_over_ssh(ssh, str(work))
        assert bring("out", home)
        assert (home / "out" / "0" / "a b").read_bytes() == bytes(range(256)) * 1000
        assert not (home / "out" / "link").exists()
        assert not (work / "out").exists()
        assert not bring("out", home)
        assert list(tmp_path.glob("*.tar")) == []
        with pytest.raises(InfrastructureError, match="more than 1 MiB"):
            ssh.save(["head", "-c", "9000000", "/dev/zero"], tmp_path / "big", timeout=20, max_bytes=1 << 20)
        with pytest.raises(InfrastructureError, match="did not end within 1 s"):
            ssh.save(["sleep", "30"], tmp_path / "late", timeout=1, max_bytes=1)
        assert (
            ssh.save(["sh", "-c", "echo why >&2; exit 7"], tmp_path / "x", timeout=9, max_bytes=1).output
            == "why\n"
        )
        sshd.cut()
        with pytest.raises(LineClosed):
            bring("out", home)


def test_a_command_that_overstays_is_left(sshd: Server) -> None:
    with SSH(sshd.host) as ssh, pytest.raises(LineSilent, match="did not end within 1 s"):
        ssh.run(["sleep", "30"], timeout=1)


def test_a_conversation(sshd: Server) -> None:
    with SSH(sshd.host) as ssh:
        line = ssh.talk(["cat"])
        line.send("hello")
        assert line.receive(5) == "hello"
        with pytest.raises(LineSilent):
            line.receive(0.1)
        sshd.cut()
        with pytest.raises(LineClosed):
            line.receive(5)


_HANG_SECONDS = 60
"""A guard against hangs, not a measurement: each of these ends within a second or two."""


@pytest.mark.timeout(_HANG_SECONDS)
def test_a_command_that_floods_is_left_at_its_limits(sshd: Server, tmp_path: Path) -> None:
    with SSH(sshd.host) as ssh:
        with pytest.raises(InfrastructureError, match=r"'cat': root@.* sent a line of more than 8 MiB"):
            ssh.run(["cat", "/dev/zero"])
        with pytest.raises(InfrastructureError, match=r"'yes': root@.* sent more than 16 MiB"):
            ssh.run(["yes"])
        with pytest.raises(InfrastructureError, match="did not end within 1 s"):
            ssh.run(["sh", "-c", "while :; do echo x; sleep 0.01; done"], timeout=1)
        with pytest.raises(InfrastructureError, match="did not end within 1 s"):
            ssh.save(["yes"], tmp_path / "x", timeout=1, max_bytes=1 << 40)
        assert ssh.run(["echo", "still there"]).output == "still there\n"


@pytest.mark.timeout(_HANG_SECONDS)
def test_a_conversation_that_floods(sshd: Server) -> None:
    with SSH(sshd.host) as ssh:
        line = ssh.talk(["sh", "-c", "echo first; cat /dev/zero"])
        assert line.receive(5) == "first"
        with pytest.raises(LineFlood, match="sent a line of more than 8 MiB"):
            line.receive(30)
        line.close()
        line = ssh.talk(["sh", "-c", "printf hal; sleep 60"])
        with pytest.raises(LineSilent) as caught:
            line.receive(5)  # on a busy machine a shell begins in a second or two
        assert caught.value.details == "hal"


@pytest.mark.timeout(_HANG_SECONDS)
def test_standard_error_without_end_does_not_stop_the_answers(sshd: Server) -> None:
    """Both streams share the window of their channel (2 MiB); whoever fills it would silence the other."""
    with SSH(sshd.host) as ssh:
        line = ssh.talk(["sh", "-c", "head -c 9000000 /dev/zero >&2; echo done; echo why >&2"])
        assert line.receive(30) == "done"
        with pytest.raises(LineClosed) as caught:
            line.receive(5)
        assert caught.value.details.endswith("why")
        assert len(caught.value.details) < 100_000


@pytest.mark.timeout(_HANG_SECONDS)
def test_a_server_that_greets_without_end_is_left_in_time(sshd: Server) -> None:
    def flood(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client = server.accept()[0]
            while True:
                client.sendall(b"x" * 65536)

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        threading.Thread(target=flood, args=(server,), daemon=True).start()
        with pytest.raises(SSHRefused):
            SSH(sshd.with_(port=server.getsockname()[1]), timeout=2)


def test_nobody_listens(sshd: Server) -> None:
    with pytest.raises(SSHRefused, match="does not answer"):
        SSH(sshd.with_(port=free_port()))


def test_somebody_else_listens(sshd: Server) -> None:
    """QEMU's forwarded port accepts before the guest does, and closes again."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(SSHRefused):
            SSH(sshd.with_(port=server.getsockname()[1]), timeout=2)


def test_a_silent_port_is_left_in_time(sshd: Server) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with pytest.raises(SSHRefused):
            SSH(sshd.with_(port=server.getsockname()[1]), timeout=1)


def test_an_unknown_host_key_is_not_accepted(sshd: Server, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text("")
    with pytest.raises(InfrastructureError, match=r"host key of .* is not known") as caught:
        SSH(sshd.with_(known_hosts=tmp_path / "known_hosts"))
    assert "ssh-keyscan" in caught.value.cure


def test_another_host_key_is_not_accepted(sshd: Server, tmp_path: Path) -> None:
    keygen(tmp_path / "other")
    known(tmp_path / "known_hosts", sshd.host.port, tmp_path / "other.pub")
    with pytest.raises(InfrastructureError, match="shows another host key"):
        SSH(sshd.with_(known_hosts=tmp_path / "known_hosts"))


def test_known_hosts_that_cannot_be_read_pin_nothing(sshd: Server, tmp_path: Path) -> None:
    with pytest.raises(UnverifiedHost, match=r"host key of .* is not known") as caught:
        SSH(sshd.with_(known_hosts=tmp_path))
    assert caught.value.details == f"{tmp_path}: Is a directory"
    assert "perfbisect_known_hosts" in caught.value.cure


def test_known_hosts_may_hold_whatever_openssh_passes_over(sshd: Server, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    authority = b"@cert-authority *.example.org ssh-ed25519 AAAA caf\xe9\n"
    file.write_bytes(authority + sshd.host.known_hosts.read_bytes())
    with SSH(sshd.with_(known_hosts=file)) as ssh:
        assert ssh.run(["echo", "in"]).output == "in\n"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_key_that_is_not_accepted(sshd: Server, tmp_path: Path, kind: str) -> None:
    """Of an RSA key it was told that the connection had ended early, as of a machine that goes down."""
    keygen(tmp_path / "stranger", kind)
    with pytest.raises(LoginRefused, match="does not accept the key") as caught:
        SSH(sshd.with_(key=tmp_path / "stranger"))
    assert "authorized_keys" in caught.value.cure


def test_a_key_that_cannot_be_read_is_no_machine_that_goes_down(sshd: Server, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key")
    with pytest.raises(LoginRefused, match=r"cannot connect to .*: .* is no private key") as caught:
        SSH(sshd.with_(key=tmp_path / "key"))
    assert "ssh-keygen -p" in caught.value.cure


@pytest.mark.parametrize(
    "words", ["Authentication failed: transport shut down or saw EOF", "Authentication timeout."]
)
def test_a_machine_that_goes_down_refuses_no_key(
    sshd: Server, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    def die(*_: object, **__: object) -> None:
        raise paramiko.AuthenticationException(words)

    monkeypatch.setattr(paramiko.Transport, "auth_publickey", die)
    with pytest.raises(SSHRefused, match="ended the connection"):
        SSH(sshd.host)


def test_a_missing_key_file(sshd: Server, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="does not exist"):
        SSH(sshd.with_(key=tmp_path / "none"))


def test_a_machine_that_goes_down_under_a_command_is_a_broken_line(sshd: Server) -> None:
    with SSH(sshd.host) as ssh, pytest.raises(LineClosed, match="before 'sh' had ended"):
        ssh.run(["sh", "-c", f"kill -9 {sshd.connections()[-1]}"])


def test_a_boot_that_ends_while_it_is_asked_for_is_nobody_who_answers(
    sshd: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> None:
        raise LineClosed("the connection broke")

    monkeypatch.setattr(SSH, "run", die)
    with pytest.raises(SSHRefused, match="the connection broke"):
        MachineReach(sshd.host, 60.0).ask()


class _StartsNothing(paramiko.ServerInterface):
    """Lets everybody in, and never answers the request to start a command, as where its disk hangs."""

    def __init__(self, over: threading.Event) -> None:
        self.over = over

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL  # type: ignore[attr-defined,no-any-return]

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED  # type: ignore[attr-defined,no-any-return]

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.over.wait()
        return False


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SSHHost]:
    """A machine that takes logins and starts no command."""
    monkeypatch.setattr(module, "_LEAST_START_SECONDS", 1.0)
    over = threading.Event()
    keygen(tmp_path / "host_key")
    keygen(tmp_path / "key")
    host_key = paramiko.Ed25519Key.from_private_key_file(str(tmp_path / "host_key"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        known(tmp_path / "known_hosts", port, tmp_path / "host_key.pub")

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    transport = paramiko.Transport(server.accept()[0])
                    transport.add_server_key(host_key)
                    transport.start_server(server=_StartsNothing(over))

        threading.Thread(target=serve, daemon=True).start()
        yield SSHHost("127.0.0.1", port, "root", tmp_path / "key", tmp_path / "known_hosts")
        over.set()
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.timeout(_HANG_SECONDS)
def test_a_machine_that_takes_logins_and_starts_no_command_is_left_in_time(
    hanging: SSHHost, tmp_path: Path
) -> None:
    for use in (
        lambda ssh: ssh.run(["true"]),
        lambda ssh: ssh.talk(["true"]),
        lambda ssh: ssh.save(["true"], tmp_path / "x", timeout=9, max_bytes=1),
    ):
        with (
            SSH(hanging, login_timeout=30.0) as ssh,
            pytest.raises(CommandUnanswered, match="did not start 'true' within 1 s"),
        ):
            ssh._start_seconds = 1.0
            use(ssh)  # type: ignore[no-untyped-call]


@pytest.mark.timeout(_HANG_SECONDS)
def test_a_machine_that_starts_no_command_is_nobody_who_answers(hanging: SSHHost) -> None:
    reach = MachineReach(hanging, 60.0)
    reach.probe_seconds = 6.0
    with pytest.raises(SSHRefused, match="did not start 'cat'"):
        reach.ask()


@pytest.mark.timeout(_HANG_SECONDS)
def test_a_server_that_hangs_after_the_login_is_left_in_time(sshd: Server) -> None:
    with SSH(sshd.host, login_timeout=30.0) as ssh:
        assert ssh.run(["echo", "well"]).output == "well\n"
        ssh._start_seconds = 1.0
        os.kill(sshd.connections()[-1], signal.SIGSTOP)
        with pytest.raises(CommandUnanswered):
            ssh.run(["true"])
        with pytest.raises(LineClosed):
            ssh.run(["true"])
    sshd.cut()

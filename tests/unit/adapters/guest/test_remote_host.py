"""A guest on another host: its console comes here, its folder stays, its tunnel opens or says why not.

The whole way: tests/integration/hosts/test_remote_libvirt.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import platform
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath
from subprocess import Popen
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bisector.adapters.guest import remote_host
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.guest.remote_host import RemoteBoot
from bisector.adapters.system import command
from bisector.adapters.system.architectures import ARM64, X86_64
from bisector.adapters.system.files import sha256_of
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError
from bisector.ports import Counting
from tests.support.waiting import until

HOST = SSHHost("192.0.2.1", 22, "root", Path("key"), Path("known_hosts"))


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo '[0.1] booting'; echo 'Kernel panic of ssh' >&2; exit 255", "Kernel panic of ssh"),
        ("echo '[0.1] booting'; exit 3", "ssh to root@192.0.2.1:22 ended with code 3"),
    ],
)
def test_a_console_whose_ssh_ends_says_why_and_ssh_is_no_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    monkeypatch.setattr(remote_host, "_ssh", lambda *_: ["sh", "-c", f"read line; {script}"])
    pipes: list[int] = []

    def start_process(*given: object, **options: object) -> object:
        process = command.start_process(*given, **options)  # type: ignore[arg-type]
        assert process.stdin is not None
        pipes.append(process.stdin.fileno())
        return process

    monkeypatch.setattr(remote_host, "start_process", start_process)
    boot = RemoteBoot(HOST, cast("Hypervisor", None), 1, 2, PurePosixPath("/nonexistent"))
    console = tmp_path / "console.log"
    with boot.followed(console) as why_ended:
        assert why_ended() is None
        with open(pipes[0], "w", closefd=False) as line:
            line.write("\n")
        until(lambda: why_ended() is not None, 30)
        assert why_ended() == why
    assert console.read_text() == "[0.1] booting\n"


def test_the_ssh_that_follows_a_console_ends_with_its_boot_also_with_one_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search boots hundreds of times: each would leave a connection to the host."""
    monkeypatch.setattr(remote_host, "_ssh", lambda *_: ["sleep", "60"])
    followers: list[Popen[str]] = []

    def start_process(*given: object, **options: object) -> object:
        followers.append(command.start_process(*given, **options))  # type: ignore[arg-type]
        return followers[0]

    monkeypatch.setattr(remote_host, "start_process", start_process)
    boot = RemoteBoot(HOST, cast("Hypervisor", None), 1, 2, PurePosixPath("/nonexistent"))
    with pytest.raises(InfrastructureError), boot.followed(tmp_path / "console.log") as why_ended:
        assert why_ended() is None
        raise InfrastructureError("the guest did not start")
    assert followers[0].poll() is not None


def test_the_folder_of_a_boot_that_runs_stays_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_host, "_ssh", lambda _host, _options, words: list(words))
    monkeypatch.setattr(remote_host, "_TOUCH_SECONDS", 0.1)
    boots = tmp_path / "boots"
    for name in ("runs", "left-behind"):
        (boots / name).mkdir(parents=True)
    (boots / "left-behind" / "scratch.raw").touch()
    two_days_ago = time.time() - 172_800
    os.utime(boots / "left-behind", (two_days_ago, two_days_ago))
    boot = RemoteBoot(HOST, cast("Hypervisor", None), 1, 2, PurePosixPath(boots / "runs"))
    with boot.followed(tmp_path / "console.log") as why_ended:
        for _ in range(3):  # again and again
            until(boot.console.exists, 30)
            os.utime(boots / "runs", (two_days_ago, two_days_ago))
            until(lambda: (boots / "runs").stat().st_mtime > two_days_ago + 1, 30)
        with socket.socket(socket.AF_UNIX) as libvirt:
            libvirt.bind(str(tmp_path / "socket"))
            begin = ["sh", "-c", remote_host._BEGIN, "sh", str(boots / "new"), str(tmp_path / "socket")]
            command.run_command(begin)
        assert why_ended() is None
    assert {path.name for path in boots.iterdir()} == {"runs", "new"}


def test_what_follows_a_console_ends_with_its_input_and_makes_no_folder_anew(tmp_path: Path) -> None:
    gone = tmp_path / "gone" / "console.log"
    follow = ["sh", "-c", remote_host._FOLLOW, "sh", str(gone), "3600"]
    command.run_command(follow, timeout=30, check=False)  # its input is empty
    assert not gone.parent.exists()


def answer(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let a script be ssh; its arguments are the command for the host."""
    monkeypatch.setattr(
        remote_host, "_ssh", lambda _host, _options, words: ["sh", "-c", script, "sh", *words]
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "before",
    [
        "",
        "echo 'setlocale: LC_ALL: cannot change locale' >&2",
        "echo 'Welcome'; echo 'not ready'",
        "printf 'no end of line: '",
    ],
)
def test_a_tunnel_opens_whatever_the_shell_there_says_first(
    monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    answer(monkeypatch, f'{before}\nexec "$@"')
    with remote_host._tunnel(HOST, []):
        pass


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("script", "details"),
    [
        (
            "echo Welcome; echo 'remote port forwarding failed' >&2; exit 255",
            "Welcome\n\nremote port forwarding failed",
        ),
        ("exit 255", "ssh ended with code 255"),
        ("echo Welcome; exec cat", "Welcome"),  # and then silence: our own pipe keeps it alive
        ("exec yes", "y\n" * 999 + "y"),
    ],
)
def test_a_tunnel_that_does_not_open_says_why_and_ends(
    monkeypatch: pytest.MonkeyPatch, script: str, details: str
) -> None:
    monkeypatch.setattr(remote_host, "_LOGIN_SECONDS", 2.0)
    answer(monkeypatch, script)
    error: InfrastructureError | None = None
    try:
        with remote_host._tunnel(HOST, []):
            pytest.fail("it is open")
    except InfrastructureError as raised:
        error = raised
    assert error is not None
    assert error.message == "no tunnel to root@192.0.2.1:22 could be opened"
    assert error.details == details


def test_of_a_flood_before_the_answer_no_more_is_read_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_host, "_GREETING", (3, 1000))
    flood = io.StringIO("x" * 2500 + "\n" + "y\n" * 100 + "ready\n")
    assert remote_host._greeting(flood, lambda: None) == "x" * 2500 + "\n"


def test_an_open_tunnel_is_not_ended_at_the_deadline_of_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    before = threading.enumerate()
    monkeypatch.setattr(remote_host, "_LOGIN_SECONDS", 60.0)
    read, write = os.pipe()
    with open(read) as output, open(write, "w") as line:
        line.write("ready\n")
        line.flush()
        assert remote_host._greeting(output, lambda: killed.append(1)) is None
    until(lambda: not {*threading.enumerate()} - {*before}, 20)  # nothing waits for the deadline any more
    assert not killed


def test_where_guests_are_emulated_their_wall_clock_says_nothing() -> None:
    hypervisor: Any = SimpleNamespace(architecture=lambda: "aarch64")
    boot = RemoteBoot(HOST, hypervisor, 1, 2, PurePosixPath("/nonexistent"))
    boot.require_native(ARM64)
    with pytest.raises(InfrastructureError, match="is aarch64: its x86_64 guests are emulated"):
        boot.require_native(X86_64)


def test_a_kernel_that_the_image_made_here_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    job: Any = SimpleNamespace(counting=None)
    kernel: Any = SimpleNamespace(userspace="debian", arch="arm64")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    remote_host.refuse_what_is_local("far", HOST, kernel, job, "wall")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(InfrastructureError, match="made here, of x86_64 programs, and the kernel is arm64"):
        remote_host.refuse_what_is_local("far", HOST, kernel, job, "wall")


def test_what_is_counted_is_refused_only_where_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the wall clock the workload's own number decides, which it may print there."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    kernel: Any = SimpleNamespace(userspace="debian", arch="x86_64")
    job: Any = SimpleNamespace(counting=Counting(("instructions",), needed=("instructions",)))
    remote_host.refuse_what_is_local("far", HOST, kernel, job, "wall")
    with pytest.raises(InfrastructureError, match="what QEMU counts is counted in guests of this machine"):
        remote_host.refuse_what_is_local("far", HOST, kernel, job, "instructions")
    beside: Any = SimpleNamespace(counting=Counting(("instructions",)))
    remote_host.refuse_what_is_local("far", HOST, kernel, beside, "instructions")


def test_a_kernel_without_a_distribution_is_refused_elsewhere() -> None:
    kernel: Any = SimpleNamespace(userspace="initramfs", arch="x86_64")
    job: Any = SimpleNamespace(counting=None)
    with pytest.raises(InfrastructureError, match="an initramfs alone run in guests of this machine"):
        remote_host.refuse_what_is_local("far", HOST, kernel, job, "wall")


class There:
    """Stands in for logins on the host. codes: of commands by a word of theirs; others end well."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **codes: int) -> None:
        self.ran: list[list[str]] = []
        self.codes = codes
        self.closed = 0
        monkeypatch.setattr(remote_host, "SSH", lambda *_, **__: self)

    def __enter__(self) -> There:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, words: list[str], check: bool = True) -> SimpleNamespace:
        self.ran.append(words)
        code = next((code for word, code in self.codes.items() if word in " ".join(words)), 0)
        if check and code:
            raise InfrastructureError("no route")
        return SimpleNamespace(code=code, output="said there")

    def close(self) -> None:
        self.closed += 1


def test_a_file_that_is_there_is_not_sent_again_and_one_that_does_not_arrive_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image takes an hour of a slow line; half a kernel would blame its commit."""
    there = There(monkeypatch)
    sent: list[list[str]] = []

    def run_command(words: list[str], **_: object) -> SimpleNamespace:
        sent.append(words)
        return SimpleNamespace(code=len(sent) - 1, output="No space left on device")

    monkeypatch.setattr(remote_host, "run_command", run_command)
    kernel = tmp_path / "bzImage"
    kernel.write_text("kernel")
    boot = RemoteBoot(HOST, cast("Hypervisor", None), 1, 2, PurePosixPath("/nonexistent"))
    target = boot.put(kernel)
    assert target.name == sha256_of(kernel)
    assert sent == []
    there.codes = {"xargs": 1}
    assert boot.put(kernel) == target
    assert len(sent) == 1
    with pytest.raises(InfrastructureError, match="bzImage did not arrive whole at root@") as error:
        boot.put(kernel)
    assert error.value.details == "No space left on device"


@pytest.mark.parametrize("whole", [True, False])
def test_what_arrives_there_has_its_checksum_or_no_name(tmp_path: Path, whole: bool) -> None:
    target = tmp_path / "files" / "name"
    checksum = hashlib.sha256(b"kernel" if whole else b"kern").hexdigest()
    with (tmp_path / "sent").open("wb+") as file:
        file.write(b"kernel")
        file.seek(0)
        words = ["sh", "-c", remote_host._RECEIVE, "sh", str(target), checksum]
        code = command.run_command(words, stdin=file.fileno(), check=False).code
    assert (code == 0) is whole
    assert [path.name for path in target.parent.iterdir()] == (["name"] if whole else [])


def test_the_latest_files_stay_there_for_the_next_boot(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number in range(14):
        path = tmp_path / "files" / f"{number}"
        path.touch()
        os.utime(path, (number, number))
    look = ["sh", "-c", remote_host._LOOK, "sh", str(tmp_path)]
    assert command.run_command([*look, "0"], check=False).code == 0, "it is there, and used now"
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"0", *map(str, range(3, 14))}
    assert command.run_command([*look, "1"], check=False).code != 0


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return what the tunnels that are opened lead to; no ssh is started."""
    opened: list[list[str]] = []

    @contextlib.contextmanager
    def tunnel(host: SSHHost, forwards: list[str]) -> Iterator[None]:
        opened.append(forwards)
        yield

    monkeypatch.setattr(remote_host, "_tunnel", tunnel)
    return opened


@pytest.mark.parametrize("gone", [False, True])
def test_the_folder_of_a_boot_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, way: list[list[str]], gone: bool
) -> None:
    """It has the workload's disk. A host that went down meanwhile hides no error of the boot."""
    there = There(monkeypatch, **({"rm -rf /var": 1} if gone else {}))
    monkeypatch.setattr(remote_host, "Hypervisor", lambda *_, **__: there)
    with pytest.raises(ZeroDivisionError), remote_host.remote_boot(HOST, 1, 2) as boot:
        raise ZeroDivisionError
    assert there.ran[-1] == ["rm", "-rf", str(boot.folder)]
    assert there.closed == 1
    assert way[0][3] == "127.0.0.1:1:127.0.0.1:2", "nobody else reaches the guest"


def test_a_host_without_libvirt_is_told_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, way: list[list[str]]
) -> None:
    There(monkeypatch, mkdir=1)
    with (
        pytest.raises(InfrastructureError, match=r"libvirt does not run on root@192\.0\.2\.1:22") as error,
        remote_host.remote_boot(HOST, 1, 2),
    ):
        pass
    assert error.value.details == "said there"
    assert way == []


def test_a_tunnel_ends_with_its_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, 'exec "$@"')
    tunnels: list[Any] = []

    def start_process(*given: object, **options: object) -> object:
        tunnels.append(command.start_process(*given, **options))  # type: ignore[arg-type]
        return tunnels[-1]

    monkeypatch.setattr(remote_host, "start_process", start_process)
    with remote_host._tunnel(HOST, []):
        assert tunnels[0].poll() is None
    assert tunnels[0].poll() is not None


def test_ssh_trusts_the_pinned_key_alone_asks_nobody_and_lets_nobody_else_in() -> None:
    words = remote_host._ssh(HOST, ["-C"], ["sh", "-c", "echo 1"])
    given = {word for option, word in pairwise(words) if option == "-o"}
    assert given >= {
        "UserKnownHostsFile=known_hosts",
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
        "BatchMode=yes",  # a question would wait for ever
        "IdentitiesOnly=yes",  # keys of an agent may end in 'too many failures'
        "ExitOnForwardFailure=yes",  # else the guest seems to be silent
        "StreamLocalBindMask=0177",  # the socket of libvirt is root's there
    }
    assert words[-7:] == ["-C", "-i", "key", "-p", "22", "root@192.0.2.1", "sh -c 'echo 1'"]

"""The console of a guest on another host comes here, and its connection may end.

The whole way: tests/integration/hosts/test_remote_libvirt.py.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import cast

import pytest

from bisector.adapters.guest import remote_host
from bisector.adapters.guest.libvirt_connection import Hypervisor
from bisector.adapters.guest.remote_host import RemoteBoot
from bisector.adapters.system import command
from bisector.adapters.system.ssh_endpoint import SSHHost
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

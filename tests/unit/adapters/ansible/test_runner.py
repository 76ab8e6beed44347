"""What a play leaves behind, and what its interruption starts. With Ansible: integration/test_ansible.py."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible import runner
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError, Interrupted

DONE = json.dumps(
    {"event": "runner_on_ok", "stdout": "ok", "event_data": {"task": "compiling", "host": "far", "res": {}}}
)


def _as_given(document: dict[str, Any]) -> object:
    """Return a text that Ansible must not take for a template as it was given."""
    return document["__ansible_unsafe"] if document.keys() == {"__ansible_unsafe"} else document


class Commands:
    """Stands in for `stream_command`: notes the playbook, and does what the test says in its folder."""

    def __init__(self, what: Callable[[Path], None]) -> None:
        self.what = what
        self.played: list[str] = []
        self.variables: list[dict[str, Any]] = []

    def __call__(self, command: list[str], line: Callable[[str], None], **_: object) -> int:
        self.played.append(command[command.index("--playbook") + 1])
        private = Path(command[command.index("run") + 1])
        self.variables.append(json.loads((private / "env" / "extravars").read_text(), object_hook=_as_given))
        if self.played[-1] != "reap.yml":
            self.what(private.parent)
        line(DONE)
        return 0


def play(
    monkeypatch: pytest.MonkeyPatch, folder: Path, what: Callable[[Path], None], **more: Any
) -> tuple[Commands, Callable[[], object]]:
    commands = Commands(what)
    monkeypatch.setattr(runner, "stream_command", commands)
    ansible = Ansible(folder / "playbooks", folder / "lab.yml", here=frozenset({"near"}))
    given: dict[str, Any] = {"limit": "far", "variables": {"a": 1}, "folder": folder / "log", "timeout": 9.0}
    return commands, lambda: ansible.play("build", progress=lambda _: None, **{**given, **more})


def raising(error: BaseException) -> Callable[[Path], None]:
    def what(folder: Path) -> None:
        raise error

    return what


def test_a_build_is_not_lost_because_somebody_tidied_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands, start = play(monkeypatch, tmp_path, shutil.rmtree)
    assert start() is not None
    assert commands.played == ["build.yml"]


@pytest.mark.parametrize(
    "error", [Interrupted("stopped"), InfrastructureError("too long"), KeyboardInterrupt()]
)
def test_an_interrupted_play_is_ended_on_the_remote_host_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException
) -> None:
    """Else a compile goes on there, and takes the builder's processors from the next one."""
    commands, start = play(monkeypatch, tmp_path, raising(error))
    with pytest.raises(type(error)):
        start()
    assert commands.played == ["build.yml", "reap.yml"]
    first, then = commands.variables
    assert then["perfbisect_reap"] == first["perfbisect_play"] != then["perfbisect_play"]
    assert list((tmp_path / "log" / "reap").iterdir())


@pytest.mark.parametrize(
    ("given", "is_looked_at"),
    [
        ({"reap": False}, False),
        ({"limit": "near"}, False),
        ({"limit": "near", "connection": SSHHost("192.0.2.1", 22, "root", Path("key"), Path("hosts"))}, True),
    ],
)
def test_nothing_is_looked_for_on_this_machine_nor_in_a_guest_that_ends_with_its_play(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: dict[str, Any], is_looked_at: bool
) -> None:
    """A play more makes Ctrl-C slow: half of the time until a build here had ended."""
    commands, start = play(monkeypatch, tmp_path, raising(Interrupted("stopped")), **given)
    with pytest.raises(Interrupted):
        start()
    assert commands.played == ["build.yml", *(["reap.yml"] if is_looked_at else [])]


@pytest.mark.parametrize(("length", "is_usual"), [(60, True), (61, False)])
def test_folders_of_plays_lie_where_a_socket_has_room(
    monkeypatch: pytest.MonkeyPatch, length: int, is_usual: bool
) -> None:
    """60 bytes, and 43 of pb-12345678/cp/ and the name that OpenSSH gives a socket at first, are 103."""
    usual = Path("/" + (length - 1) * "a")
    monkeypatch.setattr(tempfile, "tempdir", str(usual))
    assert runner.temporary_parent() == (usual if is_usual else Path("/tmp"))

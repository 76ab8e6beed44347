"""The only door to `playbooks/`: ansible-runner as a subprocess, its events as progress and as results.

`Ansible.play` runs one playbook and returns what its tasks said. A subprocess, because ansible-runner in this
process would fork from a program with threads and change its signal handlers.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bisector.adapters.ansible.playbook_events import Events, Played, Task, raise_for_failure
from bisector.adapters.system import orphans
from bisector.adapters.system.command import stream_command
from bisector.adapters.system.files import os_errors_reported, write_file, writing
from bisector.adapters.system.leftovers import make_temporary_folder
from bisector.adapters.system.ssh_endpoint import SSHHost
from bisector.errors import InfrastructureError
from bisector.ports import Progress

log = logging.getLogger(__name__)

TEMPORARY_PREFIX = "pb-"
"""Begins the name of a play's folder. Short, since the path of the socket of OpenSSH's master contains it."""
_SOCKET_BYTES = 103
"""Longest path of a socket: 107 on Linux, four less elsewhere."""
_NAMES_BYTES = len("/pb-12345678/cp/0123456789.1234567890123456")
"""What a socket's path has behind the parent folder: ten digits of Ansible's, and 17 characters that OpenSSH
adds until it listens."""

_REAP_SECONDS = 30.0
"""Timeout of the play that ends what an interrupted one left on a remote host: one connection, one task."""


def temporary_parent() -> Path:
    """Return where folders of plays are made: TMPDIR, or /tmp where its path is too long for a socket."""
    usual = Path(tempfile.gettempdir())
    return usual if len(os.fsencode(usual)) + _NAMES_BYTES <= _SOCKET_BYTES else Path("/tmp")  # noqa: S108


@dataclass(slots=True)
class Ansible:
    """Playbooks and an inventory. Several plays may run at once; each has its own folder.

    stop: asked while a play runs; when it says True, the play is ended and Interrupted is raised. here: the
    hosts that are this machine, where an interrupted play leaves nothing behind.
    """

    playbooks: Path
    inventory: Path
    stop: Callable[[], bool] | None = None
    here: frozenset[str] = frozenset()

    def play(
        self,
        playbook: str,
        *,
        limit: str,
        variables: Mapping[str, Any],
        folder: Path,
        timeout: float,
        progress: Progress,
        connection: SSHHost | None = None,
        check: bool = True,
        groups: Sequence[str] = (),
        on_task: Callable[[Task], None] | None = None,
        reap: bool = True,
    ) -> Played:
        """Run `playbooks/<playbook>.yml` on the hosts that match `limit` and return the output of the tasks.

        variables: extra variables, any JSON value; no text in them is a template. folder: the log goes below
        it. timeout: seconds for all of it. progress: told each task's name as it starts. connection: how to
        reach the (single) host of `limit`, when only this process knows, as with a guest's forwarded port;
        the inventory is not read then (which saves a third of a second). groups: the groups this host is in
        then. on_task: told each task as it ends. reap: whether an interrupted play's leftovers are looked for
        on remote hosts; of no use for a guest that ends with the play.

        Raises InfrastructureError when Ansible itself, the connection or (with `check`) a task fails, and
        when the deadline passes; Interrupted on request. With check off a failed task is in `Played.failed`.
        """
        events = Events(playbook, _new_log(folder, playbook), progress, on_task)
        mark = uuid.uuid4().hex
        with os_errors_reported("cannot make a temporary folder for Ansible"):
            short = make_temporary_folder(TEMPORARY_PREFIX, temporary_parent())
        try:
            private = short / "private"
            extra = json.dumps(_untemplated({**variables, "perfbisect_play": mark}))
            write_file(private / "env" / "extravars", extra.encode())
            command = self._command(playbook, limit, private, connection, groups)
            started = time.monotonic()
            try:
                code = stream_command(
                    command,
                    events.read_line,
                    env=_environment(self.playbooks, short),
                    timeout=timeout,
                    stop=self.stop,
                )
            except BaseException:
                if reap and (connection is not None or limit not in self.here):
                    self._reap(limit, mark, folder, connection)
                raise
            finally:
                # A connection master left open would wake the testbed in the middle of a run.
                orphans.end_marked(str(short))
                events.close()
            seconds = time.monotonic() - started
        finally:
            shutil.rmtree(short, ignore_errors=True)  # a file an event; the log has it all
        played = Played(playbook, tuple(events.tasks), seconds, events.log)
        raise_for_failure(played, code, events, check)
        return played

    def _command(
        self, playbook: str, limit: str, private: Path, connection: SSHHost | None, groups: Sequence[str]
    ) -> list[str]:
        inventory = self.inventory.absolute()
        if connection is not None:
            inventory = private / "connection.json"
            inventory.write_text(json.dumps(_host(limit, connection, groups)), encoding="utf-8")
        if not (Path(sys.executable).parent / "ansible-playbook").exists():
            raise InfrastructureError(
                f"Ansible is not installed beside {sys.executable}",
                cure="run 'make setup', or install perfbisect again",
            )
        return [
            *(sys.executable, "-m", "ansible_runner", "run", str(private), "--json"),
            *("--project-dir", str(self.playbooks), "--playbook", f"{playbook}.yml", "--limit", limit),
            f"--cmdline=-i {_quoted(inventory)}",  # one word, for it starts with a dash
        ]

    def _reap(self, limit: str, mark: str, folder: Path, connection: SSHHost | None) -> None:
        """End what an interrupted play left on a remote host: modules go on when their connection dies."""
        try:
            Ansible(self.playbooks, self.inventory).play(
                "reap",
                limit=limit,
                variables={"perfbisect_reap": mark},
                folder=folder / "reap",
                timeout=_REAP_SECONDS,
                progress=lambda _: None,
                connection=connection,
                reap=False,
            )
        except InfrastructureError as error:
            log.warning("could not look for leftovers of an interrupted play on '%s': %s", limit, error)


def _untemplated(value: object) -> object:
    """Return a JSON value whose texts Ansible takes as they are, as its YAML does with !unsafe.

    Else it runs what is in '{{ }}' on this machine, and a kernel under test has a say in some values.
    """
    if isinstance(value, str):
        return {"__ansible_unsafe": value}
    if isinstance(value, Mapping):
        return {key: _untemplated(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_untemplated(one) for one in value]
    return value


def _host(host: str, connection: SSHHost, groups: Sequence[str]) -> Mapping[str, Any]:
    options = (
        f"-o UserKnownHostsFile={_quoted(connection.known_hosts)} -o GlobalKnownHostsFile=/dev/null"
        " -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
    )
    variables = {
        "ansible_connection": "ssh",
        "ansible_host": connection.address,
        "ansible_port": connection.port,
        "ansible_user": connection.user,
        "ansible_ssh_private_key_file": str(connection.key),
        "ansible_ssh_common_args": options,
    }
    members: Mapping[str, Any] = {group: {"hosts": {host: {}}} for group in groups}
    return {"all": {"hosts": {host: variables}, "children": members}}


def _new_log(folder: Path, playbook: str) -> Path:
    """Make the next free `<playbook>-<number>.log` below folder."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for number in itertools.count():
            with contextlib.suppress(FileExistsError):
                log = folder.absolute() / f"{playbook}-{number}.log"
                log.touch(exist_ok=False)
                return log
    raise AssertionError("itertools.count never ends")


def _environment(playbooks: Path, short: Path) -> Mapping[str, str]:
    """Settings that must hold whatever the user's own ansible.cfg or locale says."""
    return {
        "ANSIBLE_CONFIG": str(playbooks / "ansible.cfg"),
        "ANSIBLE_HOME": str(short / "home"),
        "ANSIBLE_LOCAL_TEMP": str(short / "tmp"),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(short / "cp"),
        "ANSIBLE_NOCOLOR": "1",
        "TMPDIR": str(short),  # a module that is killed leaves its temporary files
        "LC_ALL": "C.UTF-8",
        # ansible-runner starts 'ansible-playbook' by name; ours is beside the interpreter, seldom in PATH.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def _quoted(path: Path) -> str:
    """Quote for ansible-runner and OpenSSH, which both split their option strings as a shell would."""
    text = str(path)
    return "'" + text.replace("'", "'\\''") + "'" if any(c in text for c in " '\"\\") else text

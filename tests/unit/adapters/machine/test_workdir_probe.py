"""What a machine says of the workload's folder and of its processes; a full disk is no lost one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.machine import workdir_probe
from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.machine.workdir_probe import is_lost_disk, survivors, why_not_writable
from bisector.adapters.system.channel import LineClosed, LineSilent
from bisector.adapters.system.ssh import LoginRefused, SSHRefused, UnverifiedHost
from bisector.errors import InfrastructureError


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> MachineReach:
    """Return a machine that is this one; it fails as `SSH.run` does."""

    def run(_: object, command: Sequence[str], *, timeout: float = 60.0) -> str:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise InfrastructureError("'sh' failed", details=f"{shlex.join(command)}\n{done.stdout}")
        return done.stdout

    monkeypatch.setattr(MachineReach, "run", run)
    monkeypatch.setattr(MachineReach, "probe_seconds", 30.0, raising=False)
    return MachineReach.__new__(MachineReach)


def test_a_folder_that_can_be_written_is_made_and_left_empty(here: MachineReach, tmp_path: Path) -> None:
    folder = tmp_path / "it's here" / "work"
    assert why_not_writable(here, str(folder)) == ""
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_link_in_place_of_the_file_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path, shell: str
) -> None:
    """/var/tmp is for all: who makes the folder first may link the file to /etc/shadow."""
    program(monkeypatch, tmp_path / "bin", "sh", f'exec {shutil.which(shell) or "/bin/sh"} "$@"')
    precious, file = tmp_path / "shadow", tmp_path / "work" / ".probe"
    precious.write_text("secret")
    file.parent.mkdir()
    file.symlink_to(precious)
    assert why_not_writable(here, str(file.parent)) == ""
    assert precious.read_text() == "secret" and list(file.parent.iterdir()) == []
    again = f'/bin/rm "$@"; [ $1 != -f ] || ln -s {precious} {file}'  # he is quicker
    program(monkeypatch, tmp_path / "bin", "rm", again)
    assert "exist" in why_not_writable(here, str(file.parent))
    assert precious.read_text() == "secret"


def program(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    """Have this found instead of the program of that name."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_one_file_is_written_out_and_not_all_that_waits(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path
) -> None:
    """A `sync` of gigabytes took longer than an answer may, and the kernel was blamed."""
    program(monkeypatch, tmp_path / "bin", "sync", "exit 1")
    program(monkeypatch, tmp_path / "bin", "dd", f'echo "$@" >{tmp_path}/said; exec /usr/bin/dd "$@"')
    assert why_not_writable(here, str(tmp_path / "work")) == ""
    assert (tmp_path / "said").read_text() == "conv=fsync\n"


def test_the_reason_is_told_and_not_what_dd_counts(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert why_not_writable(here, str(tmp_path / "file")).endswith("file': File exists")
    program(monkeypatch, tmp_path / "bin", "dd", 'exec /usr/bin/dd "$@" >/dev/full')
    assert "dd: " in why_not_writable(here, str(tmp_path))


def test_a_file_that_is_read_as_another_than_was_written_is_a_lost_disk(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path
) -> None:
    program(monkeypatch, tmp_path / "bin", "cat", "echo other")
    reason = why_not_writable(here, str(tmp_path / "work"))
    assert reason == "what was written is not read back"
    assert is_lost_disk(reason)


def said(monkeypatch: pytest.MonkeyPatch, output: str) -> str:
    """Return the reason where the script prints this."""

    def run(_: object, command: Sequence[str], **__: object) -> str:
        raise InfrastructureError("'sh' failed with code 1", details=f"{shlex.join(command)}\n{output}")

    monkeypatch.setattr(MachineReach, "run", run)
    return why_not_writable(MachineReach.__new__(MachineReach), "/var/tmp/perfbisect")


@pytest.mark.parametrize(
    ("output", "lost"),
    [
        ("dd: fsync failed for '/w/.probe': Input/output error\n0+1 records in\n0+1 records out\n", True),
        ("dd: /w/.probe: I/O error", True),  # musl
        ("mkdir: cannot create directory '/w': Read-only file system", True),
        ("dd: failed to open '/w/.probe': No such device or address", True),
        ("mkdir: cannot create directory '/w': Structure needs cleaning", True),
        ("Bus error\n11 bytes copied, 0.01 s, 1 kB/s", True),
        ("mkdir: cannot create directory '/w': Bad message", True),
        ("bash: /usr/bin/mkdir: Input/output error\nexec request failed", True),
        ("dd: error writing '/w/.probe': No space left on device\n0+1 records in\n0+0 records out", False),
        ("sh: 3: cannot create /w/.probe: Disk quota exceeded", False),
        ("mkdir: cannot create directory '/w': Permission denied", False),
        ("sh: 1: Cannot fork", False),
        ("", False),  # what is left is the command
    ],
)
def test_only_what_names_a_failing_disk_is_a_lost_one(
    monkeypatch: pytest.MonkeyPatch, output: str, lost: bool
) -> None:
    reason = said(monkeypatch, output)
    assert is_lost_disk(reason) == lost
    assert "records" not in reason
    assert reason


def test_what_a_machine_says_is_short_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = said(monkeypatch, "x" * 100_000 + "\x1b[2J: Input/output error")
    assert len(reason) <= 300
    assert reason.endswith("x: Input/output error")
    monkeypatch.setattr(MachineReach, "run", lambda *_, **__: "dd\x07 (D (disk sleep))\n" * 1000)
    monkeypatch.setattr(MachineReach, "probe_seconds", 30.0, raising=False)
    listed = survivors(MachineReach.__new__(MachineReach), "/w")
    assert len(listed) <= 300
    assert listed.startswith("dd (D (disk sleep)), dd (D (disk sleep)), ")


def test_an_empty_last_line_hides_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty reason would say that the folder can be written."""
    assert said(monkeypatch, "mkdir: cannot create directory: Permission denied\n\n") == (
        "mkdir: cannot create directory: Permission denied"
    )


@pytest.mark.parametrize("error", [SSHRefused, LineClosed, LineSilent, UnverifiedHost, LoginRefused])
def test_no_answer_is_no_reason(monkeypatch: pytest.MonkeyPatch, error: type[InfrastructureError]) -> None:
    def run(*_: object, **__: object) -> str:
        raise error("nothing came", details="Input/output error")

    monkeypatch.setattr(MachineReach, "run", run)
    with pytest.raises(error):
        why_not_writable(MachineReach.__new__(MachineReach), "/w")


def test_what_runs_in_the_folder_is_ended_and_nothing_else(here: MachineReach, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "work2").mkdir()
    ours = [subprocess.Popen(["sleep", "100"], cwd=where) for where in (folder, folder / "below")]
    other = subprocess.Popen(["sleep", "100"], cwd=tmp_path / "work2")
    try:
        assert survivors(here, str(folder)) == ""
        assert [one.wait(10) for one in ours] == [-9, -9]
        assert other.poll() is None
    finally:
        for one in (*ours, other):
            one.kill()
            one.wait()


def test_a_process_has_time_to_end_before_it_is_told(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path
) -> None:
    """One that waits for a slow disk ends only then. Here `kill` does nothing, as for one that cannot end."""
    script = workdir_probe._KILL.replace("kill -9", "true")
    monkeypatch.setattr(workdir_probe, "_KILL", script)
    for seconds, told in (("1.5", ""), ("100", "sleep (S (sleeping))")):
        monkeypatch.setattr(workdir_probe, "_HUNG_SECONDS", 30 if not told else 1)
        with subprocess.Popen(["sleep", seconds], cwd=tmp_path) as one:
            try:
                assert survivors(here, str(tmp_path)) == told
            finally:
                one.kill()


def test_a_login_that_begins_in_the_folder_is_nothing_that_cannot_be_ended(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path
) -> None:
    """A kernel was told to hang, since '()' could not be ended: the shell that looks for processes there."""

    def run(_: object, command: Sequence[str], *, timeout: float) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    monkeypatch.setattr(MachineReach, "run", run)
    monkeypatch.setattr(workdir_probe, "_HUNG_SECONDS", 1)
    started = time.monotonic()
    assert survivors(here, str(tmp_path)) == ""
    assert time.monotonic() - started < 1.0, "there is nothing to wait for"


@pytest.mark.parametrize("status", ["", "Name: dd\nState:\tZ (zombie)\n", "Name: dd\nState:\tX (dead)\n"])
def test_what_has_ended_since_it_was_listed_is_nothing_that_cannot_be_ended(
    monkeypatch: pytest.MonkeyPatch, here: MachineReach, tmp_path: Path, status: str
) -> None:
    (tmp_path / "status").write_text(status)
    read = f'exec /usr/bin/sed "$1" "$2" {tmp_path}/status' if status else "exit 2"
    program(monkeypatch, tmp_path / "bin", "sed", read)
    monkeypatch.setattr(workdir_probe, "_HUNG_SECONDS", 0)
    (tmp_path / "work").mkdir()
    with subprocess.Popen(["sleep", "100"], cwd=tmp_path / "work") as one:
        try:
            assert survivors(here, str(tmp_path / "work")) == ""
        finally:
            one.kill()

"""What payloads are made of: checksums of folders and commands, and the folder of a command."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from bisector.adapters.agent.payload import workload_job
from bisector.adapters.agent.workload_sources import build_error, checksum, copy_sources, source_checksum
from bisector.adapters.system.command import CompletedCommand
from bisector.errors import InfrastructureError, PerfbisectError, RequestError
from bisector.schemas.workload.command_workload import command_workload
from bisector.schemas.workload.workload import load_workload


def test_a_checksum_sees_names_contents_and_execute_bits(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "input").write_text("1\n")
    sums = {checksum(tmp_path)}
    (data / "input").write_text("2\n")
    sums.add(checksum(tmp_path))
    (data / "input").chmod(0o755)
    sums.add(checksum(tmp_path))
    (data / "input").rename(data / "other")
    sums.add(checksum(tmp_path))
    assert len(sums) == 4


def test_a_checksum_of_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """The data of a workload, such as a database, may be larger than the memory."""
    (tmp_path / "run").write_text("1\n")
    (tmp_path / "data").write_bytes(bytes(32 << 20))
    tracemalloc.start()
    found = checksum(tmp_path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 << 20
    parts = (b"data - 33554432\n", bytes(32 << 20), b"run - 2\n", b"1\n")
    assert found == hashlib.sha256(b"".join(parts)).hexdigest(), "as it always was: it is part of identities"


def test_execute_bits_are_those_of_the_files_whatever_the_mount_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").write_text("1\n")
    (tmp_path / "run").chmod(0o755)
    before = checksum(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.X_OK)  # as 'noexec' has it
    assert checksum(tmp_path) == before


def test_what_is_no_file_in_a_workloads_folder_is_passed_by(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(load_workload("pipe-test").folder, folder)
    before = checksum(folder)
    (folder / ".#workload.yaml").symlink_to("ann@host.123:456")  # the lock of an editor
    (folder / "device").symlink_to("/dev/null")
    os.mkfifo(folder / "pipe")
    assert checksum(folder) == before
    copy_sources(load_workload(str(folder)), tmp_path / "build")
    assert checksum(tmp_path / "build") == before
    assert not any(
        os.path.lexists(tmp_path / "build" / name) for name in (".#workload.yaml", "device", "pipe")
    )


def test_a_file_of_a_name_that_is_not_utf_8_is_one_of_a_workload(tmp_path: Path) -> None:
    before = checksum(tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")).write_text("1\n")
    assert checksum(tmp_path) != before


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("[Errno 13] Permission denied: '/w/data'", RequestError),
        ("[Errno 28] No space left on device: '/tmp/build/data'", InfrastructureError),
        ("[Errno 122] Disk quota exceeded: '/tmp/build/data'", InfrastructureError),
    ],
)
def test_a_file_that_cannot_be_copied_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str, kind: type[PerfbisectError]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise shutil.Error([("/w/data", "/tmp/build/data", why)])

    monkeypatch.setattr(shutil, "copytree", fail)
    with pytest.raises(kind) as caught:
        copy_sources(load_workload("pipe-test"), tmp_path / "build")
    assert "/w/data" in caught.value.message + caught.value.details
    assert "Errno" not in caught.value.details and caught.value.cure


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fatal error: error writing to /tmp/ccy.s: No space left on device", InfrastructureError),
        ("fatal error: error writing to /tmp/ccy.s: Disk quota exceeded", InfrastructureError),
        ("mine.c:1: error: expected ';'", RequestError),
    ],
)
def test_a_full_disk_is_no_fault_of_a_workload(said: str, kind: type[PerfbisectError]) -> None:
    """Compilers write to TMPDIR, which may be another disk than that of the results."""
    error = build_error(load_workload("pipe-test"), ["musl-gcc"], CompletedCommand(("musl-gcc",), 1, said))
    assert type(error) is kind
    assert ("TMPDIR" in error.cure) is (kind is InfrastructureError)
    assert said in error.details


def test_a_command_becomes_a_workload_with_a_folder(tmp_path: Path) -> None:
    workload = command_workload("echo 'rate: 3'", "rate", higher_is_better=True)
    job = workload_job(workload, tmp_path)
    done = subprocess.run([job.payload / job.run[0]], capture_output=True, text=True, check=True)
    assert done.stdout == "rate: 3\n"
    again = load_workload(str(tmp_path / "build"))
    assert again.manifest == workload.manifest
    other = command_workload("echo 'rate: 4'", "rate", higher_is_better=True)
    assert source_checksum(workload) != source_checksum(other)
    assert source_checksum(again) != source_checksum(workload), "a folder is another workload"

"""The initramfs of old kernels: read back by the cpio tool, and the same bytes for the same job."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bisector.adapters.guest.initramfs import initramfs
from bisector.adapters.system.architectures import ARM64
from bisector.ports import Job, MetricSpec


def _job(folder: Path) -> Job:
    payload = folder / "payload"
    (payload / "data").mkdir(parents=True)
    program = payload / "bench"
    program.write_bytes(b"\x7fELF and the rest")
    program.chmod(0o755)
    (payload / "data" / "input").write_text("12345\n", encoding="ascii")
    return Job(
        name="bench",
        payload=payload,
        run=("bench", "two words", ""),
        metrics=(MetricSpec("real", "s"),),
        settle=0.5,
        pause=0.1,
        environment={"aslr": "0", "cpus": "0", "env.MODE": "x"},
    )


def _texts(archive: bytes) -> list[str]:
    """What /perfbisect.start says."""
    start = archive.index(b"perfbisect.start\0") + len(b"perfbisect.start\0")
    size = int(archive[start - len(b"perfbisect.start\0") - 110 :][54:62], 16)
    start += -start % 4
    return archive[start : start + size].decode().split("\0")[:-1]


def test_programs_stay_programs_where_this_machine_may_start_none_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/tmp was mounted noexec: no kernel could start the agent, and each was said to be broken."""
    job = _job(tmp_path)
    usual = initramfs(b"first process", job, "/work/perfbisect", unasked=True)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.X_OK)
    assert initramfs(b"first process", job, "/work/perfbisect", unasked=True) == usual


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_cpio_tool_reads_it_back(tmp_path: Path) -> None:
    archive = initramfs(b"first process", _job(tmp_path), "/work/perfbisect", unasked=True)
    listed = subprocess.run(
        ["cpio", "-itv", "--numeric-uid-gid"], input=archive, capture_output=True, check=True
    )
    lines = {line.split()[-1]: line for line in listed.stdout.decode().splitlines()}
    assert lines["dev/console"].startswith("crw-------")
    assert "5,   1" in lines["dev/console"]
    assert lines["init"].startswith("-rwxr-xr-x")
    assert lines["work/perfbisect/bench"].startswith("-rwxr-xr-x")
    assert lines["work/perfbisect/data/input"].startswith("-rw-r--r--")
    assert list(lines).index("work") < list(lines).index("work/perfbisect")
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(
        ["cpio", "-i", "--quiet", "--nonmatching", "dev/*"],
        input=archive,
        cwd=out,
        capture_output=True,
        check=True,
    )
    assert (out / "init").read_bytes() == b"first process"
    assert (out / "work/perfbisect/data/input").read_text() == "12345\n"
    assert "kernel/randomize_va_space 0" in (out / "work/perfbisect/perfbisect-settings").read_text()


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_the_agents_port_is_the_machines_terminal_under_the_name_that_the_first_process_knows(
    tmp_path: Path,
) -> None:
    archive = initramfs(b"", _job(tmp_path), "/w", unasked=True, machine=ARM64)
    listed = subprocess.run(["cpio", "-itv", "dev/ttyS1"], input=archive, capture_output=True, check=True)
    assert ARM64.line.terminal == "ttyS0"
    assert "4,  64" in listed.stdout.decode()


def test_the_agent_is_told_the_whole_job(tmp_path: Path) -> None:
    job = _job(tmp_path)
    texts = _texts(initramfs(b"", job, "/work/perfbisect", unasked=True))
    assert texts[0] == "/work/perfbisect"
    count = int(texts[1])
    assert texts[2 : 2 + count][1] == "prepare"
    serve = texts[2 + count :]
    assert int(serve[0]) == len(serve) - 1
    assert serve[2:5] == ["serve", "--unasked", "500:100"]
    assert serve[-4:] == ["--", "./bench", "two words", ""]
    assert "--unasked" not in _texts(initramfs(b"", job, "/work/perfbisect", unasked=False))


def test_the_same_job_gives_the_same_bytes(tmp_path: Path) -> None:
    job = _job(tmp_path)
    shutil.copytree(job.payload, tmp_path / "copy")
    again = replace(job, payload=tmp_path / "copy")
    assert initramfs(b"x", job, "/w", unasked=True) == initramfs(b"x", again, "/w", unasked=True)

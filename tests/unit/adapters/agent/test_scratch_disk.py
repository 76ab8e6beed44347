"""Block devices that a workload may overwrite: checked before anything runs, and a guest's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bisector.adapters.agent.scratch_disk import check_device, scratch_file
from bisector.adapters.guest.domain_xml import scratch_device
from bisector.errors import InfrastructureError, RequestError


def run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/dev/null", "it is not a block device"),
        ("/dev/perfbisect-nowhere", "No such file or directory"),
        (__file__, "it is not a block device"),
    ],
)
def test_what_is_no_free_block_device_is_refused(path: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_device(path, 0, "box", run, sys.executable)
    assert f"{path} of the testbed 'box' cannot be used: {words}" in caught.value.message
    assert caught.value.details == "nothing was written to it"


def test_the_check_gets_path_and_size_and_its_word_counts() -> None:
    asked: list[list[str]] = []

    def ok(command: list[str]) -> str:
        asked.append(command)
        return "ok\n"

    check_device("/dev/sdb", 1 << 20, "box", ok)
    assert asked[0][0] == "python3"
    assert asked[0][-2:] == ["/dev/sdb", "1048576"]
    for answer in ("", "it is mounted or in use\n", "ok\nand more"):
        with pytest.raises(RequestError):
            check_device("/dev/sdb", 0, "box", lambda _, answer=answer: answer)  # type: ignore[misc]


def test_a_guests_disk_is_sparse_and_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "boot" / "scratch.raw"
    path.parent.mkdir()
    path.write_text("of a boot that was killed")
    with scratch_file(path, 1 << 30):
        assert (path.stat().st_size, path.stat().st_blocks) == (1 << 30, 0)
    assert not path.exists()
    assert (scratch_device("debian"), scratch_device("initramfs")) == ("/dev/vdb", "/dev/vda")


def test_a_disk_that_cannot_be_made_is_no_fault_of_the_workload(tmp_path: Path) -> None:
    (tmp_path / "boot").touch()
    with (
        pytest.raises(InfrastructureError, match="cannot make the scratch disk"),
        scratch_file(tmp_path / "boot" / "x", 1),
    ):
        pass

"""Builds that are cut short: why is told, no commit is blamed, the next one goes on from their objects."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from bisector.errors import InfrastructureError, PerfbisectError
from tests.support.toy_kernel import MAKEFILE, BuildLab, tools_missing
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

# The second time it is linked at once.
SLOW = MAKEFILE.replace(
    "@echo link ", "@test -e $(O)/links || { echo link >$(O)/links; sleep 60; }; echo link "
)


def processes(word: bytes, folder: Path) -> list[int]:
    """Return the processes of builds below a folder whose command line begins with a word."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = bytes(folder) in (process / "environ").read_bytes()
            if ours and (process / "cmdline").read_bytes().startswith(word):
                found.append(int(process.name))
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.parametrize(
    ("victim", "reason"),
    [
        (b"make\0", "the build was ended by a signal"),
        (b"bash\0-s\0", "'building' failed on 'here': its command was ended by a signal"),
    ],
)
def test_a_build_that_is_cut_says_why_and_the_next_goes_on_from_its_objects(
    victim: bytes, reason: str, tmp_path: Path
) -> None:
    lab = BuildLab(tmp_path)
    sha = lab.change({"Makefile": SLOW}, "slow to link")
    out = tmp_path / "cache" / "builder" / "out" / "toy-0"
    failed: list[PerfbisectError] = []

    def build() -> None:
        try:
            lab.builder().build(lab.order(sha), lab.progress.append)
        except PerfbisectError as error:
            failed.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    until(lambda: bool((out / "links").exists() and processes(b"sleep\0", tmp_path)), 120)
    for process in processes(victim, tmp_path):
        with suppress(ProcessLookupError):  # it ended with another
            os.kill(process, signal.SIGKILL)
    thread.join()
    assert [type(error) for error in failed] == [InfrastructureError]
    assert reason in failed[0].message
    half = out / "kernel" / "work.o"  # it was being written when the build ended, long after the other one
    half.write_bytes(b"")
    os.utime(half, (half.stat().st_mtime + 60,) * 2)
    kernel = lab.builder().build(lab.order(sha), lab.progress.append)
    assert [line.split()[1] for line in kernel.log.read_text().splitlines() if "  CC " in line] == [
        "kernel/work.o"
    ]

"""Builds that are cut short: why is told, no commit is blamed, the next one goes on from their objects."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from bisector.adapters.build import build_play
from bisector.errors import BuilderUnwell, InfrastructureError, PerfbisectError
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


def test_a_build_that_hangs_ends_on_its_builder_and_the_folder_is_free_again(tmp_path: Path) -> None:
    """Its master may be gone: then nothing but the builder's own limit ends it."""
    lab = BuildLab(tmp_path)
    hangs = MAKEFILE.replace("@echo link ", "@echo hanging; trap : TERM; sleep 3600; sleep 3600; echo link ")
    sha = lab.change({"Makefile": hangs}, "hangs when it is linked")
    builder = lab.builder()
    builder.timeout = 20.0
    with pytest.raises(InfrastructureError, match=r"on 'here' took too long, and was ended there") as error:
        builder.build(lab.order(sha), lab.progress.append)
    last, where = error.value.details.splitlines()
    assert last == "the build was ended: it took longer than 20 s"
    assert "hanging" in Path(where.removeprefix("log: ")).read_text()
    assert processes(b"sleep\0", tmp_path) == []
    assert lab.builder().build(lab.order(lab.base), lab.progress.append).release == "6.1.0-toy"


def test_a_build_that_never_ends_is_not_waited_for_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The builder is tried again now and then: each time must not take as long as the first."""
    monkeypatch.setattr(build_play, "_WAIT_SECONDS", 1)
    monkeypatch.setattr(build_play, "awake_seconds", itertools.count(0, 10_000).__next__)
    lab = BuildLab(tmp_path)
    builder = lab.builder()
    folder = tmp_path / "cache" / "builder"
    folder.mkdir(parents=True)
    (folder / "lock.holder").write_text("process 7 (bisection 'x')")
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(2):
            with pytest.raises(BuilderUnwell, match=r"by one build, of process 7 \(bisection 'x'\)"):
                builder.build(lab.order(lab.base), lab.progress.append)
    assert len([text for text in lab.progress if text.startswith("waiting for 'here'")]) == 1
    assert builder.build(lab.order(lab.base), lab.progress.append).release == "6.1.0-toy"

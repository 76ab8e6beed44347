"""Every workload finds the commit that makes slow what it looks at, and blames nobody behind it.

One history slows down one part of the kernel after the other; each workload is searched over the whole of it,
and then over what follows the last of its culprits, where the others must not mislead it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import small_history
from tests.support.installed_command import perfbisect
from tests.support.small_history import Change

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(5400)]


def _spin(times: int) -> str:
    return f"	for (unsigned int spin = 0; spin < {times}; spin++)\n		barrier();\n\n"


_PIPE = "	/* Null write succeeds. */\n	if (unlikely(total_len == 0))\n		return 0;\n\n"
_AIO = "	/* enforce forwards compatibility on users */\n	if (unlikely(iocb.aio_reserved2)) {\n"
_UNIX = "	wait_for_unix_gc(scm.fp);\n\n	err = -EOPNOTSUPP;\n	if (msg->msg_flags & MSG_OOB) {\n#if"
_SHMEM = "	offset = *ppos & ~PAGE_MASK;\n\n	for (;;) {\n		struct folio *folio"
_TICK = "	for_each_sched_entity(se) {\n		cfs_rq = cfs_rq_of(se);\n		entity_tick("
_FORK = "	/*\n	 * Don't allow sharing the root directory with processes in a different\n"
_TIME = "		for_each_thread(tsk, t) {\n			task_cputime(t, &utime, &stime);\n"
_LAST = "Built %u zonelists"


def _before(text: str, times: int) -> str:
    """Return the text with a loop before it."""
    return _spin(times) + text


CHANGES = (
    Change("net: Spell out that a family is there", "net/socket.c", "NET: Registered %s", "NET: now has %s"),
    Change("pipe: Dawdle in every write", "fs/pipe.c", _PIPE, _PIPE + _spin(400)),
    Change("aio: Dawdle with every block", "fs/aio.c", _AIO, _before(_AIO, 2000)),
    Change("unix: Dawdle in every message", "net/unix/af_unix.c", _UNIX, _before(_UNIX, 2000)),
    Change("shmem: Dawdle in every read", "mm/shmem.c", _SHMEM, _before(_SHMEM, 1000)),
    Change("fork: Dawdle with every process", "kernel/fork.c", _FORK, _before(_FORK, 200_000)),
    Change(
        "sched: Dawdle in every tick",
        "kernel/sched/fair.c",
        _TICK,
        _before(_TICK, 25_000),
    ),
    Change("posix-timers: Dawdle with every reading", "kernel/sched/cputime.c", _TIME, _TIME + _spin(100)),
    Change("mm: Say how many zone lists there are", "mm/page_alloc.c", _LAST, _LAST.replace("Built", "Made")),
)


@dataclass(frozen=True)
class Case:
    """A workload, the numbers of the commits that it must find, and how a search behind them may end."""

    workload: str
    culprits: tuple[int, ...]
    behind: tuple[str, ...] = ("not reproduced",)


CASES = (
    Case("pipe-test", (2,)),
    Case("perf-bench", (2,)),
    # Five short programs under a shell: it forks for each of them.
    Case("cfs-bandwidth/small", (2, 6)),
    Case("db-aio", (3,)),
    # Slower processes and ticks cost it 1.7% each: together they may reach the threshold, as a spread.
    Case("hackbench", (4,), ("not reproduced", "spread")),
    Case("fio", (5,)),
    Case("stress-ng/fork", (6,)),
    Case("sched-tick/small", (7,)),
    Case("poundtime/small", (8,)),
)


Start = Callable[[str, int, int], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def injected(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> tuple[Path, dict[str, str]]:
    """The history and its tags."""
    repository = tmp_path_factory.mktemp("injected") / "linux"
    return repository, small_history.make(repository, demo, CHANGES, "injected")


@pytest.fixture
def start(injected: tuple[Path, dict[str, str]], cache: Path, tmp_path: Path) -> Start:
    """The command on a range of the history."""
    environment = {**os.environ, "PERFBISECT_STATE_DIR": str(tmp_path), "PERFBISECT_CACHE_DIR": str(cache)}

    def run(workload: str, good: int, bad: int) -> subprocess.CompletedProcess[str]:
        ends = ("--good", f"injected-{good:02d}", "--bad", f"injected-{bad:02d}")
        repo = str(injected[0])
        return perfbisect(
            *("start", "--repo", repo, *ends, "--workload", workload, "--json"), environment=environment
        )

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.workload)
def test_the_injected_commits_are_found(
    case: Case, start: Start, injected: tuple[Path, dict[str, str]]
) -> None:
    done = start(case.workload, 0, len(CHANGES))
    assert done.returncode == 0, done.stderr[-6000:]
    report = json.loads(done.stdout)
    blamed = [commit["sha"] for finding in report["findings"] for commit in finding["commits"]]
    assert sorted(blamed) == sorted(injected[1][f"injected-{number:02d}"] for number in case.culprits)
    print(f"{case.workload}: {[finding['effect'] for finding in report['findings']]}, {report['costs']}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.workload)
def test_nobody_behind_them_is_blamed(case: Case, start: Start) -> None:
    done = start(case.workload, max(case.culprits), len(CHANGES))
    report = json.loads(done.stdout)
    assert report["ending"] in case.behind, done.stderr[-6000:]
    assert done.returncode == {"not reproduced": 2, "spread": 5}[report["ending"]]
    assert report["findings"] == []

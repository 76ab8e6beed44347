"""The whole program on real kernels: two ends and a workload in, the culprit out.

Builds, boots and measures for real. A cold machine compiles one kernel from nothing and six by one file each.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.installed_command import perfbisect
from tests.support.small_history import CHANGES, CULPRIT, LAST

SECONDS = 900.0
"""What a culprit takes at most on two cores that have nothing else to do; it is told, not asserted."""

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]


@pytest.fixture(scope="module")
def found(
    tags: tuple[Path, dict[str, str]], cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], float, dict[str, str]]:
    """One bisection from end to end: how it ended, seconds, and the environment to ask further with."""
    environment = {
        **os.environ,
        "PERFBISECT_STATE_DIR": str(tmp_path_factory.mktemp("state")),
        "PERFBISECT_CACHE_DIR": str(cache),
    }
    started = time.monotonic()
    done = perfbisect(
        *("start", "--repo", str(tags[0]), "--good", "e2e-00", "--bad", f"e2e-{LAST:02d}"),
        # Along first parents commits are not weighed by the functions that differ between the ends. These
        # would lead straight to the culprit, past none of the commits that do not build or boot.
        *("--workload", "pipe-test", "--first-parent", "--json"),
        environment=environment,
        timeout=2 * SECONDS,
    )
    return done, time.monotonic() - started, environment


@pytest.mark.timeout(2 * SECONDS + 300)
def test_the_culprit_is_found_past_commits_that_do_not_build_or_boot(
    tags: tuple[Path, dict[str, str]], found: tuple[subprocess.CompletedProcess[str], float, dict[str, str]]
) -> None:
    done, seconds, _ = found
    print(f"from two ends to the culprit in {seconds:.0f} s")
    assert done.returncode == 0, done.stderr[-6000:]
    report = json.loads(done.stdout)
    ids = tags[1]
    (finding,) = report["findings"]
    assert [commit["sha"] for commit in finding["commits"]] == [ids[f"e2e-{CULPRIT:02d}"]]
    assert [commit["subject"] for commit in finding["commits"]] == [CHANGES[CULPRIT - 1].subject]
    assert [commit["sha"] for commit in finding["parents"]] == [ids[f"e2e-{CULPRIT - 1:02d}"]]
    assert finding["certified"]
    assert 0.10 < finding["effect"]["low"] <= finding["effect"]["estimate"] <= finding["effect"]["high"] < 0.5
    assert report["confidence"] >= 0.95
    assert report["clock"] in ("instructions", "wall")


@pytest.mark.timeout(2 * SECONDS + 300)
def test_the_report_names_the_function_that_dawdles(
    found: tuple[subprocess.CompletedProcess[str], float, dict[str, str]],
) -> None:
    report = json.loads(found[0].stdout)
    if report["clock"] == "wall":
        pytest.skip("only an emulated guest counts, and this machine has KVM")
    functions = report["findings"][0]["functions"]
    slowest = functions["functions"][0]
    assert (slowest["name"], slowest["touched"]) == ("pipe_write", True)
    good, bad = functions["totals"]
    # Two writes a round trip: what was put into them is nearly all that differs, and adds up.
    assert slowest["change"] / (bad - good) == pytest.approx(1, abs=0.05)
    assert functions["of_the_metric"]
    listed = sum(one["change"] for one in functions["functions"])
    assert listed + functions["rest"] == pytest.approx(bad - good)
    assert not report["monitors"]  # nobody asked for one
    told = perfbisect("report", environment=found[2], timeout=2 * SECONDS).stdout
    assert re.search(r"\bpipe_write\b.*\d", told)


@pytest.mark.timeout(2 * SECONDS + 300)
def test_what_could_not_be_measured_is_recorded_with_its_reason(
    tags: tuple[Path, dict[str, str]], found: tuple[subprocess.CompletedProcess[str], float, dict[str, str]]
) -> None:
    report = json.loads(found[0].stdout)
    kinds = {tags[1][f"e2e-{number:02d}"]: change.kind for number, change in enumerate(CHANGES, start=1)}
    unbuilt = {build["commit"]: build["failure"] for build in report["builds"] if not build["ok"]}
    unbooted = {trial["commit"]: trial["failure"] for trial in report["trials"] if not trial["ok"]}
    # Half-way between the ends lies the commit that does not build, beside it two that do not boot.
    assert unbuilt or unbooted
    assert all(kinds[sha] == "no build" and "smp.c" in failure for sha, failure in unbuilt.items())
    assert all(kinds[sha] == "no boot" and "does not boot" in failure for sha, failure in unbooted.items())
    assert {*unbuilt, *unbooted} <= set(report["untestable"])


@pytest.mark.timeout(2 * SECONDS + 300)
def test_asked_again_it_tells_the_same(
    tags: tuple[Path, dict[str, str]], found: tuple[subprocess.CompletedProcess[str], float, dict[str, str]]
) -> None:
    sha = tags[1][f"e2e-{CULPRIT:02d}"]
    report = perfbisect("report", environment=found[2], timeout=2 * SECONDS)
    assert report.returncode == 0, report.stderr
    assert sha in report.stdout
    assert CHANGES[CULPRIT - 1].subject in report.stdout
    log = perfbisect("log", environment=found[2], timeout=2 * SECONDS)
    assert f"# first bad commit: [{sha}]" in log.stdout
    assert f"git bisect bad {sha}" in log.stdout


@pytest.mark.timeout(2 * SECONDS + 300)
def test_no_guest_is_left(found: tuple[subprocess.CompletedProcess[str], float, dict[str, str]]) -> None:
    marked = f"PERFBISECT_STATE_DIR={found[2]['PERFBISECT_STATE_DIR']}".encode()
    left = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and marked in (process / "environ").read_bytes():
                left.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    assert not left

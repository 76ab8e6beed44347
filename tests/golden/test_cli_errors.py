"""Wrong requests, word for word: what was wrong, why, and what to do; exit code 1; nothing was changed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.interfaces.cli import run
from bisector.testing.fakes import FakeSource
from tests.bad_input.request_place import make_place
from tests.support.expected import check
from tests.support.fake_bisection import store_bisections


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_place(tmp_path_factory.mktemp("template"))


@pytest.fixture
def place(own_folders: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the template, with state of its own."""
    shutil.copytree(template, own_folders, dirs_exist_ok=True)
    monkeypatch.setenv("PERFBISECT_LAB", str(own_folders / "lab.yml"))
    return own_folders


START = ["start", "--repo", "linux", "--workload", "pipe-test"]
ENDS = ["--good", "v1", "--bad", "v5"]
RANGE = [*START, *ENDS]
OTHER = ["start", "--repo", "linux", *ENDS]
SIMULATE = ["simulate", "--commits", "4", "--trials", "3", "--jobs", "1"]

CASES = {
    "no-good": ["start", "--bad", "v5", "--workload", "pipe-test"],
    "no-workload": ["start", *ENDS],
    "unknown-commit": [*START, "--good", "v1", "--bad", "v55"],
    "swapped": [*START, "--good", "v5", "--bad", "v1"],
    "swapped-fix": [*START, "--find", "fix", "--good", "v1", "--bad", "v5"],
    "old-and-good": [*START, "--old", "v1", "--good", "v1", "--new", "v5"],
    "unknown-find": [*RANGE, "--find", "bug"],
    "run-and-workload": [*RANGE, "--run", "dd"],
    "run-high-time": [*OTHER, "--run", "dd", "--higher-is-better"],
    "run-in-initramfs": [*OTHER, "--run", "dd", "--recipe", "x86_64-small"],
    "try-nothing": ["try"],
    "try-no-patch": ["try", "--apply", "none.patch"],
    "try-no-bisection": ["try", "--rev", "v3"],
    "equal-ends": [*START, "--good", "v5", "--bad", "main"],
    "unrelated": [*START, "--good", "unrelated", "--bad", "v5"],
    "no-repository": ["start", *ENDS, "--workload", "pipe-test", "--repo", "empty"],
    "no-folder": ["start", *ENDS, "--workload", "pipe-test", "--repo", "nowhere"],
    "no-kernel": [*START, "--good", "v1", "--bad", "not-linux"],
    "unknown-skip": [*RANGE, "--skip", "nope"],
    "skip-of-everything": [*RANGE, "--skip", "v1..v5"],
    "empty-range": [*RANGE, "--", "no/such/path"],
    "unknown-workload": [*OTHER, "--workload", "pipe-tset"],
    "misspelt-key": [*OTHER, "--workload", "./misspelt"],
    "threshold-in-manifest-without-unit": [*OTHER, "--workload", "./no-unit"],
    "two-deciding-metrics": ["workload", "show", "./two-decide"],
    "not-yaml": ["workload", "show", "./not-yaml"],
    "threshold-without-unit": [*RANGE, "--threshold", "5"],
    "unknown-metric": [*RANGE, "--metric", "reel"],
    "metric-of-another-clock": [*OTHER, "--workload", "./exact", "--metric", "count"],
    "workload-of-another-clock": [*OTHER, "--workload", "./exact"],
    "alpha-outside": [*RANGE, "--alpha", "0.5"],
    "unknown-recipe": [*RANGE, "--recipe", "x86_64-gast"],
    "unknown-fragment": [*RANGE, "--recipe", "x86_64-guest+blok"],
    "userspace-of-the-recipe": [*OTHER, "--workload", "./debian-only", "--recipe", "x86_64-old"],
    "unknown-testbed": [*RANGE, "--testbed", "you"],
    "testbeds-of-two-clocks": [*OTHER, "--testbed", "me", "--testbed", "guest", "--workload", "./mine"],
    "testbed-without-a-disk": [*OTHER, "--workload", "./needs-disk", "--testbed", "me"],
    "guest-without-cpus": [*OTHER, "--workload", "./needs-cpus", "--testbed", "guest"],
    "unknown-parameter": [*OTHER, "--workload", "poundtime", "--param", "call=3"],
    "parameter-without-value": [*RANGE, "--param", "calls"],
    "parameter-twice-the-same": [
        *OTHER,
        "--workload",
        "poundtime",
        "--param",
        "calls=3",
        "--param",
        "calls=3",
    ],
    "unknown-monitor": [*RANGE, "--monitor", "perf-stats"],
    "monitor-without-options": [*RANGE, "--monitor", "dmesg=all"],
    "monitor-of-a-wrong-value": [*RANGE, "--monitor", "perf-record=often"],
    "monitor-of-another-folder": [*RANGE, "--monitor", "proc=/etc/passwd"],
    "no-patch": [*RANGE, "--apply", "fix.patch"],
    "patch-that-does-not-apply": [*RANGE, "--apply", "other.patch"],
    "unknown-fix": [*RANGE, "--with-fix", "nope"],
    "fix-of-unknown-fault": [*RANGE, "--with-fix", "v4"],
    "no-lab": [*RANGE, "--lab", "nowhere.yml"],
    "negative-budget": [*RANGE, "--max-runs", "0"],
    "too-many-built-ahead": [*RANGE, "--build-ahead", "65"],
    "unknown-command": ["strat"],
    "unknown-option": ["list", "--jsn"],
    "missing-argument": ["mark", "x"],
    "missing-choice": ["mark", "x", "v1"],
    "no-number": [*RANGE, "--max-hours", "many"],
    "no-config": ["--config", "nowhere.toml", "list"],
    "unknown-bisection": ["report", "nope"],
    "no-bisection": ["status"],
    "nothing-to-resume": ["resume"],
    "bad-verdict": ["mark", "x", "v1", "ugly"],
    "nothing-to-discard": ["discard", "x"],
    "calibrate-one-boot": ["calibrate", "--workload", "pipe-test", "--boots", "1"],
    "calibrate-nothing": ["calibrate"],
    "no-such-range": ["kernel", "check", "v1...v5", "--repo", "linux"],
    "no-space-to-keep": ["kernel", "gc", "--keep", "-1"],
    "unknown-recipe-explained": ["kernel", "explain", "--recipe", "x86_64-odl"],
    "workload-name": ["workload", "new", "My Workload"],
    "workload-there-already": ["workload", "new", "mine"],
    "compare-one": ["compare", "old.txt"],
    "compare-text": ["compare", "lab.yml", "lab.yml"],
    "compare-no-file": ["compare", "a.txt", "b.txt"],
    "compare-threshold": ["compare", "old.txt", "new.txt", "--threshold", "5"],
    "compare-threshold-number": ["compare", "old.txt", "new.txt", "--threshold", "much"],
    "compare-threshold-negative": ["compare", "old.txt", "new.txt", "--threshold", "-1%"],
    "compare-threshold-huge": ["compare", "old.txt", "new.txt", "--threshold", "1e300%"],
    "compare-alpha": ["compare", "old.txt", "new.txt", "--alpha", "1"],
    "compare-format": ["compare", "old.txt", "new.txt", "--format", "mmtest"],
    "compare-better": ["compare", "old.txt", "new.txt", "--better", "faster"],
    "compare-better-of-nothing": ["compare", "old.txt", "new.txt", "--better", "reel=lower"],
    "compare-unknown-metric": ["compare", "old.txt", "new.txt", "--metric", "reel"],
    "compare-stdin-twice": ["compare", "a=-", "b=-"],
    "compare-no-bisection": ["compare", "old.txt", "pipe-test-3f2a:v1"],
    "compare-nothing-in-common": ["compare", "old.txt", "other.txt"],
    "profile-stdin-twice": ["profile", "-", "-"],
    "profile-no-file": ["profile", "a.folded", "old.folded"],
    "profile-text": ["profile", "old.txt", "lab.yml"],
    "profile-shares-and-counts": ["profile", "old.folded", "calls.txt"],
    "profile-counted-without-paths": ["profile", "a=counted", "b=counted", "--flame", "x.svg"],
    "profile-annotate-without-blocks": ["profile", "a=counted", "b=counted", "--annotate", "schedule"],
    "profile-annotate-html": ["profile", "a=counted", "b=counted", "--annotate", "x", "--html", "x.html"],
    "profile-without-chains": ["profile", "calls.txt", "calls.txt", "--tree", "memmove"],
    "profile-least": ["profile", "old.folded", "old.folded", "--tree", "alloc_", "--least", "0.1"],
    "profile-least-outside": ["profile", "old.folded", "old.folded", "--tree", "a", "--least", "101%"],
    "profile-least-without-tree": ["profile", "old.folded", "old.folded", "--least", "1%"],
    "profile-flame": ["profile", "old.folded", "old.folded", "--flame", "absent/diff.svg"],
    "profile-unknown-commit": ["profile", "old.folded", "old.folded", "--repo", "linux", "--commit", "v9"],
    "simulate-no-threshold": [*SIMULATE, "--effect", "0"],
    "simulate-effect-and-culprits": [*SIMULATE, "--effect", "2", "--culprits", "1:2"],
    "simulate-culprit-outside": [*SIMULATE, "--culprits", "9:2"],
    "simulate-culprits": [*SIMULATE, "--culprits", "nonsense"],
    "simulate-noise": [*SIMULATE, "--noise", "pink"],
    "simulate-noise-number": [*SIMULATE, "--run-noise", "nan"],
    "simulate-drift": [*SIMULATE, "--drift", "linaer"],
    "simulate-drift-size": [*SIMULATE, "--drift", "walk:far"],
    "simulate-cost": [*SIMULATE, "--cost", "build=free"],
    "simulate-untestable": [*SIMULATE, "--untestable", "2"],
    "simulate-alpha": [*SIMULATE, "--alpha", "0.5"],
    "simulate-trials": ["simulate", "--trials", "0"],
    "simulate-threshold": [*SIMULATE, "--threshold", "-1"],
    "simulate-samples": [*SIMULATE, "--samples", "nowhere.json"],
    "simulate-commits": ["simulate", "--commits", "0"],
    "simulate-repo-and-history": ["simulate", "--repo", ".", *ENDS, "--history", "branched"],
    "simulate-repo-alone": ["simulate", "--repo", "."],
    "simulate-testbeds": [*SIMULATE, "--testbeds", "0"],
    "simulate-broken": [*SIMULATE, "--broken-stretch", "-1"],
}


def refusal(arguments: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a wrong command line and return what it says, without what differs between machines."""
    code = run(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("error: ")
    assert code == 1, err
    root = Path(__file__).resolve().parents[2]
    text = err.replace(str(place), "PLACE").replace(str(root), "PERFBISECT")
    text = re.sub(r"\b[0-9a-f]{40}\b", "SHA40", text)
    return re.sub(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{12}\b", "SHA12", text)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_request(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(f"errors/{name}.txt", refusal(CASES[name], place, capsys))
    assert not (place / "state" / "bisections").exists(), "a wrong request must leave nothing behind"


STORED = {
    "ambiguous-bisection": ["report", "fake-"],
    "misspelt-bisection": ["report", "fake-ner"],
    "mark-unknown-commit": ["mark", "fake-new", "nope", "bad"],
    "mark-commit-outside": ["mark", "fake-new", "outside", "bad"],
    "mark-after-the-end": ["mark", "fake-old", "good", "bad"],
    "cancel-after-the-end": ["cancel", "fake-old"],
    "report-output": ["report", "fake-new", "--output", "absent/report.txt"],
    "discard-unknown-boot": ["discard", "fake-new", "--boot", "b9"],
    "resume-cancelled": ["resume", "fake-old"],
    "show-commit-outside": ["show", "fake-new", "--commit", "outside"],
    "compare-not-measured": ["compare", "fake-new:bad", "fake-new:good"],
    "profile-not-recorded": ["profile", "fake-new:good", "fake-new:bad"],
}
"""Requests about two bisections: 'fake-new' has one boot, 'fake-old' is cancelled."""


class HistoryAndOneMore(FakeSource):
    """The commits of a bisection by their numbers, and one that is not part of it."""

    def resolve(self, rev: str) -> str:
        return "f" * 40 if rev == "outside" else super().resolve(rev)


@pytest.mark.parametrize("name", STORED)
def test_a_wrong_request_about_a_bisection(
    name: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_bisections(place, monkeypatch)
    graph = store.load("fake-new").graph
    monkeypatch.setattr(Wiring, "source", lambda wiring, repo=None: HistoryAndOneMore(graph))
    before = [(s.id, s.status, list(store.records(s.id))) for s in store.list()]
    check(f"errors/{name}.txt", refusal(STORED[name], place, capsys))
    assert [(s.id, s.status, list(store.records(s.id))) for s in store.list()] == before


def test_settings_misspelt_and_of_the_wrong_type(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "perfbisect.toml").write_text('recip = "x"\n')
    assert run(["list"]) == 1
    assert "unknown key 'recip'; did you mean 'recipe'?" in capsys.readouterr().err
    (place / "perfbisect.toml").write_text("alpha = 2\n")
    assert run(["list"]) == 1
    assert "'alpha'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        Interrupted("stopped while waiting for the testbed 'guest'"),
        InfrastructureError("the disk is full"),
        RequestError("there is no bisection"),
        FileNotFoundError(2, "No such file or directory", "/away"),
        ZeroDivisionError("of perfbisect itself"),
    ],
)
def test_debug_shows_the_traceback_and_changes_neither_message_nor_exit_code(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A traceback alone ended with 1 whatever it was: scripts took Ctrl-C for a wrong request."""

    def failing() -> None:
        raise error

    monkeypatch.setattr("bisector.interfaces.cli.ask.operations", failing)
    code, said = run(["status"]), capsys.readouterr().err
    assert run(["--debug", "status"]) == code
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback") and "in failing" in shown
    assert shown.endswith(said)


def test_colour_only_on_a_terminal_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from bisector.interfaces.cli.output import coloured

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert coloured(Terminal())
    assert not coloured(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal())

"""Wrong requests, word for word: what was wrong, why, and what to do; exit code 1; nothing was changed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bisector.interfaces.cli import run
from tests.support.expected import check

LAB = """
all:
  children:
    testbeds:
      hosts:
        me:
          perfbisect_kind: local
          ansible_connection: local
    builders:
      hosts:
        here:
          ansible_connection: local
"""

MANIFEST = """\
name: mine
description: a workload of my own
run: [./mine]
files: [mine]
metrics:
  - name: real
    unit: s
    better: lower
    threshold: 5%
    decides: true
"""


@pytest.fixture
def place(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small kernel-like repository, a lab, workloads, and state of its own."""
    tmp_path = own_folders
    monkeypatch.setenv("PERFBISECT_LAB", str(tmp_path / "lab.yml"))
    (tmp_path / "lab.yml").write_text(LAB)
    repo = tmp_path / "linux"
    repo.mkdir()

    def git(*arguments: str) -> None:
        dated = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
        named = {
            f"GIT_{who}_{what}": "t@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        subprocess.run(
            ["git", *arguments],
            cwd=repo,
            check=True,
            capture_output=True,
            env={**dated, **named, "PATH": "/usr/bin:/bin"},
        )

    git("init", "-q", "-b", "main")
    for name in ("Makefile", "Kconfig", "MAINTAINERS"):
        (repo / name).write_text("VERSION = 6\n")
    for folder in ("kernel", "arch", "init", "include"):
        (repo / folder).mkdir()
        (repo / folder / "Makefile").write_text("obj-y :=\n")
    git("add", ".")
    git("commit", "-q", "-m", "base")
    git("tag", "v1")
    for number in range(2, 6):
        (repo / "kernel" / "sched.c").write_text(f"int x = {number};\n")
        git("add", ".")
        git("commit", "-q", "-m", f"change {number}")
        git("tag", f"v{number}")
    git("checkout", "-q", "--orphan", "other")
    git("commit", "-q", "-m", "unrelated")
    git("tag", "unrelated")
    git("checkout", "-q", "main")
    for name, text in (
        ("mine", MANIFEST),
        ("misspelt", MANIFEST.replace("better:", "beter:")),
        ("no-unit", MANIFEST.replace("5%", "5")),
        ("two-decide", MANIFEST + "  - {name: user, unit: s, better: lower, threshold: 5%, decides: true}\n"),
        ("not-yaml", "name: [\n"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "workload.yaml").write_text(text)
        (tmp_path / name / "mine").write_text("#!/bin/sh\n")
    (tmp_path / "empty").mkdir()
    return tmp_path


START = ["start", "--repo", "linux", "--workload", "pipe-test"]
CASES = {
    "no-good": ["start", "--bad", "v5", "--workload", "pipe-test"],
    "no-workload": ["start", "--good", "v1", "--bad", "v5"],
    "unknown-commit": [*START, "--good", "v1", "--bad", "v55"],
    "swapped": [*START, "--good", "v5", "--bad", "v1"],
    "equal-ends": [*START, "--good", "v5", "--bad", "main"],
    "unrelated": [*START, "--good", "unrelated", "--bad", "v5"],
    "no-repository": [*START, "--repo", "empty", "--good", "v1", "--bad", "v5"],
    "no-folder": [*START, "--repo", "nowhere", "--good", "v1", "--bad", "v5"],
    "unknown-skip": [*START, "--good", "v1", "--bad", "v5", "--skip", "nope"],
    "empty-range": [*START, "--good", "v1", "--bad", "v5", "--", "no/such/path"],
    "unknown-workload": [*START, "--good", "v1", "--bad", "v5", "--workload", "pipe-tset"],
    "misspelt-key": [*START, "--good", "v1", "--bad", "v5", "--workload", "./misspelt"],
    "threshold-in-manifest-without-unit": [*START, "--good", "v1", "--bad", "v5", "--workload", "./no-unit"],
    "two-deciding-metrics": ["workload", "show", "./two-decide"],
    "not-yaml": ["workload", "show", "./not-yaml"],
    "threshold-without-unit": [*START, "--good", "v1", "--bad", "v5", "--threshold", "5"],
    "unknown-metric": [*START, "--good", "v1", "--bad", "v5", "--metric", "reel"],
    "alpha-outside": [*START, "--good", "v1", "--bad", "v5", "--alpha", "0.5"],
    "unknown-recipe": [*START, "--good", "v1", "--bad", "v5", "--recipe", "x86_64-gast"],
    "unknown-testbed": [*START, "--good", "v1", "--bad", "v5", "--testbed", "you"],
    "no-patch": [*START, "--good", "v1", "--bad", "v5", "--apply", "fix.patch"],
    "no-lab": [*START, "--good", "v1", "--bad", "v5", "--lab", "nowhere.yml"],
    "negative-budget": [*START, "--good", "v1", "--bad", "v5", "--max-runs", "0"],
    "unknown-command": ["strat"],
    "unknown-option": ["list", "--jsn"],
    "missing-argument": ["mark", "x"],
    "no-number": [*START, "--good", "v1", "--bad", "v5", "--max-hours", "many"],
    "no-config": ["--config", "nowhere.toml", "list"],
    "unknown-bisection": ["report", "nope"],
    "no-bisection": ["status"],
    "nothing-to-resume": ["resume"],
    "bad-verdict": ["mark", "x", "v1", "ugly"],
    "nothing-to-discard": ["discard", "x"],
    "compare-one": ["compare", "lab.yml"],
    "compare-text": ["compare", "lab.yml", "lab.yml"],
    "compare-no-file": ["compare", "a.txt", "b.txt"],
    "compare-threshold": ["compare", "a.txt", "b.txt", "--threshold", "5"],
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_request(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(CASES[name])
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("error: ")
    assert code == 1, err
    root = Path(__file__).resolve().parents[2]
    text = err.replace(str(place), "PLACE").replace(str(root), "PERFBISECT")
    text = re.sub(r"\b[0-9a-f]{40}\b", "SHA40", text)
    text = re.sub(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{12}\b", "SHA12", text)
    check(f"errors/{name}.txt", text)
    bisections = place / "state" / "bisections"
    assert not bisections.exists(), "a wrong request must leave nothing behind"


def test_settings_misspelt_and_of_the_wrong_type(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "perfbisect.toml").write_text('recip = "x"\n')
    assert run(["list"]) == 1
    assert "unknown key 'recip'; did you mean 'recipe'?" in capsys.readouterr().err
    (place / "perfbisect.toml").write_text("alpha = 2\n")
    assert run(["list"]) == 1
    assert "'alpha'" in capsys.readouterr().err


def test_debug_shows_the_traceback(place: Path) -> None:
    with pytest.raises(Exception, match="no bisection"):
        run(["--debug", "status"])


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

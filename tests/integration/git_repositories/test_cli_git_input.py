"""What a user may get wrong about the repository, as the command line answers it: code 1, nothing begun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.small_git import SmallGit

COMMAND = Path(sys.executable).with_name("perfbisect")


@pytest.fixture
def small(tmp_path: Path) -> SmallGit:
    return SmallGit(tmp_path / "linux").make("a\nb: a\nc: b\nd: c\nr\n")


def start(small: SmallGit, good: str, bad: str, *more: str, command: str = "start") -> str:
    """Run it, expect exit code 1 and no trace in the state folder; return what it said."""
    state = small.path.parent / "state"
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(small.path.parent),
        "PERFBISECT_STATE_DIR": str(state),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    repository = [] if "--repo" in more else ["--repo", str(small.path)]
    arguments = [command, "--good", good, "--bad", bad, "--workload", "pipe-test", *repository, *more]
    done = subprocess.run(
        [str(COMMAND), *arguments],
        cwd=small.path.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(state.rglob("*.sqlite"))
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("command", ["start", "plan"])
def test_an_unknown_commit(small: SmallGit, command: str) -> None:
    small.git("tag", "v6.1", "b")
    said = start(small, "v6.l", "d", command=command)
    assert "'v6.l' names no commit" in said
    assert "did you mean 'v6.1'?" in said


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("d", "a", "the ends look swapped"),
        ("b", "b", "the same commit"),
        ("a", "r", "no common ancestor"),
        ("", "d", "--good is empty"),
    ],
)
def test_ends_that_cannot_be(small: SmallGit, good: str, bad: str, words: str) -> None:
    assert words in start(small, good, bad)


def test_no_repository(small: SmallGit, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = start(small, "a", "d", "--repo", str(tmp_path / "empty"))
    assert "is not in a git repository" in said
    assert "--repo" in said.split("git repository", 1)[1]
    assert "there is no folder" in start(small, "a", "d", "--repo", str(tmp_path / "nowhere"))


def test_a_shallow_clone(small: SmallGit, tmp_path: Path) -> None:
    small.git("checkout", "--quiet", "-B", "main", "d")
    clone = tmp_path / "clone"
    command = ["git", "clone", "--quiet", "--depth=2", "--branch=main", f"file://{small.path}", str(clone)]
    subprocess.run(command, check=True)
    assert "shallow" in start(small, "a", "d", "--repo", str(clone))


def test_paths_and_skips_that_hit_nothing_or_an_end(small: SmallGit) -> None:
    assert "touches drivers/none" in start(small, "a", "d", "--", "drivers/none")
    assert "--skip covers the bad end" in start(small, "a", "d", "--skip", "c..d")
    assert "'zzz' names no commit" in start(small, "a", "d", "--skip", "zzz")


def test_an_end_that_is_no_linux(tmp_path: Path) -> None:
    small = SmallGit(tmp_path / "other").make("a\no | README\np: o\nm: p a\n")
    said = start(small, "p", "m")
    assert "the good end" in said
    assert "holds no Linux kernel" in said
    assert "--repo" in said


def test_a_patch_that_does_not_apply_to_an_end(small: SmallGit, tmp_path: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-never there\n+mended\n", encoding="utf-8")
    said = start(small, "a", "d", "--apply", str(patch))
    assert "the patch fix.patch does not apply" in said
    assert "the good end" in said


def test_a_repository_of_another_user(small: SmallGit) -> None:
    try:
        subprocess.run(["chown", "-R", "12345", str(small.path)], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip("only root can give files away")
    said = start(small, "a", "d")
    assert "belongs to another user" in said
    assert "dubious ownership" in said, "git's own reason"
    assert "--trust-repo" in said
    assert "'nowhere' names no commit" in start(small, "nowhere", "d", "--trust-repo")
    ends = ["--repo", str(small.path), "--good", "a", "--bad", "d"]
    command = [str(COMMAND), "simulate", *ends, "--trials", "1"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, "dubious ownership" in refused.stderr) == (1, True)
    trusted = subprocess.run([*command, "--trust-repo"], capture_output=True, text=True, check=False)
    assert trusted.returncode == 0, trusted.stderr


@pytest.mark.parametrize(
    ("good", "more", "words"),
    [
        ("^a", (), "'^a' is not the name of a commit"),
        ("a", ("--", "../elsewhere"), "a path is not one of the repository"),
        ("a", ("--", "/etc/passwd"), "is outside repository"),
        ("a", ("--skip", "^b"), "'^b' is not the name of a commit"),
    ],
)
def test_what_git_itself_refuses(small: SmallGit, good: str, more: tuple[str, ...], words: str) -> None:
    assert words in start(small, good, "d", *more)


def test_no_git_on_this_machine(small: SmallGit, tmp_path: Path) -> None:
    environment = {
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
        "PERFBISECT_STATE_DIR": str(tmp_path / "state"),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    command = [str(COMMAND), "plan", "--good", "a", "--bad", "d", "--workload", "pipe-test"]
    done = subprocess.run(
        command, cwd=small.path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "'git' is not installed" in done.stderr) == (1, True), done.stderr

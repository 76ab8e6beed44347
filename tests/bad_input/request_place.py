"""What requests need to be tried: a small repository that looks like Linux, a lab, workloads, results."""

from __future__ import annotations

import subprocess
from pathlib import Path

LAB = """
all:
  children:
    testbeds:
      hosts:
        me:
          ansible_host: 192.0.2.1
          ansible_ssh_private_key_file: key
          perfbisect_boot_method: kexec
        guest:
          perfbisect_kind: libvirt
          perfbisect_clock: instructions
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

_EXACT = """\
  - {name: count, unit: calls, better: lower, threshold: 5%, clocks: [instructions]}
clocks: [instructions]
"""

_OTHER_PATCH = """\
--- a/kernel/absent.c
+++ b/kernel/absent.c
@@ -1 +1 @@
-int a;
+int b;
"""

_CALLS = "  Function  Hit\n  --------  ---\n  memmove  10\n"

_COUNTED = '{"runs": 3, "user": 5, "functions": [{"name": "schedule", "instructions": 7.5, "spread": 1}]}'

_WHEN = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
_WHO = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def make_place(folder: Path) -> Path:
    """Fill a folder and return it: linux (v1 to v5, unrelated, not-linux), lab.yml, workloads, results."""
    (folder / "lab.yml").write_text(LAB)
    (folder / "key").write_text("")
    _make_repository(folder / "linux")
    two_decide = MANIFEST + "  - {name: user, unit: s, better: lower, threshold: 5%, decides: true}\n"
    for name, text in (
        ("mine", MANIFEST),
        ("misspelt", MANIFEST.replace("better:", "beter:")),
        ("no-unit", MANIFEST.replace("5%", "5")),
        ("two-decide", two_decide),
        ("not-yaml", "name: [\n"),
        ("exact", MANIFEST + _EXACT),
        ("debian-only", MANIFEST),
        ("needs-disk", MANIFEST + "requires: {block_device: 1G}\n"),
        ("needs-cpus", MANIFEST + "requires: {cpus: 2}\n"),
    ):
        (folder / name).mkdir()
        (folder / name / "workload.yaml").write_text(text)
        (folder / name / "mine").write_text("#!/bin/sh\n")
    for name, text in (
        ("other.patch", _OTHER_PATCH),
        ("old.txt", "1.0\n1.1\n\n1.2\n1.0\n"),
        ("new.txt", "1.0\n1.1\n\n1.2\n1.0\n"),
        ("other.txt", "reads: 5 MB/s\nreads: 6 MB/s\n"),
        ("old.folded", "db;main;sys_io_[k];alloc_[k] 600\n"),
        ("calls.txt", _CALLS),
        ("counted/functions.json", _COUNTED),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    return folder


def _make_repository(repo: Path) -> None:
    repo.mkdir()

    def git(*arguments: str) -> None:
        environment = {**_WHEN, **_WHO, "PATH": "/usr/bin:/bin"}
        subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, env=environment)

    git("init", "-q", "-b", "main")
    for name in ("Makefile", "Kconfig", "MAINTAINERS"):
        (repo / name).write_text("VERSION = 6\n")
    for name in ("kernel", "arch", "init", "include"):
        (repo / name).mkdir()
        (repo / name / "Makefile").write_text("obj-y :=\n")
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
    git("rm", "-q", "-r", "kernel", "Makefile")
    git("commit", "-q", "-m", "no kernel any more")
    git("tag", "not-linux")
    git("reset", "-q", "--hard", "v5")
    git("checkout", "-q", "main")

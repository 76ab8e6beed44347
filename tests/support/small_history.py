"""Short histories of the real kernel: a few commits on top of the demo's base, each made for one purpose.

It borrows the objects of the demo's repository (`kernels/demo/prepare-history`), so that making it takes
seconds and a few kilobytes. Every commit touches a single .c file: after the first build all are quick.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """One commit: `old` becomes `new` in `path`. kind: what it does to the kernel."""

    subject: str
    path: str
    old: str
    new: str
    kind: str = "harmless"


_DELAY = """\
	for (unsigned int spin = 0; spin < 400; spin++)
		barrier();

"""
"""About 1,200 instructions in every write: a round trip of pipe-test has two and costs about 8,000."""

_PANIC = '	panic("this commit does not boot");\n'
_KTHREADD = "	wait_for_completion(&kthreadd_done);\n"
_BRINGUP = '	pr_info("Bringing up secondary CPUs ...\\n");\n'
_NULL_WRITE = """\
	if (unlikely(total_len == 0))
		return 0;

	__pipe_lock(pipe);
"""

CHANGES = (
    Change(
        "net: Spell out that a protocol family is there",
        "net/socket.c",
        "NET: Registered %s",
        "NET: now has %s",
    ),
    Change("tcp: Say tables are set up", "net/ipv4/tcp.c", "Hash tables configured", "Hash tables set up"),
    Change("init: Give up before the first program", "init/main.c", _KTHREADD, _KTHREADD + _PANIC, "no boot"),
    Change("smp: Forget a semicolon", "kernel/smp.c", _BRINGUP, _BRINGUP.replace(";", ""), "no build"),
    Change("smp: Remember the semicolon", "kernel/smp.c", _BRINGUP.replace(";", ""), _BRINGUP, "no boot"),
    Change("init: Go on to the first program", "init/main.c", _KTHREADD + _PANIC, _KTHREADD),
    Change(
        "pipe: Dawdle before each write",
        "fs/pipe.c",
        _NULL_WRITE,
        _NULL_WRITE.replace("	__pipe", _DELAY + "	__pipe"),
        "slow",
    ),
    Change(
        "mm: Say how many zone lists there are", "mm/page_alloc.c", "Built %u zonelists", "Made %u zonelists"
    ),
)
"""The ends differ by the seventh; half-way between them lie three in a row that cannot be measured."""

CULPRIT = next(number for number, change in enumerate(CHANGES, start=1) if change.kind == "slow")
LAST = len(CHANGES)
_WHO = "perfbisect tests <tests@perfbisect.invalid> 1670796918 +0000"


def git(repository: Path, *command: str, stdin: str | None = None) -> str:
    """Run git; a failure is an AssertionError with its words."""
    done = subprocess.run(
        ["git", "-C", str(repository), *command], input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(command)}: {done.stderr}"
    return done.stdout


def make(
    target: Path, demo: Path, changes: Sequence[Change] = CHANGES, prefix: str = "e2e"
) -> dict[str, str]:
    """Make the repository in `target`, borrowing from `demo`; return tag -> commit id (<prefix>-00: base)."""
    target.mkdir(parents=True)
    git(target, "init", "--quiet", "--initial-branch=main")
    objects = git(demo, "rev-parse", "--path-format=absolute", "--git-path", "objects").strip()
    (target / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    base = git(demo, "rev-parse", "rt-00^{commit}").strip()
    texts: dict[str, str] = {}
    stream = [f"reset refs/heads/main\nfrom {base}\n\nreset refs/tags/{prefix}-00\nfrom {base}\n\n"]
    for number, change in enumerate(changes, start=1):
        text = texts.get(change.path) or git(target, "cat-file", "blob", f"{base}:{change.path}")
        assert text.count(change.old) == 1, f"{change.path} is not as expected for '{change.subject}'"
        texts[change.path] = text = text.replace(change.old, change.new)
        stream.append(
            f"commit refs/heads/main\ncommitter {_WHO}\n{_data(change.subject)}"
            f"M 100644 inline {change.path}\n{_data(text)}\n"
            f"reset refs/tags/{prefix}-{number:02d}\nfrom refs/heads/main\n\n"
        )
    git(target, "fast-import", "--quiet", stdin="".join(stream))
    return read_ids(target, len(changes), prefix)


def read_ids(target: Path, changes: int = LAST, prefix: str = "e2e") -> dict[str, str]:
    """Return tag -> commit id of a history that was made."""
    names = [f"{prefix}-{number:02d}" for number in range(changes + 1)]
    return {name: git(target, "rev-parse", f"{name}^{{commit}}").strip() for name in names}


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"

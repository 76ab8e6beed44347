"""Small git histories for tests, written down as text: one commit a line, its parents behind it.

    Histories(path).make('''
        a
        b: a
        c: a
        m: b c
    ''')

Each commit `x` changes the file `x` (or those named after '|') and gets the tag `x`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_CLEAN = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C.UTF-8",
}
LINUX = ("Makefile", "Kbuild", "kernel/fork.c")
"""What makes a tree one of Linux; every root has them unless it says '| other' (then it has only that)."""


class SmallGit:
    """A repository in `path` (made on the first `make`); ids maps names to commit ids."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: dict[str, str] = {}

    def git(self, *command: str, stdin: str | None = None) -> str:
        """Run git in the repository and return what it prints."""
        done = subprocess.run(
            ["git", "-C", str(self.path), *command],
            input=stdin,
            capture_output=True,
            text=True,
            env=_CLEAN,
            check=False,
        )
        assert done.returncode == 0, f"git {' '.join(command)}: {done.stderr}"
        return done.stdout

    def make(self, text: str) -> SmallGit:
        """Make the commits of `text`, parents first, a working tree on the last; return self."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        stream: list[str] = []
        marks: dict[str, int] = {}
        trees: dict[str, dict[str, str]] = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            head, _, files = line.partition("|")
            name, _, above = head.partition(":")
            name, parents = name.strip(), above.split()
            touched = files.split() or ([name] if parents else [*LINUX, name])
            # A merge has what all its parents have, the first parent's where they differ.
            tree = {path: word for parent in reversed(parents) for path, word in trees[parent].items()}
            trees[name] = tree | dict.fromkeys(touched, f"{name} made this\n")
            marks[name] = number = len(marks) + 1
            stream.append(f"reset refs/heads/main\n\ncommit refs/heads/main\nmark :{number}\n")
            stream.append(f"author Ann Author <ann@example.org> {1_000_000_000 + number} +0000\n")
            stream.append(f"committer Com Mitter <com@example.org> {1_100_000_000 + number} +0000\n")
            stream.append(_data(f"change {name}"))
            for word, parent in zip(["from", *["merge"] * len(parents)], parents, strict=False):
                stream.append(f"{word} :{marks[parent]}\n")
            stream.append("deleteall\n")
            stream.extend(f"M 100644 inline {path}\n{_data(word)}" for path, word in trees[name].items())
            stream.append(f"\nreset refs/tags/{name}\nfrom :{number}\n\n")
        self.git("fast-import", "--quiet", stdin="".join(stream))
        self.git("reset", "--quiet", "--hard", "main")
        for name in marks:
            self.ids[name] = self.git("rev-parse", f"refs/tags/{name}").strip()
        return self

    def name(self, sha: str) -> str:
        """Return the name of a commit id."""
        return next(name for name, known in self.ids.items() if known == sha)


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"

"""What the sandbox costs a build: CPU seconds of the same `make` in each sandbox, and in none.

    python -m tests.bench.sandbox [FILES]

A tree of FILES (300) small C files, compiled from nothing each time, without a compiler cache. Builds with it
and without it take turns, three times each; the cheapest counts.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bisector.resources import resource
from tests.bench.process_cost import measure

REPEATS = 3
SANDBOXES = ("bubblewrap", "namespaces", "user")
MAKE = "make -s -C {tree} clean && make -s -j2 -C {tree} && times >{tree}/times"
SCRIPT = """set -eu
source {script}
show_programs make cc
writable=({tree})
sandbox_owner {tree}
sandbox={sandbox}
sandboxed bash -c '{make}'
"""


def write_tree(tree: Path, files: int) -> None:
    """Write a Makefile and C files that include a header of the system each."""
    tree.mkdir(parents=True)
    for number in range(files):
        body = "\n".join(f'int f{number}_{n}(int x) {{ return printf("%d", x + {n}); }}' for n in range(40))
        (tree / f"file{number}.c").write_text(f"#include <stdio.h>\n{body}\n")
    (tree / "Makefile").write_text(
        "objects := $(patsubst %.c,%.o,$(wildcard *.c))\nall: $(objects)\n%.o: %.c\n\t@cc -O2 -c -o $@ $<\n"
        "clean:\n\t@rm -f *.o\n"
    )


def build(command: list[str], tree: Path, variables: dict[str, str]) -> float:
    """Return the CPU seconds of a build with its sandbox."""
    whole = measure(command, variables).cpu
    words = (tree / "times").read_text().split()[2:]  # user and system seconds of what was waited for
    minutes = (word.rstrip("s").split("m") for word in words)
    inner = sum(60 * float(m) + float(s) for m, s in minutes)
    return whole if whole >= inner else whole + inner  # bubblewrap does not wait for what it starts


def main(files: int) -> None:
    """Print a line for each sandbox: CPU seconds of the build, and the ratio to the build without one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        tree = Path(name) / "builder" / "tree"
        write_tree(tree, files)
        plain = ["bash", "-c", MAKE.format(tree=tree)]
        script = resource("playbooks") / "files" / "sandbox.sh"
        own = {"PB_FOLDER": name}
        for sandbox in SANDBOXES:
            text = SCRIPT.format(script=script, tree=tree, sandbox=sandbox, make=MAKE.format(tree=tree))
            inside = ["bash", "-c", text]
            try:
                costs = [(build(plain, tree, own), build(inside, tree, own)) for _ in range(REPEATS)]
            except SystemExit:
                print(f"{sandbox}: does not work here", flush=True)
                continue
            without, within = (min(column) for column in zip(*costs, strict=True))
            print(
                f"{sandbox}: {within:.1f} s, {within / without:.2f} times {without:.1f} s without", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)

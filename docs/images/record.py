"""Run a real bisection on a terminal of 80 columns and draw what it showed: `search.svg` and `result.svg`.

    .venv/bin/python docs/images/record.py --repo REPO --good rt-00 --bad rt-16 --workload pipe-test

All arguments go to `perfbisect start`. `make demo` prepares that repository (DEMO in the Makefile) and builds
the kernels; without them this takes 20 minutes, with them two. What was printed is not changed.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
LINES, COLUMNS = 40, 80
SHOWN = 24
"""Lines of a picture: those of a terminal that nobody has made larger."""

_TOKENS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+")
_SUSPECT = re.compile(r" *[0-9]+% ")
_FONTS = re.compile(r"@font-face \{.*?\}\n", re.DOTALL)


def record(command: Sequence[str]) -> str:
    """Return what a command writes to a terminal, escape sequences included. Raises CalledProcessError."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(  # noqa: S603 - the user's own arguments
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            data += os.read(ours, 1 << 16)
        except OSError:  # EIO: the command has ended
            break
    if code := process.wait():
        raise subprocess.CalledProcessError(code, command, data)
    return data.decode()


def screen(written: str) -> list[str]:
    """Return the lines of a terminal without end after this was written to it, with their colours.

    Knows what perfbisect and rich use: carriage return, line feed, cursor up, erase in line.
    """
    rows, at, drawn = [""], 0, True
    for piece in _TOKENS.findall(written):
        if piece == "\r":
            drawn = False
        elif piece == "\n":
            at, drawn = at + 1, False
            rows += [""] * (at + 1 - len(rows))
        elif piece[0] != "\x1b" or piece[-1] == "m":
            rows[at] = rows[at] + piece if drawn else piece
            drawn = True
        elif piece[-1] == "A":
            at = max(at - int(piece[2:-1] or 1), 0)
        elif piece[-1] == "K":
            rows[at] = ""
    return rows


def while_searching(written: str) -> list[str]:
    """Return the last screen on which there are four suspects or more. Raises ValueError without one."""
    redraws = [found.start() for found in re.finditer(r"\r\x1b\[2K\x1b\[1A", written)]
    for end in reversed(redraws):
        rows = screen(written[:end])[-SHOWN:]
        if sum(_SUSPECT.match(Text.from_ansi(row).plain) is not None for row in rows) >= 4:
            return rows
    raise ValueError("no screen has four suspects")


def result(written: str) -> list[str]:
    """Return the beginning of the report, in whole paragraphs."""
    rows = screen(written)
    begin = next(at for at, row in enumerate(rows) if Text.from_ansi(row).plain.startswith("Result: "))
    shown = rows[begin : begin + SHOWN]
    last = max(at for at, row in enumerate(shown) if not Text.from_ansi(row).plain.strip())
    return shown[:last]


def picture(rows: Sequence[str], title: str) -> str:
    """Return an SVG that loads nothing from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for row in rows:
        console.print(Text.from_ansi(row), soft_wrap=True)
    return _FONTS.sub("", console.export_svg(title=title))


def main() -> None:
    """Record and draw."""
    arguments = sys.argv[1:]
    written = record([str(Path(sys.executable).with_name("perfbisect")), "start", *arguments])
    title = "perfbisect start " + " ".join(arguments)
    for name, rows in (("search", while_searching(written)), ("result", result(written))):
        (HERE / f"{name}.svg").write_text(picture(rows, title), encoding="utf-8")


if __name__ == "__main__":
    main()

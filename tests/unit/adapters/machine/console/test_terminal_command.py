"""A program on a pseudo-terminal: it has one, its bytes come unchanged, and nothing of it is left behind."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bisector.adapters.machine.console.terminal_command import TerminalCommand
from bisector.errors import InfrastructureError
from tests.support.waiting import until


def read_all(program: TerminalCommand) -> bytes:
    data, deadline = b"", time.monotonic() + 30
    while (piece := program.read(0.2)) != b"":
        data += piece or b""
        assert time.monotonic() < deadline
    return data


def test_it_has_a_terminal_and_its_bytes_come_unchanged() -> None:
    script = "import os, sys; assert os.isatty(0) and os.isatty(1); os.write(1, bytes(range(256)))"
    program = TerminalCommand([sys.executable, "-IS", "-c", script])
    try:
        assert read_all(program) == bytes(range(256))
    finally:
        program.close()


def test_nothing_comes_from_one_that_is_silent_and_closing_ends_all_it_started(tmp_path: Path) -> None:
    script = f"setsid sleep 300 & echo $! > {tmp_path}/pid; exec sleep 300"
    program = TerminalCommand(["sh", "-c", script], {"SEEN": "1"})
    until((tmp_path / "pid").exists, 20)
    until(lambda: (tmp_path / "pid").read_text().endswith("\n"), 20)
    assert program.read(0.05) is None
    program.close()
    pid = (tmp_path / "pid").read_text().strip()
    until(lambda: not Path(f"/proc/{pid}").exists(), 20)


def test_a_program_that_is_missing_is_told() -> None:
    with pytest.raises(InfrastructureError, match="'no-such-program' is not installed"):
        TerminalCommand(["no-such-program"])

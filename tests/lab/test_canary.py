"""What looks for passwords finds them."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.lab.canary import CommandLineWatch, files_with


def test_a_password_in_a_command_line_and_in_a_file_is_found(tmp_path: Path) -> None:
    with CommandLineWatch(["geheim-7391"]) as watch:
        sleeper = subprocess.Popen(["sh", "-c", "sleep 60", "-P", "geheim-7391"])
        try:
            deadline = time.monotonic() + 20
            while not watch.found and time.monotonic() < deadline:
                time.sleep(0.02)
        finally:
            sleeper.kill()
            sleeper.wait()
    assert any(b"geheim-7391" in line for line in watch.found)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "state.sqlite").write_bytes(b"\0\1geheim-7391\2")
    (tmp_path / "other").write_text("nothing")
    assert files_with(["geheim-7391"], tmp_path) == [tmp_path / "deep" / "state.sqlite"]

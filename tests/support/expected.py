"""Compare a text with the kept one in `tests/golden/expected/`; GOLDEN=write keeps it anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "expected"


def check(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing; GOLDEN=write makes it"
    assert text == path.read_text(encoding="utf-8")

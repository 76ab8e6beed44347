"""Pages of docs/reference/ are those of the code; GOLDEN=write writes the generated one anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bisector.errors import ExitCode
from bisector.model.decisions import EXIT_CODES
from bisector.schemas.ranges import range_text
from bisector.schemas.settings import SETTINGS_FILE, TABLES, VARIABLE_PREFIX, Settings

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"

SETTINGS_HEAD = f"""# Settings

<!-- Written by tests/golden/test_reference_pages.py from bisector/schemas/settings.py: GOLDEN=write. -->

`{SETTINGS_FILE}` is looked for in the current folder and upwards from it; `perfbisect --config FILE` names
another. Environment variables are stronger than the file, options of a command are strongest. Relative paths
in the file start at its folder; those in its tables (`[mail]`, `[web]`, `[webhook]`) must be absolute.
`perfbisect init` writes one.

    perfbisect settings show      # what holds here, and where that is said
    perfbisect settings check     # whether the file is right, and whether what it names is there

| key | variable | meaning | default |
|---|---|---|---|
"""

SYSTEMS = {
    "state_dir": "`~/.local/state/perfbisect`",
    "cache_dir": "`~/.cache/perfbisect`",
    "lock_dir": "`/run/lock/perfbisect`",
    "owner": "`user@host`",
}
"""Defaults that depend on the machine: folders as Debian has them, and who uses it."""


def settings_page() -> str:
    rows = (
        (
            f"`{key}`",
            f"`{VARIABLE_PREFIX}{key.upper()}`" if key not in TABLES else "",
            f"{field.description}{_range(field)}",
            _default(key, field),
        )
        for key, field in Settings.model_fields.items()
    )
    return SETTINGS_HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _range(field: FieldInfo) -> str:
    allowed = range_text(field)
    return f" ({allowed})" if allowed else ""


def _default(key: str, field: FieldInfo) -> str:
    if key in SYSTEMS:
        return SYSTEMS[key]
    return "" if field.default in (None, PydanticUndefined, {}) else f"`{field.default}`"


def test_settings_are_those_of_the_schema() -> None:
    page = FOLDER / "settings.md"
    if os.environ.get("GOLDEN") == "write":
        page.write_text(settings_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == settings_page()
    made = {key for key, field in Settings.model_fields.items() if field.default is PydanticUndefined}
    assert made == SYSTEMS.keys()


def test_every_exit_code_and_every_ending_is_explained() -> None:
    text = (FOLDER / "exit-codes.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE))
    assert {int(code) for code in rows} == set(ExitCode)
    for ending, code in EXIT_CODES.items():
        assert ending.value in rows[str(int(code))], ending
    verdicts = (FOLDER.parent / "explanation" / "verdicts.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"^\| .*? \| (\d+) \|", verdicts, re.MULTILINE)}
    assert codes == set(map(int, EXIT_CODES.values()))

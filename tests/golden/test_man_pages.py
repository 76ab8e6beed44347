"""The manual pages that the wheel installs are those of the commands; GOLDEN=write writes them anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.golden.man_page import man_pages

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging" / "man"
PAGES = man_pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_that_of_its_command(name: str) -> None:
    if os.environ.get("GOLDEN") == "write":
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(PAGES[name], encoding="utf-8")
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name]


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


def test_the_wheel_installs_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared[str(FOLDER.relative_to(ROOT))] == "share/man/man1"


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_finds_nothing_wrong() -> None:
    text = "".join(PAGES.values())
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8", "-rLL=78n"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "--max-hours" in done.stdout and "perfbisect start" in done.stdout

"""`perfbisect settings`: values with their sources, and what is wrong with a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bisector.interfaces.cli import run
from bisector.schemas.settings import Settings


def show(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[object, str]]:
    assert run(["settings", "show", "--json"]) == 0
    return {row["key"]: (row["value"], row["from"]) for row in json.loads(capsys.readouterr().out)}


def test_each_value_is_shown_with_where_it_comes_from(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = own_folders / "perfbisect.toml"
    file.write_text('workload = "pipe-test"\nalpha = 0.01\njobs = 3\n')
    monkeypatch.setenv("PERFBISECT_ALPHA", "0.02")
    found = show(capsys)
    assert set(found) == set(Settings.model_fields)
    assert found["workload"] == ("pipe-test", str(file))
    assert found["jobs"] == (3, str(file))
    assert found["alpha"] == (0.02, "the variable PERFBISECT_ALPHA")
    assert found["recipe"] == ("auto", "default")
    assert found["repo"] == (None, "default")


def test_the_table_fits_and_names_every_key(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["settings", "show"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["KEY", "VALUE"]
    assert [line.split()[0] for line in lines] == list(Settings.model_fields)


def test_a_sound_file_is_told_from_none(own_folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own_folders / "other.toml"
    file.write_text("alpha = 0.01\n")
    assert run(["settings", "check", str(file)]) == 0
    assert capsys.readouterr().out.startswith(f"{file}, the variable PERFBISECT_")
    assert run(["settings", "check", "nowhere.toml"]) == 1
    assert "no such file" in capsys.readouterr().err


def test_a_file_without_a_setting_is_told_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PERFBISECT_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "empty.toml"
    file.touch()
    assert run(["settings", "check", str(file)]) == 0
    assert (
        capsys.readouterr().out == "nothing is set, by a file or a variable: every setting has its default\n"
    )
    file.write_text("alpha = 0.01\n")
    assert run(["settings", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 1 setting, valid\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alfa = 1\n", "other.toml:1: unknown key 'alfa'"),
        ('alpha = 0.05\nworkload = "nope"\n', "other.toml:2: key 'workload': "),
        ('\nrepo = "nowhere"\n', "other.toml:2: key 'repo': "),
        ('lab = "nowhere.yml"\n', "other.toml:1: key 'lab': "),
        ('[web]\n[web.repositories]\n"a.b" = "/nowhere"\n', "other.toml:3: key 'web.repositories.a.b': "),
    ],
)
def test_what_is_wrong_is_named(
    own_folders: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = own_folders / "other.toml"
    file.write_text(text)
    assert run(["settings", "check", str(file)]) == 1
    error = capsys.readouterr().err
    assert said in error and "cure:" in error


def test_a_variable_that_names_nothing_is_named_as_one(
    own_folders: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFBISECT_WORKLOAD", "nope")
    assert run(["settings", "check"]) == 1
    assert "the variable PERFBISECT_WORKLOAD: key 'workload': " in capsys.readouterr().err

"""Addresses of databases: what is one, and that its password is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.interfaces.cli import run
from bisector.schemas.database_url import DatabaseUrl
from bisector.schemas.settings import load_settings

ADDRESS = "postgresql://eve:hunter2@db.lab:5433/perf?sslmode=require&password=hunter2"


def test_as_text_it_has_neither_password_nor_options() -> None:
    url = DatabaseUrl(ADDRESS)
    assert str(url) == repr(url) == f"{url}" == "postgresql://eve@db.lab:5433/perf"
    assert url.secret == ADDRESS
    assert url.name == "perf"
    options = "&client_encoding=UTF8"
    assert url.for_sqlalchemy == ADDRESS.replace("postgresql://", "postgresql+psycopg://") + options
    local = DatabaseUrl("postgres:///perf")
    assert local.for_sqlalchemy == "postgresql+psycopg:///perf?client_encoding=UTF8"
    assert str(DatabaseUrl("postgres:///perf?host=/run/postgresql")) == "postgresql:///perf"


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:///hunter2",
        "mysql://eve:hunter2@db/perf",
        "postgresql://eve:hunter2@db",
        "postgresql://eve:hunter2@db/",
        "postgresql://eve:hunt@er2@db/perf",
        "postgresql://eve:hunt/er2@db/perf",
        "postgresql://eve:hunt#er2@db/perf",
        "postgresql://eve:hunter2@db/perf name",
        "hunter2",
        "",
    ],
)
def test_what_is_no_address_is_refused_without_being_quoted(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "perfbisect.toml"
    file.write_text(f"alpha = 0.05\ndatabase = {json.dumps(text)}\n")
    with pytest.raises(RequestError, match="postgresql://USER@HOST/NAME") as refused:
        load_settings(file, environment={})
    error = refused.value
    assert f"{file}:2: key 'database'" in error.message
    for part in ("hunter2", "er2"):
        assert part not in error.message + error.details + error.cure


def test_a_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "perfbisect.toml").write_text("database = 5432\n")
    with pytest.raises(RequestError, match="key 'database': must be text"):
        load_settings(tmp_path / "perfbisect.toml", environment={})


@pytest.mark.parametrize("as_json", [True, False])
def test_the_settings_are_shown_without_the_password(
    as_json: bool, own_folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_folders / "perfbisect.toml").write_text('database = "postgresql://bob:secret@old/x"\n')
    monkeypatch.setenv("PERFBISECT_DATABASE", ADDRESS)
    assert load_settings().database == DatabaseUrl(ADDRESS)
    assert run(["settings", "show", *(["--json"] if as_json else [])]) == 0
    shown = capsys.readouterr()
    assert "postgresql://eve@db.lab:5433/perf" in shown.out.replace("\n", "")
    assert "hunter2" not in shown.out + shown.err
    assert "hunter2" not in repr(load_settings()) + str(load_settings())

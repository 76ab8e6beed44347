"""The place where rows of bad input are tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_input.harness import enter_place, make_shared_place


@pytest.fixture(scope="session")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shared_place(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def place(shared_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_place(shared_place, tmp_path, monkeypatch)

"""Fixtures for tests of every kind. Each run ends with what was skipped and why (-ra in pyproject.toml)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.support.command_line import Bench

# No property is a matter of time: on a busy machine a deadline would fail it.
hypothesis.settings.register_profile("perfbisect", deadline=None)
hypothesis.settings.load_profile("perfbisect")


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the locks of these tests and their programs apart from those of other perfbisects."""
    os.environ["PERFBISECT_LOCK_DIR"] = str(tmp_path_factory.mktemp("locks"))


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in tmp_path, with perfbisect's state and cache below it, and return it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PERFBISECT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def bench(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Put fakes behind the command line."""
    from tests.support.command_line import Bench

    yield Bench(own_folders, monkeypatch)

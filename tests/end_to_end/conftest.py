"""Real kernels from end to end. The longest cases run when asked for (`make test-end-to-end`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import demo_history, small_history


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what is left out and how to run it."""
    if os.environ.get("END_TO_END"):
        return
    reason = "long searches, minutes to an hour each: 'make test-end-to-end' runs it"
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def cache() -> Path:
    """The folder of kernels, images and the demo's history: the user's own, so that nothing is made twice."""
    return demo_history.CACHE


@pytest.fixture(scope="session")
def demo() -> Path:
    """The demo's history; skipped only where this machine's archive has no kernel source."""
    return demo_history.prepare()


@pytest.fixture(scope="session")
def tags(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> tuple[Path, dict[str, str]]:
    """The small history and its tags."""
    repository = tmp_path_factory.mktemp("small") / "linux"
    return repository, small_history.make(repository, demo)

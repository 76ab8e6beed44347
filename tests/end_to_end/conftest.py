"""The end-to-end cases are long: they run when asked for (`make test-end-to-end`)."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what is left out and how to run it."""
    if os.environ.get("END_TO_END"):
        return
    reason = "builds six real kernels and boots them, 7 to 15 minutes: 'make test-end-to-end' runs it"
    for item in items:
        if item.get_closest_marker("end_to_end"):
            item.add_marker(pytest.mark.skip(reason=reason))

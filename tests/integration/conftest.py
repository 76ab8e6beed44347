"""Fixtures that several tests with real programs share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import loopback_sshd
from tests.support.small_git import SmallGit

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[loopback_sshd.Server]:
    """An SSH server of this machine, with its own keys."""
    yield from loopback_sshd.serve(tmp_path_factory.mktemp("sshd"))


@pytest.fixture
def small(tmp_path: Path) -> SmallGit:
    """An empty git repository, to be given a history."""
    return SmallGit(tmp_path / "linux")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state folder for guests; whatever the test did, none of its guests is left."""
    from bisector.adapters.guest import qemu_processes
    from bisector.adapters.guest.libvirt_testbed import domain_prefix

    yield tmp_path / "state"
    assert qemu_processes.qemu_pids(domain_prefix(tmp_path / "state")) == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a module, which is marked with NEEDS_CHROMIUM."""
    from tests.support.pages.chromium import chromium

    with chromium() as opened:
        yield opened

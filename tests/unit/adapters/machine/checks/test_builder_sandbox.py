"""Which sandbox a builder has, by the script that builds use, run by this machine's bash."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from bisector.adapters.machine.checks.builder_sandbox import has_sandbox
from bisector.adapters.machine.machine_needs import Doubt
from bisector.adapters.system.command import CompletedCommand
from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")


class Here:
    """Runs commands on this machine; some programs do not work."""

    def __init__(self, programs: Path, broken: Sequence[str], working: Sequence[str] = ()) -> None:
        self._path = f"{programs}:{os.environ['PATH']}"
        for names, code in ((broken, 1), (working, 0)):
            for name in names:
                (programs / name).write_text(f"#!/bin/sh\nexit {code}\n")
                (programs / name).chmod(0o755)

    def run(self, command: Sequence[str], *, timeout: float) -> CompletedCommand:
        done = subprocess.run(
            command,
            env={**os.environ, "PATH": self._path},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=True,
        )
        return CompletedCommand(tuple(command), 0, done.stdout)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may pass through, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="perfbisect-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "programs").mkdir(mode=0o755)
        yield folder


def ask(place: Path, *broken: str, working: Sequence[str] = ()) -> str:
    here: Any = Here(place / "programs", broken, working)
    return has_sandbox(cast(SSH, here), str(place / "builds"))


@root
def test_a_builder_where_it_works_is_left_as_it_was(place: Path) -> None:
    assert re.fullmatch("(bubblewrap|unshare) works", ask(place))
    assert not (place / "builds").exists()
    (place / "builds").mkdir()
    (place / "builds/mine").touch()
    ask(place)
    assert [path.name for path in (place / "builds").iterdir()] == ["mine"]


@root
def test_the_next_best_is_named(place: Path) -> None:
    assert ask(place, "bwrap") == "unshare works"
    with pytest.raises(Doubt, match="another user, but with the network") as doubt:
        ask(place, "bwrap", "unshare")
    assert "install bubblewrap there" in doubt.value.cure


def test_where_none_works_nothing_is_built(place: Path) -> None:
    with pytest.raises(InfrastructureError, match="nothing is built") as failure:
        ask(place, "bwrap", "unshare", "setpriv", "podman")
    assert "install bubblewrap there" in failure.value.cure


def test_podman_alone_serves_toolchains_in_images(place: Path) -> None:
    with pytest.raises(Doubt, match="only toolchains in an image"):
        ask(place, "bwrap", "unshare", "setpriv", working=["podman"])

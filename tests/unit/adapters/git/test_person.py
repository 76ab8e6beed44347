"""Whom git takes for the person who works with a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.git.person import person_of
from tests.support.small_git import SmallGit


def test_the_name_and_address_of_gits_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    tree = SmallGit(tmp_path / "tree").make("a")
    for key in ("user.name", "user.email"):
        tree.git("config", key, "")
    assert person_of(tree.path) == ""
    tree.git("config", "user.email", "zoe@x.org")
    assert person_of(tree.path) == "<zoe@x.org>"
    tree.git("config", "user.name", "Zoë Á")
    assert person_of(tree.path) == "Zoë Á <zoe@x.org>"

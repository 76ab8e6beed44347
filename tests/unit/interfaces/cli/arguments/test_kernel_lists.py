"""`--kernels` among the options of a request."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.interfaces.cli.arguments.kernel_lists import instead_of_commits


def test_a_list_is_absolute_and_stands_for_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = instead_of_commits({"kernels": Path("debs"), "recipe": None}, None)
    assert found == {"kernels": str(tmp_path / "debs"), "repo": str(tmp_path / "debs")}


@pytest.mark.parametrize(
    ("recipe", "repo", "option"), [("x86_64-old", None, "--recipe"), (None, Path("linux"), "--repo")]
)
def test_what_builds_excludes_a_list(recipe: str | None, repo: Path | None, option: str) -> None:
    with pytest.raises(RequestError, match=f"--kernels and {option} exclude each other"):
        instead_of_commits({"kernels": Path("debs"), "recipe": recipe}, repo)

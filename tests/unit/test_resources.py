"""The folders that come with perfbisect: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector import resources
from bisector.errors import InfrastructureError


@pytest.mark.parametrize("name", ["playbooks", "kernels", "workloads"])
def test_every_folder_is_there(name: str) -> None:
    assert (resources.resource(name) / "README.md").is_file()


def test_an_installed_package_has_them_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "bisector"
    (package / "_data" / "kernels").mkdir(parents=True)
    (package.parent / "kernels").mkdir()  # another package's, as PyPI's 'packaging' is
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resources.resource("kernels") == package / "_data" / "kernels"
    with pytest.raises(InfrastructureError, match="the folder 'workloads' is missing"):
        resources.resource("workloads")

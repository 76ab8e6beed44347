"""Patches of a request are the same files until its bisection ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.kernel.patch_files import check_patches, digest


def test_a_patch_that_changed_or_is_gone_is_refused(tmp_path: Path) -> None:
    patch = tmp_path / "one.patch"
    patch.write_text("+a\n")
    known = digest(patch)
    assert len(known) == 64
    check_patches([str(patch)], [known])
    patch.write_text("+b\n")
    with pytest.raises(RequestError, match=r"one\.patch has changed since the bisection began"):
        check_patches([str(patch)], [known])
    patch.unlink()
    with pytest.raises(RequestError, match=r"one\.patch cannot be read"):
        check_patches([str(patch)], [known])

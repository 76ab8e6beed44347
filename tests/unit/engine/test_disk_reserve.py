"""The reserve on the disk of the state folder: made, probed, released. A real full disk: test_kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.engine import disk_reserve
from bisector.engine.disk_reserve import DiskReserve
from bisector.errors import InfrastructureError


def full(path: Path, count: int) -> None:
    raise OSError(28, "No space left on device")


def test_it_takes_real_space_and_gives_it_back(tmp_path: Path) -> None:
    reserve = DiskReserve(tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.stat().st_blocks * 512 >= 1 << 20, "what closing a bisection writes must fit in"
    assert kept.stat().st_size < 1 << 22, "it is taken from the user's disk for nothing else"
    assert not reserve.is_full()
    assert list(tmp_path.iterdir()) == [kept], "the probe is gone"
    reserve.release()
    reserve.release()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_noticed_and_the_reserve_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = DiskReserve(tmp_path)
    monkeypatch.setattr(disk_reserve, "_write", full)
    assert reserve.is_full()
    assert list(tmp_path.iterdir()) == []
    assert "is full" in reserve.error().message


def test_a_disk_that_is_full_from_the_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_reserve, "_write", full)
    with pytest.raises(InfrastructureError, match="is full") as caught:
        DiskReserve(tmp_path)
    assert "No space left" in caught.value.details


def test_a_reserve_that_did_not_fit_leaves_no_part_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the part that was written is what the user's own clean-up would need first."""

    def half(path: Path, count: int) -> None:
        path.write_bytes(bytes(count // 2))
        full(path, count)

    monkeypatch.setattr(disk_reserve, "_write", half)
    with pytest.raises(InfrastructureError):
        DiskReserve(tmp_path)
    assert list(tmp_path.iterdir()) == []

"""Sharing files between hosts: which settings ask for it, and what earlier processes could not give."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.adapters.artefacts.open_artefacts import open_artefacts
from bisector.app.artefacts import shared_files
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.model.artefacts import boot_artefact
from bisector.model.records import Left
from bisector.schemas.settings import Settings
from tests.support.fake_bisection import store_bisections


def settings(folder: Path) -> Settings:
    return Settings(state_dir=folder / "state", cache_dir=folder / "cache", artefacts=str(folder / "store"))


def test_without_the_setting_nothing_is_shared(tmp_path: Path) -> None:
    wiring = Wiring(Settings(state_dir=tmp_path / "state", cache_dir=tmp_path / "cache"))
    assert wiring.exchange is None
    assert shared_files.kernel_share(wiring) is None
    shared_files.require_store(wiring)
    shared_files.lease_as(None, "x")
    shared_files.keep_boot(wiring, tmp_path)
    shared_files.keep_earlier_boots(wiring)
    shared_files.finish(wiring)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_missing_at_the_start_is_refused(tmp_path: Path) -> None:
    wiring = Wiring(settings(tmp_path))
    with pytest.raises(InfrastructureError, match=r"artefact store .*/store is not there") as error:
        shared_files.require_store(wiring)
    assert "the setting 'artefacts' names it" in error.value.cure
    (tmp_path / "store").mkdir()
    shared_files.require_store(wiring)
    assert list((tmp_path / "store").iterdir()) == []


def test_kernels_are_leased_on_a_database_server_only(tmp_path: Path) -> None:
    wiring = Wiring(settings(tmp_path))
    share = shared_files.kernel_share(wiring)
    assert share is not None and share.coordinator is None
    shared_files.lease_as(share, "a-1")
    assert share.executor == "a-1"
    assert isinstance(open_artefacts(wiring.settings), FolderArtefacts)


@pytest.mark.parametrize(("days", "given"), [(0, True), (6, True), (8, False)])
def test_what_a_killed_process_could_not_give_is_given_at_the_next_start_within_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, given: bool
) -> None:
    store = store_bisections(tmp_path, monkeypatch)
    store.append("fake-new", Left("boot-003"))
    (tmp_path / "store").mkdir()
    wiring = Wiring(settings(tmp_path))
    for boot in ("boot-001", "boot-002"):
        (wiring.bisection_folder("fake-new") / "boots" / boot).mkdir(parents=True)
        (wiring.bisection_folder("fake-new") / "boots" / boot / "console.log").write_text("Linux")
    monkeypatch.setattr(wiring.clock, "now", lambda: time.time() + days * 86400.0)
    shared_files.keep_earlier_boots(wiring)
    shared_files.finish(wiring)
    kept = [one.artefact for one in FolderArtefacts(tmp_path / "store").kept()]
    assert kept == [boot_artefact("fake-new", "boot-001")] * given


@pytest.mark.parametrize("name", ["outside", "..", "", "boot-001/../../.."])
def test_what_lies_outside_a_boots_folder_is_never_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = store_bisections(tmp_path, monkeypatch)
    secrets = tmp_path / "outside"
    for folder in (secrets, tmp_path / "store"):
        folder.mkdir()
    (secrets / "key").write_text("secret")
    wiring = Wiring(settings(tmp_path))
    (wiring.bisection_folder("fake-new") / "boots").mkdir(parents=True)
    (wiring.bisection_folder("fake-new") / "boots" / "file").write_text("not of a boot")
    store.append("fake-new", Left(str(secrets) if name == "outside" else name))
    shared_files.keep_earlier_boots(wiring)
    shared_files.finish(wiring)
    assert list(FolderArtefacts(tmp_path / "store").kept()) == []


@pytest.mark.parametrize("error", [InfrastructureError("unreadable"), OSError("no"), ValueError("no name")])
def test_boots_that_cannot_be_given_are_told_and_the_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store_bisections(tmp_path, monkeypatch)
    (tmp_path / "store").mkdir()
    said: list[str] = []
    wiring = Wiring(settings(tmp_path), said.append)
    (wiring.bisection_folder("fake-new") / "boots" / "boot-001").mkdir(parents=True)

    def fail(wiring: Wiring, folder: Path) -> None:
        raise error

    monkeypatch.setattr(shared_files, "keep_boot", fail)
    shared_files.keep_earlier_boots(wiring)
    assert said == [f"warning: boots of 'fake-new' are not given to other hosts: {error}"]

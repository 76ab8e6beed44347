"""What is removed, and what never: one test for each thing that a bisection that can be resumed needs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections, find_culprit
from bisector.app.upkeep import retention
from bisector.app.wiring import Wiring
from bisector.engine.membership import Membership
from bisector.engine.state_lock import QUEUE, lock
from bisector.errors import InfrastructureError, RecordsFull, RequestError
from bisector.model.artefacts import Artefact, boot_artefact
from bisector.model.facts import KernelFacts
from bisector.model.records import Booted, Built
from bisector.model.stored_bisection import Stored
from bisector.schemas.settings import Settings
from bisector.simulation.histories import linear
from tests.support import fake_bisection

OLD = 1e9
"""Long ago."""


@pytest.fixture
def wiring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    """A state with an old bisection of each status, each with a folder, a kernel and an image of its own."""
    wiring = Wiring(Settings(state_dir=tmp_path / "state", cache_dir=tmp_path / "cache"))
    monkeypatch.setattr("bisector.adapters.store.sqlite_file.time.time", lambda: OLD)
    for number, status in enumerate(("new", "running", "interrupted", "failed", "done", "cancelled")):
        wiring.store.create(Stored(status, OLD, "{}", status, linear(3)))
        key, image = f"{number:064x}", f"image-{number}"
        kernel = KernelFacts(key=key)
        wiring.store.append(status, Built(1, True, 1.0, kernel=kernel))
        wiring.store.append(status, Booted("boot-001", 1, "guest", True, 1.0, OLD, image=image))
        add_kernel(wiring, key)
        add_image(wiring, f"{number:016x}", image)
        make(wiring.bisection_folder(status) / "boots" / "boot-001" / "console.log")
    monkeypatch.undo()
    return wiring


def make(path: Path, text: str = "x") -> Path:
    """Write a file long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for one in (path, path.parent):
        os.utime(one, (OLD, OLD))
    return path


def add_kernel(wiring: Wiring, key: str) -> Path:
    folder = wiring.settings.cache_dir / "kernels" / key
    make(folder / "image")
    return make(folder / "kernel.json", "{}").parent


def add_image(wiring: Wiring, key: str, checksum: str) -> Path:
    folder = wiring.settings.cache_dir / "images" / key
    make(folder / "root.ext2")
    make(folder / "client_key")
    return make(folder / "image.json", json.dumps({"checksum": checksum, "host_key": "k"})).parent


def removable(wiring: Wiring, days: float = 90.0) -> set[tuple[str, str]]:
    return {(item.kind, item.name) for item in retention.find_removable(wiring, days)}


def prune(wiring: Wiring) -> None:
    for item in retention.find_removable(wiring, 90.0):
        assert retention.remove_one(wiring, item)


def test_ended_bisections_go_and_the_others_stay_whatever_their_age(wiring: Wiring) -> None:
    prune(wiring)
    assert {s.id for s in wiring.store.list()} == {"new", "running", "interrupted", "failed"}
    folders = {path.name for path in (wiring.settings.state_dir / "bisections").iterdir()}
    assert folders == {"new", "running", "interrupted", "failed"}


def test_kernels_and_images_of_bisections_that_can_be_resumed_stay(wiring: Wiring) -> None:
    prune(wiring)
    cache = wiring.settings.cache_dir
    assert {int(path.name, 16) for path in (cache / "kernels").iterdir()} == {0, 1, 2, 3}
    assert {int(path.name, 16) for path in (cache / "images").iterdir()} == {0, 1, 2, 3}
    assert removable(wiring) == set()


def test_the_image_of_a_boot_that_failed_is_needed_too(wiring: Wiring) -> None:
    add_image(wiring, f"{9:016x}", "image-9")
    wiring.store.append("new", Booted("boot-002", 1, "guest", False, 1.0, OLD, image="image-9"))
    assert ("guest image", f"{9:016x}") not in removable(wiring)


def test_what_was_used_lately_stays(wiring: Wiring) -> None:
    wiring.store.set_status("done", "done")  # now
    os.utime(wiring.settings.cache_dir / "kernels" / f"{4:064x}")
    os.utime(wiring.settings.cache_dir / "images" / f"{4:016x}")
    assert {name for _, name in removable(wiring)} == {"cancelled", f"{5:064x}", f"{5:016x}"}


def test_what_is_used_between_asking_and_removing_stays(wiring: Wiring) -> None:
    found = retention.find_removable(wiring, 90.0)
    (kernel,) = [item for item in found if item.name == f"{4:064x}"]
    os.utime(kernel.path)  # as the cache does
    assert not retention.remove_one(wiring, kernel)
    assert kernel.path.exists()


def test_a_bisection_that_its_process_still_winds_down_stays(wiring: Wiring) -> None:
    with lock(wiring.settings.state_dir, "cancelled"):
        assert ("bisection", "cancelled") not in removable(wiring)
        with pytest.raises(RequestError, match="is running"):
            retention.to_remove(wiring, ["cancelled"])
    assert ("bisection", "cancelled") in removable(wiring)


def test_what_ended_by_a_person_just_now_stays_while_somebody_executes(wiring: Wiring) -> None:
    wiring.store.set_status("cancelled", "cancelled")  # now: its visit may go on
    with lock(wiring.settings.state_dir, QUEUE):
        for name in ("cancelled", "running"):
            with pytest.raises(RequestError, match=f"'{name}' is running"):
                retention.to_remove(wiring, [name])
        assert [one.name for one in retention.to_remove(wiring, ["done"])] == ["done"]
    with lock(wiring.settings.state_dir, "run of pipe-test on guest"):
        assert [one.name for one in retention.to_remove(wiring, ["cancelled"])] == ["cancelled"]


def test_what_a_worker_elsewhere_has_leased_stays(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """'rm' behind 'cancel' took records and files from under a trial that still went on."""
    monkeypatch.setattr(Wiring, "shared_coordinator", property(lambda wiring: wiring.coordinator))
    wiring.coordinator.register("e1", "box2")
    worker = Membership(wiring.coordinator, "e1", "box2")
    lease = worker.acquire_bisection("cancelled")
    assert lease is not None
    with pytest.raises(RequestError, match="is running: its last trial has not ended") as error:
        retention.to_remove(wiring, ["cancelled"])
    assert "again in a minute" in error.value.cure
    assert ("bisection", "cancelled") not in removable(wiring)
    assert [one.name for one in retention.to_remove(wiring, ["done"])] == ["done"]
    worker.release(lease)
    assert [one.name for one in retention.to_remove(wiring, ["cancelled"])] == ["cancelled"]


def test_what_was_cancelled_long_ago_goes_though_others_are_executed(wiring: Wiring) -> None:
    with lock(wiring.settings.state_dir, QUEUE):
        assert ("bisection", "cancelled") in removable(wiring)


def test_what_somebody_else_removed_meanwhile_is_no_error(wiring: Wiring) -> None:
    (kernel,) = [item for item in retention.find_removable(wiring, 90.0) if item.name == f"{4:064x}"]
    shutil.rmtree(kernel.path)
    assert not retention.remove_one(wiring, kernel)


def test_the_space_of_rows_is_given_back_and_counted_though_a_removal_fails(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def give_back(_: SqlStore) -> int:
        given.append(1000)
        return 1000

    monkeypatch.setattr(SqlStore, "give_back", give_back)
    done, cancelled = retention.to_remove(wiring, ["done", "cancelled"])
    assert retention.remove_all(wiring, [done])["freed_bytes"] == done.bytes + 1000
    monkeypatch.setattr(SqlStore, "remove", Mock(side_effect=InfrastructureError("the database is away")))
    with pytest.raises(InfrastructureError, match="is away"):
        retention.remove_all(wiring, [cancelled])
    assert len(given) == 2


@pytest.mark.parametrize("status", ["new", "running", "interrupted", "failed"])
def test_a_bisection_that_can_be_resumed_is_not_removed_by_name_either(wiring: Wiring, status: str) -> None:
    with pytest.raises(RequestError, match=f"{status}.*can be resumed") as error:
        retention.to_remove(wiring, ["done", status])
    assert "perfbisect cancel" in error.value.cure


def test_results_of_no_bisection_and_temporary_files_of_boots_go(wiring: Wiring) -> None:
    folder = wiring.settings.state_dir / "bisections"
    make(folder / "gone" / "report.txt")
    scratch = make(folder / "done" / "boots" / "boot-001" / "scratch.raw")
    assert ("boot files", "scratch.raw") not in removable(wiring), "it goes with its bisection"
    wiring.store.set_status("done", "done")
    needed = make(folder / "interrupted" / "boots" / "boot-001" / "scratch.raw")
    with lock(wiring.settings.state_dir, "done"):
        assert ("boot files", "scratch.raw") not in removable(wiring)
    assert {("results", "gone"), ("boot files", "scratch.raw")} <= removable(wiring)
    prune(wiring)
    assert not (folder / "gone").exists() and not scratch.exists()
    assert needed.exists()
    assert (scratch.parent / "console.log").exists()


def test_results_stay_where_no_state_file_says_whose_they_are(wiring: Wiring) -> None:
    for path in wiring.settings.state_dir.glob("perfbisect.sqlite*"):
        path.unlink()
    for path in (wiring.settings.state_dir / "bisections").iterdir():
        os.utime(path, (OLD, OLD))
    again = Wiring(wiring.settings)
    assert not [item for item in retention.find_removable(again, 90.0) if item.kind == "results"]
    assert not again.has_store


def test_logs_of_failed_builds_and_graphs_of_ranges_go(wiring: Wiring) -> None:
    cache = wiring.settings.cache_dir
    make(cache / "kernels" / "failed" / "abc.log")
    make(cache / "graphs" / "abc.graph")
    assert {("build log", "abc.log"), ("graph", "abc.graph")} <= removable(wiring)
    wiring.kernel_cache.failed_logs()[0].touch()
    (cache / "graphs" / "abc.graph").touch()
    assert {"abc.log", "abc.graph"}.isdisjoint(name for _, name in removable(wiring))


@pytest.mark.parametrize("moment", ["files", "records"])
def test_a_removal_that_was_killed_is_ended_by_the_next_one(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    (item,) = retention.to_remove(wiring, ["done"])
    with monkeypatch.context() as patched:
        if moment == "files":
            patched.setattr(shutil, "rmtree", killed)
        else:
            patched.setattr(SqlStore, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            retention.remove_one(wiring, item)
    again = Wiring(wiring.settings)
    assert again.store.status("done") == bisections.REMOVING
    with pytest.raises(RequestError, match="was removed"):
        find_culprit.resume(again, "done", Mock())
    os.utime(again.settings.state_dir / "bisections")
    prune(again)
    assert "done" not in {s.id for s in again.store.list()}
    assert {path.name for path in (again.settings.state_dir / "bisections").iterdir()} == {
        "new",
        "running",
        "interrupted",
        "failed",
    }


def test_a_request_whose_bisection_is_being_removed_begins_another_one(wiring: Wiring) -> None:
    lab = fake_bisection.a_lab()
    first = fake_bisection.begin(wiring.store, lab)
    assert fake_bisection.begin(wiring.store, lab).id == first.id
    wiring.store.set_status(first.id, bisections.REMOVING)
    assert fake_bisection.begin(wiring.store, lab).id == f"{first.id}-2"


def share(wiring: Wiring, folder: Path) -> tuple[Wiring, FolderArtefacts]:
    """Return the same with an artefact store: an old kernel and an old boot of each bisection, and others."""
    folder.mkdir()
    (folder / "file").write_text("x")
    store = FolderArtefacts(folder)
    for number, status in enumerate(("new", "done", "of-nobody")):
        for artefact in (Artefact("kernel", f"{4 * number:064x}"), boot_artefact(status, "boot-001")):
            path = folder / artefact.kind / artefact.key / store.put(artefact, folder / "file")
            for one in (path, path.parent):
                os.utime(one, (OLD, OLD))
    return Wiring(wiring.settings.model_copy(update={"artefacts": str(folder)})), store


def test_of_the_shared_folder_goes_what_no_bisection_needs(wiring: Wiring, tmp_path: Path) -> None:
    shared, store = share(wiring, tmp_path / "store")
    found = [item for item in retention.find_removable(shared, 90) if item.kind == "artefact"]
    assert {item.name for item in found} == {
        f"kernel {4:064x}",  # of a bisection that has ended
        f"kernel {8:064x}",  # of none
        "boot of-nobody@boot-001",
    }
    assert all(retention.remove_one(shared, item) for item in found)
    assert {str(kept.artefact) for kept in store.kept()} == {
        f"kernel {0:064x}",
        "boot new@boot-001",
        "boot done@boot-001",
    }


def test_of_the_shared_folder_nothing_goes_where_no_state_says_who_needs_it(
    wiring: Wiring, tmp_path: Path
) -> None:
    shared, _ = share(wiring, tmp_path / "store")
    elsewhere = Wiring(shared.settings.model_copy(update={"state_dir": tmp_path / "another"}))
    assert not [item for item in retention.find_removable(elsewhere, 90) if item.kind == "artefact"]
    assert not elsewhere.has_store


def test_a_link_goes_with_what_it_leads_to(wiring: Wiring, tmp_path: Path) -> None:
    """One that led nowhere was listed by each prune, and never removed."""
    graphs = make(wiring.settings.cache_dir / "graphs" / "old").parent
    (graphs / "nowhere").symlink_to("/none")
    (graphs / "used").symlink_to(make(tmp_path / "large-disk" / "used"))
    os.utime(graphs / "used")
    prune(wiring)
    assert [path.name for path in graphs.iterdir()] == ["used"]
    os.utime(graphs / "used", (OLD, OLD))
    prune(wiring)
    assert not list(graphs.iterdir()) and (tmp_path / "large-disk" / "used").exists()


def test_what_was_put_or_read_lately_stays_in_the_shared_folder(wiring: Wiring, tmp_path: Path) -> None:
    shared, store = share(wiring, tmp_path / "store")
    assert store.get(Artefact("kernel", f"{8:064x}"), tmp_path / "target")
    assert f"kernel {8:064x}" not in {item.name for item in retention.find_removable(shared, 90)}


def test_with_a_bisection_goes_what_its_boots_left_everywhere(wiring: Wiring, tmp_path: Path) -> None:
    shared, store = share(wiring, tmp_path / "store")
    (item,) = retention.to_remove(shared, ["done"])
    assert retention.remove_one(shared, item)
    assert not store.has(boot_artefact("done", "boot-001"))
    assert store.has(boot_artefact("new", "boot-001"))


def test_a_shared_folder_that_is_away_is_not_looked_at(wiring: Wiring, tmp_path: Path) -> None:
    away = Wiring(wiring.settings.model_copy(update={"artefacts": str(tmp_path / "nowhere")}))
    assert not [item for item in retention.find_removable(away, 90) if item.kind == "artefact"]
    (item,) = retention.to_remove(away, ["done"])
    assert retention.remove_one(away, item)


def test_on_a_full_disk_the_files_go_first(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could be removed: the database had no room for the word that it is being removed."""
    folder, set_status = wiring.bisection_folder("done"), SqlStore.set_status

    def full(store: SqlStore, bisection: str, status: str) -> bool:
        if folder.exists():
            raise RecordsFull("database or disk is full")
        return set_status(store, bisection, status)

    monkeypatch.setattr(SqlStore, "set_status", full)
    (item,) = retention.to_remove(wiring, ["done"])
    assert retention.remove_one(wiring, item)
    assert "done" not in {one.id for one in wiring.store.list()}
    (item,) = retention.to_remove(wiring, ["cancelled"])
    shutil.rmtree(item.path)
    folder.mkdir()
    with pytest.raises(RecordsFull):
        retention.remove_one(wiring, item)


def test_what_is_removed_on_a_full_disk_is_no_error_though_the_database_needs_room_to_shrink(
    wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rm` ended with exit code 3 and 'database or disk is full', and the bisection was gone."""

    def full(_: SqlStore) -> int:
        raise RecordsFull("database or disk is full")

    monkeypatch.setattr(SqlStore, "give_back", full)
    items = retention.to_remove(wiring, ["done"])
    made = retention.remove_all(wiring, items)
    assert [item["removed"] for item in made["items"]] == [True]
    assert made["freed_bytes"] == items[0].bytes
    assert "done" not in {one.id for one in wiring.store.list()}

"""Export and import: nothing is lost on the way, a damaged archive changes nothing."""

from __future__ import annotations

import io
import multiprocessing
import os
import shutil
import signal
import tarfile
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections, transfer
from bisector.app.load_report import find_bisection
from bisector.app.operations.foreign_bisection import import_foreign
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import lock
from bisector.errors import InfrastructureError, Interrupted, RequestError
from bisector.model.decisions import Decision
from bisector.model.records import Ran, Record
from bisector.model.stored_bisection import OPEN, TO_EXECUTE
from bisector.schemas.archive import exported
from bisector.schemas.database_url import DatabaseUrl
from bisector.schemas.settings import Settings
from tests.support import fake_bisection
from tests.support.fake_bisection import store_bisections
from tests.support.small_disk import fill, mounted


def at(folder: Path) -> Wiring:
    return Wiring(Settings(state_dir=folder / "state", cache_dir=folder / "cache"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    store_bisections(tmp_path / "here", monkeypatch)
    wiring = at(tmp_path / "here")
    boot = wiring.bisection_folder("fake-new") / "boots" / "boot-001"
    (boot / "payload").mkdir(parents=True)
    (boot / "console.log").write_text("Linux version\n")
    (boot / "payload" / "run.sh").write_text("#!/bin/sh\n")
    (boot / "payload" / "run.sh").chmod(0o755)
    (boot / "scratch.raw").write_bytes(b"large, and of no use")
    (boot / "outside").symlink_to("/etc/passwd")
    os.mkfifo(boot / "serial")
    return wiring


@pytest.fixture
def there(tmp_path: Path) -> Wiring:
    return at(tmp_path / "there")


def export(wiring: Wiring, to: Path, name: str = "fake-new") -> Path:
    transfer.export_bisection(wiring, find_bisection(wiring, name), to, lambda text: None)
    return to


def test_what_arrives_is_what_was_sent(here: Wiring, there: Wiring, tmp_path: Path) -> None:
    sent = find_bisection(here, "fake-new")
    got = transfer.import_bisection(there, export(here, tmp_path / "a.tar.gz"))
    assert there.store.load("fake-new") == got
    assert (got.id, got.created, got.request, got.graph) == (sent.id, sent.created, sent.request, sent.graph)
    assert got.status == "interrupted", "it was running, and its process is not here"
    for kind in ("records", "decisions"):
        ours, theirs = getattr(here.store, kind)("fake-new"), getattr(there.store, kind)("fake-new")
        assert [event for _, event in ours] == [event for _, event in theirs]
    folder = there.bisection_folder("fake-new")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    assert files == {"boots/boot-001/console.log", "boots/boot-001/payload/run.sh"}
    assert os.access(folder / "boots/boot-001/payload/run.sh", os.X_OK)
    assert not list(there.settings.state_dir.glob("import-*"))


@pytest.mark.parametrize("status", [*OPEN, "cancelled"])
def test_whatever_its_status_it_arrives(here: Wiring, there: Wiring, tmp_path: Path, status: str) -> None:
    here.store.set_status("fake-new", status)
    got = transfer.import_bisection(there, export(here, tmp_path / "a.tar.gz"))
    assert got.status == ("interrupted" if status in TO_EXECUTE else status)


@pytest.mark.parametrize(("status", "ends_here"), [("failed", True), ("cancelled", False)])
def test_the_end_of_what_had_ended_elsewhere_is_no_news_here(
    here: Wiring, there: Wiring, tmp_path: Path, status: str, ends_here: bool
) -> None:
    here.store.set_status("fake-new", status)
    stored = here.store.load("fake-new")
    transfer.export_bisection(here, stored, tmp_path / "x.tar.gz", lambda _: None)
    transfer.import_bisection(there, tmp_path / "x.tar.gz")
    there.store.set_status("fake-new", "cancelled")
    (known,) = there.store.list()
    assert known.ended_here is ends_here
    if not ends_here:
        assert known.action is not None
        assert (known.action.what, known.action.by) == ("imported", there.settings.owner)
        assert abs(known.action.at - there.coordinator.now()) < 60


def test_the_order_of_records_and_decisions_is_kept(here: Wiring, there: Wiring, tmp_path: Path) -> None:
    transfer.import_bisection(there, export(here, tmp_path / "a.tar.gz"))
    (decided, _), *_ = there.store.decisions("fake-new")
    assert all(number > decided for number, _ in there.store.records("fake-new"))


def test_a_search_goes_on_where_it_arrives(there: Wiring, tmp_path: Path) -> None:
    lab = fake_bisection.a_lab()
    begun, stop = at(tmp_path / "begun"), threading.Event()
    stored = fake_bisection.begin(begun.store, lab)
    measured: list[str] = []

    def stop_after_five_runs(event: object) -> None:
        measured.append(str(event))
        if len(begun.store.records(stored.id)) > 20:
            stop.set()
            services.stop.wait(10)  # whoever executes passes it on, within a fifth of a second

    services = fake_bisection.services(lab, begun.settings.state_dir, store=begun.store)
    with pytest.raises(Interrupted):
        bisections.run(stored, services, stop_after_five_runs, stop)
    before = begun.store.records(stored.id)
    assert sum(isinstance(record, Ran) for _, record in before) >= 5

    archive = export(begun, tmp_path / "a.tar.gz", stored.id)
    got = transfer.import_bisection(there, archive)
    services = fake_bisection.services(lab, there.settings.state_dir, store=there.store)
    conclusion = bisections.run(got, services, lambda event: None, threading.Event())
    assert [f.commits for f in conclusion.culprits] == [(fake_bisection.CULPRIT,)]
    after = [record for _, record in there.store.records(stored.id)]
    assert after[: len(before)] == [record for _, record in before], "what was measured is not measured again"


def test_one_that_is_ends_here_is_refused(here: Wiring, tmp_path: Path) -> None:
    archive = export(here, tmp_path / "a.tar.gz")
    before = here.store.records("fake-new")
    assert here.store.status("fake-new") == "running"
    error = _refused(here, archive)
    assert error.message == "a bisection 'fake-new' is here already (running)"
    assert "perfbisect cancel fake-new, then perfbisect rm fake-new" in error.cure, "rm alone is refused"
    here.store.set_status("fake-new", "cancelled")
    assert _refused(here, archive).cure == "'perfbisect rm fake-new' removes it"
    assert here.store.records("fake-new") == before
    assert (here.bisection_folder("fake-new") / "boots/boot-001/console.log").exists()


def test_one_that_runs_is_not_exported(here: Wiring, tmp_path: Path) -> None:
    with lock(here.settings.state_dir, "fake-new"), pytest.raises(RequestError, match="is running") as caught:
        export(here, tmp_path / "a.tar.gz")
    assert "resume" in caught.value.cure
    assert not (tmp_path / "a.tar.gz").exists()


def test_a_request_that_cannot_be_read_is_not_exported(here: Wiring, tmp_path: Path) -> None:
    here.database.execute("UPDATE bisections SET request = '[[['")
    with pytest.raises(InfrastructureError, match="the request of a stored bisection cannot be read"):
        export(here, tmp_path / "a.tar.gz")
    assert not (tmp_path / "a.tar.gz").exists()


def test_a_file_that_cannot_be_written_is_named(here: Wiring, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"no/a.tar.gz: cannot be written"):
        export(here, tmp_path / "no" / "a.tar.gz")


def _packed(to: Path, **documents: bytes) -> Path:
    with tarfile.open(to, "w:gz") as archive:
        for name, content in documents.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return to


@pytest.mark.parametrize("wrong", ["text", "empty archive", "cut", "escaping", "folder", "missing"])
def test_what_is_no_archive_of_ours_changes_nothing(
    here: Wiring, there: Wiring, tmp_path: Path, wrong: str
) -> None:
    path = export(here, tmp_path / "a.tar.gz")
    if wrong == "text":
        path.write_text("hello")
    elif wrong == "empty archive":
        _packed(path)
    elif wrong == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    elif wrong == "escaping":
        _packed(path, **{"..__..__escaped": b"x"})
    elif wrong == "folder":
        path = tmp_path
    else:
        path = tmp_path / "nothing"
    with pytest.raises(RequestError) as caught:
        transfer.import_bisection(there, path)
    assert caught.value.cure
    assert there.store.list() == []
    assert not list(there.settings.state_dir.glob("import-*"))
    assert not list(there.settings.state_dir.glob("bisections/*"))
    assert not (tmp_path / "escaped").exists()


def _refused(wiring: Wiring, path: Path) -> RequestError:
    with pytest.raises(RequestError) as caught:
        transfer.import_bisection(wiring, path)
    error = caught.value
    assert "import-" not in f"{error.message}{error.details}{error.cure}", "no folder that is gone"
    return error


def test_a_document_that_is_missing_or_wrong_is_named_with_its_archive(there: Wiring, tmp_path: Path) -> None:
    path = tmp_path / "other.tar.gz"
    other = _refused(there, _packed(path, README=b"x"))
    assert other.message == f"{path}: bisection.json is missing: not what 'perfbisect export' wrote"
    whole = {"bisection_json": b"{\n}", "graph_json": b"{}", "events_jsonl": b"x"}
    for name in exported.MAX_BYTES:
        lacks = {key: text for key, text in whole.items() if key.replace("_", ".") != name}
        assert _refused(there, _packed(path, **lacks)).message.startswith(f"{path}: {name} is missing")
    assert _refused(there, _packed(path, **whole)).message.startswith(f"{path}: bisection.json: ")
    clash = {"files__a": b"x", "files__a__b": b"x"}
    assert "files/a" in _refused(there, _packed(path, **clash)).details


@pytest.mark.parametrize("name", exported.MAX_BYTES)
def test_what_is_wrong_in_a_document_is_named_with_archive_and_line(
    here: Wiring, there: Wiring, tmp_path: Path, name: str
) -> None:
    path = export(here, tmp_path / "a.tar.gz")
    shutil.unpack_archive(path, tmp_path / "x")  # Debian 12's Python 3.11.2 has no filters of tarfile
    document = tmp_path / "x" / name
    document.write_text(document.read_text().replace(":", ": [", 1))
    with tarfile.open(path, "w:gz") as archive:
        for one in exported.MAX_BYTES:
            archive.add(tmp_path / "x" / one, one)
    assert _refused(there, path).message.startswith(f"{path}: {name}:")


def test_who_sent_an_archive_is_told_no_path_on_the_server(there: Wiring, tmp_path: Path) -> None:
    for content in ({"a": b"x"}, {"..__escaped": b"x"}):
        with pytest.raises(RequestError, match=r"^the archive") as caught:
            import_foreign(there, _packed(tmp_path / "content", **content))
        assert str(tmp_path) not in f"{caught.value.message}{caught.value.details}"


def test_what_is_no_file_is_told_as_what_it_is(there: Wiring, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    told = {
        tmp_path: "is a folder",
        tmp_path / "fifo": "is not a regular file",
        Path("/dev/null"): "is not a regular file",
        tmp_path / "nothing": "no such file",
        tmp_path / "file" / "x": "no such file",
        tmp_path / "loop": "cannot be read: Too many levels of symbolic links",
        tmp_path / ("n" * 300): "cannot be read: File name too long",
        tmp_path / "a\0b": "cannot be read: no file can have that name",
    }
    for path, wrong in told.items():
        with pytest.raises(RequestError) as caught:
            transfer.require_archive(path)
        assert caught.value.message.endswith(f": {wrong}")


def test_when_the_store_fails_nothing_is_half_there(
    here: Wiring, there: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = export(here, tmp_path / "a.tar.gz")
    added: list[str] = []
    insert = SqlStore._insert

    def full(store: SqlStore, bisection: str, event: Record | Decision, body: str) -> int:
        if len(added) == 3:
            raise InfrastructureError("disk full")
        added.append(body)
        return insert(store, bisection, event, body)

    monkeypatch.setattr(SqlStore, "_insert", full)
    with pytest.raises(InfrastructureError, match="disk full"):
        transfer.import_bisection(there, archive)
    assert there.store.list() == []
    assert not there.bisection_folder("fake-new").exists(), "on a full disk its files would stay"
    monkeypatch.undo()
    assert transfer.import_bisection(there, archive).id == "fake-new", "the second attempt succeeds"


def test_documents_are_bounded_before_they_are_unpacked(here: Wiring, there: Wiring, tmp_path: Path) -> None:
    archive = export(here, tmp_path / "a.tar.gz")
    for name in exported.MAX_BYTES:
        with pytest.raises(RequestError) as caught:
            transfer.import_bisection(there, archive, limits={**exported.MAX_BYTES, name: 10})
        assert f"'{name}' is larger than" in caught.value.details
        assert there.store.list() == [] and not list(there.settings.state_dir.glob("import-*"))


def test_what_a_server_is_sent_is_bounded_by_the_disk_of_its_state(
    here: Wiring, there: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.store.set_status("fake-new", "cancelled")
    archive, asked = export(here, tmp_path / "a.tar.gz"), list[Path]()

    def full(path: Path) -> SimpleNamespace:
        asked.append(path)
        return SimpleNamespace(free=100)

    monkeypatch.setattr("shutil.disk_usage", full)
    with pytest.raises(RequestError, match="not an archive that can be unpacked"):
        import_foreign(there, archive)
    assert asked == [there.settings.state_dir]
    monkeypatch.undo()
    given: list[object] = []
    monkeypatch.setattr(transfer, "import_bisection", lambda *arguments: given.extend(arguments))
    import_foreign(there, archive)
    assert given[-2] is exported.MAX_FOREIGN_BYTES


@pytest.mark.parametrize("full", ["temporary", "state"])
def test_a_full_disk_is_told_with_its_folder(
    here: Wiring, tmp_path: Path, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was 'this machine refuses: No space left on device', of any disk."""
    archive = export(here, tmp_path / "a.tar.gz")
    with mounted(tmp_path / full, 1) as folder:
        fill(folder)
        if full == "temporary":
            monkeypatch.setattr(tempfile, "tempdir", str(folder))
            with pytest.raises(InfrastructureError, match=f"cannot write into {folder}: No space") as caught:
                export(here, tmp_path / "b.tar.gz")
            assert "TMPDIR" in caught.value.cure
        else:
            there = Wiring(Settings(state_dir=folder, cache_dir=tmp_path))
            monkeypatch.setitem(vars(there), "store", here.store)  # a file of its own would have no room
            with pytest.raises(InfrastructureError, match=f"cannot write {folder}: No space"):
                transfer.import_bisection(there, archive)
        assert [path.name for path in folder.rglob("*") if path.is_file()] == ["filler"]
        assert not list(folder.glob("*import-*"))


def test_a_second_import_at_the_same_time_leaves_the_files_of_the_first(
    here: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removed them before it had its own in place; else it was 'Directory not empty'."""
    archive, create = export(here, tmp_path / "a.tar.gz"), SqlStore.create
    told: list[str] = []

    def second() -> None:
        try:
            transfer.import_bisection(at(tmp_path / "there"), archive)
        except RequestError as error:
            told.append(error.message)

    thread = threading.Thread(target=second)

    def slow(*given: Any) -> None:
        thread.start()
        thread.join(2)
        assert (at(tmp_path / "there").bisection_folder("fake-new") / "boots").exists()
        monkeypatch.undo()
        create(*given)

    monkeypatch.setattr(SqlStore, "create", slow)
    transfer.import_bisection(at(tmp_path / "there"), archive)
    thread.join()
    assert told == ["a bisection 'fake-new' is here already (interrupted)"]
    assert (at(tmp_path / "there").bisection_folder("fake-new") / "boots").exists()


def test_what_a_killed_export_wrote_is_removed_by_the_next(
    here: Wiring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed for good, hidden beside the archive and as large, with the records in /tmp."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "sent").mkdir()

    def die(text: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = multiprocessing.get_context("fork").Process(
        target=transfer.export_bisection,
        args=(here, find_bisection(here, "fake-new"), tmp_path / "sent" / "a[1].tar.gz", die),
    )
    child.start()
    child.join()
    assert len([*(tmp_path / "sent").iterdir(), *(tmp_path / "temporary").iterdir()]) == 2
    archive = export(here, tmp_path / "sent" / "a[1].tar.gz")
    assert [*(tmp_path / "sent").iterdir(), *(tmp_path / "temporary").iterdir()] == [archive]


def test_a_host_without_a_state_folder_takes_one_into_its_database_server(
    here: Wiring, there: Wiring, tmp_path: Path, database_url: DatabaseUrl
) -> None:
    """Only a state file had made that folder."""
    wiring = Wiring(there.settings.model_copy(update={"database": database_url}))
    transfer.import_bisection(wiring, export(here, tmp_path / "a.tar.gz"))
    assert (wiring.bisection_folder("fake-new") / "boots" / "boot-001" / "console.log").exists()

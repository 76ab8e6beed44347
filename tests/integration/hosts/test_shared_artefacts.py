"""Two hosts of a lab, played by two state folders on one database and one shared folder."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.errors import SourceFailed
from bisector.interfaces.cli import run
from bisector.ports import Job, Kernel, Progress, Session
from bisector.schemas.database_url import DatabaseUrl
from bisector.testing.fake_testbed import FakeTestbed
from bisector.testing.fakes import FakeSource
from tests.support.command_line import START, Bench, said
from tests.support.small_disk import fill, mounted


@pytest.fixture
def lab(bench: Bench, database_url: DatabaseUrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared folder of two hosts; boots leave a console, as those of guests do."""
    monkeypatch.setenv("PERFBISECT_DATABASE", database_url.secret)
    monkeypatch.setenv("PERFBISECT_ARTEFACTS", str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    real = FakeTestbed.boot

    def boot(bed: Any, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> Session:
        session = real(bed, kernel, job, folder, progress)
        (folder / "console.log").write_text(f"Linux version {kernel.release}\n")
        session.facts = replace(session.facts, console=folder / "console.log")
        return session

    monkeypatch.setattr(FakeTestbed, "boot", boot)
    return tmp_path / "shared"


def on_host(name: str, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be another host from now on; return its state folder."""
    bench.state = tmp_path / name / "state"
    monkeypatch.setenv("PERFBISECT_STATE_DIR", str(bench.state))
    monkeypatch.setenv("PERFBISECT_CACHE_DIR", str(tmp_path / name / "cache"))
    return bench.state


def consoles(capsys: pytest.CaptureFixture[str]) -> list[Path]:
    report = json.loads(said(capsys, "report", "--json"))
    return [Path(trial["note"]["console"]) for trial in report["trials"]]


def test_a_report_on_one_host_shows_the_consoles_of_another(
    lab: Path,
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = on_host("a", bench, tmp_path, monkeypatch)
    assert run(START) == 0
    capsys.readouterr()
    there = consoles(capsys)
    measured_on = json.loads(said(capsys, "report", "--json"))["host"]
    assert there and all(path.is_relative_to(first) for path in there)
    second = on_host("b", bench, tmp_path, monkeypatch)
    here = consoles(capsys)
    assert len(here) == len(there)
    assert all(path.is_relative_to(second) for path in here)
    monkeypatch.setattr(FakeSource, "infos", _no_repository)
    report = json.loads(said(capsys, "report", "--json"))
    assert report["host"] == measured_on and "host CPU" in measured_on
    assert report["findings"][0]["commits"][0]["subject"], "without the repository, too"
    assert [path.read_text() for path in here] == [path.read_text() for path in there]
    said(capsys, "export", "--output", str(tmp_path / "all.tar.gz"))
    with tarfile.open(tmp_path / "all.tar.gz") as archive:
        assert sum(name.endswith("console.log") for name in archive.getnames()) == len(there)


def _no_repository(*_: object, **__: object) -> None:
    raise SourceFailed("there is no repository on this host")


def test_a_full_shared_folder_costs_the_search_a_warning(
    bench: Bench,
    lab: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with mounted(tmp_path / "disk", 2) as disk:
        monkeypatch.setenv("PERFBISECT_ARTEFACTS", str(disk))
        on_host("a", bench, tmp_path, monkeypatch)
        fill(disk)
        assert run(START) == 0
        assert capsys.readouterr().err.count("No space left on device") == 1
        on_host("b", bench, tmp_path, monkeypatch)
        assert not any(path.is_relative_to(tmp_path / "b") for path in consoles(capsys))


def test_a_shared_folder_that_goes_in_the_middle_is_not_waited_for(
    bench: Bench,
    lab: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = FakeTestbed.boot

    def boot(bed: Any, *arguments: Any) -> Session:
        if lab.exists():
            lab.rename(tmp_path / "unmounted")
        return real(bed, *arguments)

    on_host("a", bench, tmp_path, monkeypatch)
    monkeypatch.setattr(FakeTestbed, "boot", boot)
    assert run(START) == 0
    assert capsys.readouterr().err.count("is not there") == 1
    assert not lab.exists(), "nothing is put where nothing is mounted"


def test_a_worker_whose_shared_folder_is_missing_at_the_start_is_refused(
    bench: Bench,
    lab: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab.rmdir()
    on_host("a", bench, tmp_path, monkeypatch)
    assert run(["worker", "--until-idle"]) == 3
    error = capsys.readouterr().err
    assert "is not there" in error and "mount it" in error

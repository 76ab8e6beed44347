"""What another host measured: records name this host's files, fetched from the artefact store."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app.artefacts import shared_files
from bisector.app.artefacts.local_files import with_local_files
from bisector.app.wiring import Wiring
from bisector.model.facts import MonitorResult
from bisector.model.records import Booted, Built, Left, Ran, Record, RunFailed
from bisector.schemas.settings import Settings


def host(folder: Path, name: str) -> Wiring:
    (folder / "store").mkdir(exist_ok=True)
    made = folder / name
    return Wiring(
        Settings(state_dir=made / "state", cache_dir=made / "cache", artefacts=str(folder / "store"))
    )


def measure(wiring: Wiring, boot: str) -> list[Record]:
    """Return the records of a boot of the bisection 'x' whose files are there."""
    folder = wiring.bisection_folder("x") / "boots" / boot
    (folder / "monitors" / "perf").mkdir(parents=True)
    for name in ("console.log", "run-000.out", "monitors/perf/data"):
        (folder / name).write_text(f"{name} of {boot}")
    monitor = MonitorResult("perf", str(folder / "monitors" / "perf"))
    return [
        Booted(boot, 1, "t", True, 1.0, 1.0, console=str(folder / "console.log")),
        Ran(boot, 0, {"a": 1.0}, 1.0, 1.0, raw=str(folder / "run-000.out")),
        Left(boot, monitors=(monitor,)),
    ]


def numbered(records: list[Record]) -> list[tuple[int, Record]]:
    return list(enumerate(records, start=1))


def test_files_of_another_host_are_fetched_and_named_as_they_are_here(tmp_path: Path) -> None:
    first, second = host(tmp_path, "a"), host(tmp_path, "b")
    records = [Built(1, True, 1.0), *measure(first, "boot-001"), *measure(first, "boot-002")]
    for boot in ("boot-001", "boot-002"):
        shared_files.keep_boot(first, first.bisection_folder("x") / "boots" / boot)
    shared_files.finish(first)
    found = [record for _, record in with_local_files(second, "x", numbered(records))]
    here = second.bisection_folder("x") / "boots" / "boot-002"
    booted, ran, left = found[4:]
    assert isinstance(booted, Booted) and isinstance(ran, Ran) and isinstance(left, Left)
    assert booted.console == str(here / "console.log")
    assert Path(booted.console).read_text() == "console.log of boot-002"
    assert ran.raw == str(here / "run-000.out")
    assert left.monitors[0].folder == str(here / "monitors" / "perf")
    assert found[0] == records[0]
    assert [r for _, r in with_local_files(first, "x", numbered(records))] == records, "there nothing changes"


def test_what_cannot_be_had_keeps_its_path(tmp_path: Path) -> None:
    first, second = host(tmp_path, "a"), host(tmp_path, "b")
    records = measure(first, "boot-001")
    assert [r for _, r in with_local_files(second, "x", numbered(records))] == records
    without = Wiring(Settings(state_dir=tmp_path / "c"))
    assert [r for _, r in with_local_files(without, "x", numbered(records))] == records
    (tmp_path / "store").rmdir()
    said: list[str] = []
    away = host(tmp_path, "d")
    away.note = said.append
    (tmp_path / "store").rmdir()
    assert [r for _, r in with_local_files(away, "x", numbered([*records, *measure(first, "boot-002")]))][
        :3
    ] == records
    assert len(said) == 1 and "is not there" in said[0]


def test_a_failed_boot_is_fetched_too(tmp_path: Path) -> None:
    first, second = host(tmp_path, "a"), host(tmp_path, "b")
    booted = measure(first, "boot-001")[0]
    shared_files.keep_boot(first, first.bisection_folder("x") / "boots" / "boot-001")
    shared_files.finish(first)
    (_, found), _ = with_local_files(second, "x", numbered([booted, RunFailed("boot-001", "it crashed")]))
    assert isinstance(found, Booted) and Path(found.console).is_relative_to(tmp_path / "b")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../etc/passwd",
        f"/x/boots/boot-001/{'../' * 40}etc/passwd",
        "/x/boots/boot-002/console.log",
        "boot-001",
        "",
    ],
)
def test_a_path_that_leads_elsewhere_is_not_followed(tmp_path: Path, path: str) -> None:
    wiring = host(tmp_path, "a")
    measure(wiring, "boot-001")
    record = Booted("boot-001", 1, "t", True, 1.0, 1.0, console=path)
    assert with_local_files(wiring, "x", [(1, record)]) == [(1, record)]


@pytest.mark.parametrize("boot", ["..", "../../y", "/tmp", "", "a/b"])
def test_the_name_of_a_boot_is_no_path(tmp_path: Path, boot: str) -> None:
    wiring = host(tmp_path, "a")
    records: list[Record] = [Booted(boot, 1, "t", True, 1.0, 1.0, console="/x/c"), Left(boot)]
    assert with_local_files(wiring, "x", numbered(records)) == numbered(records)
    assert not (tmp_path / "a" / "state").exists()

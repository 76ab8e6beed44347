"""When a guest on another host begins to boot. Real guests: tests/integration/test_libvirt_guest.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from bisector.adapters.guest import guest_launch
from bisector.adapters.guest.domain_xml import Guest, OnSerial
from bisector.adapters.guest.guest_launch import GuestBoot, launch, start_on_disk
from bisector.adapters.guest.rootfs import GuestImage
from bisector.ports import Counting, Job


def test_what_is_sent_to_the_host_takes_nothing_of_a_boots_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]

    def put(path: Path) -> Path:
        now[0] += 1000.0  # a slow line
        return Path("/there") / path.name

    def start(*_: object) -> None:
        now[0] += 7.0

    host = SimpleNamespace(user="root")
    far: Any = SimpleNamespace(
        put=put, host=host, port=1, there=2, folder=PurePosixPath("/f"), console=Path("c")
    )
    monkeypatch.setattr(guest_launch, "awake_seconds", lambda: now[0])
    monkeypatch.setattr(guest_launch, "domain_xml", lambda _: "")
    variables: Any = SimpleNamespace(memory_mb=512, cpus=1, cmdline="")
    kernel: Any = SimpleNamespace(image=tmp_path / "bzImage", release="6.1")
    hypervisor: Any = SimpleNamespace(uri="", start=start)
    job = Job("w", tmp_path, ("run",), ())
    machine: Any = None
    one = GuestBoot(
        *(variables, "p-", "wall", True, hypervisor, kernel, machine, job, tmp_path, lambda _: None),
        far=far,
    )
    image = cast("GuestImage", SimpleNamespace(disk=tmp_path / "disk.raw"))
    guest, port = start_on_disk(one, image, tmp_path / "console.log", None)
    assert (guest.started, port) == (2100.0, 1)
    fixed = replace(job, environment={"kaslr": "off"})
    variables.cmdline = "quiet"
    assert (one.cmdline, replace(one, job=fixed).cmdline) == ("quiet", "quiet nokaslr")


@pytest.mark.parametrize(
    ("counting", "varied"),
    [
        (None, False),
        ("fresh", True),
        (Counting(("instructions", "loads"), profile=True), False),
        (Counting(("instructions", "LL-misses"), needed=("instructions",)), False),
        (Counting(("LL-misses",)), False),
        (Counting(profile=True, cpu="skylake", models=True), False),
        (Counting(("loads", "LL-misses"), needed=("LL-misses",)), True),
        (Counting(("branch-misses",), needed=("branch-misses",)), True),
        (Counting(("instructions", "modelled-cycles"), needed=("instructions", "modelled-cycles")), True),
    ],
)
def test_boots_differ_where_a_model_decides_or_the_workload_asks_for_it_and_nowhere_else(
    counting: Counting | Literal["fresh"] | None,
    varied: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guests: list[Guest] = []

    def keep(guest: Guest) -> str:
        guests.append(guest)
        return ""

    monkeypatch.setattr(guest_launch, "domain_xml", keep)
    variables: Any = SimpleNamespace(memory_mb=512, cpus=1, cmdline="")
    kernel: Any = SimpleNamespace(image=tmp_path / "bzImage", release="6.1")
    hypervisor: Any = SimpleNamespace(uri="", start=lambda *_: None)
    job = Job("w", tmp_path, ("run",), ())
    asked = {"environment": {"seed": "fresh"}} if counting == "fresh" else {"counting": counting}
    job = replace(job, **asked)
    machine: Any = None
    for _ in range(3):
        one = GuestBoot(
            *(variables, "p-", "instructions", False, hypervisor, kernel, machine, job, tmp_path, print)
        )
        launch(one, OnSerial(tmp_path / "initramfs", tmp_path / "serial"), tmp_path / "console.log")
    seeds = {guest.seed for guest in guests}
    assert len(seeds) == 3 if varied else seeds == {1}

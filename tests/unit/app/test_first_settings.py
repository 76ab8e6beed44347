"""Answers become files that are read as they were meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.app import first_settings
from bisector.app.first_settings import Address, Answers, parse_address
from bisector.errors import RequestError

LOCAL = Answers(None, "libvirt", (), "kexec", None, None, None)


def test_the_defaults_are_guests_and_a_builder_here(own_folders: Path, tmp_path: Path) -> None:
    wiring = first_settings.write(first_settings.files(tmp_path, LOCAL))
    (testbed,), (builder,) = wiring.lab.testbeds, wiring.lab.builders
    assert (testbed.name, testbed.variables.kind) == ("guest", "libvirt")
    assert builder.connection.local
    assert wiring.settings.repo is None


def test_machines_and_folders_are_those_that_were_named(
    own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATE", "CACHE"):
        monkeypatch.delenv(f"PERFBISECT_{name}_DIR", raising=False)
    odd = tmp_path / 'a "quoted" \\ Ünïcode # folder'
    answers = Answers(
        odd,
        "ssh",
        (Address("box1", "root"), Address("10.0.0.2", "", 2222)),
        "grub",
        Address("big-builder", "kim"),
        odd / "state",
        odd / "cache",
        odd / "key",
    )
    wiring = first_settings.write(first_settings.files(tmp_path, answers))
    assert (wiring.settings.repo, wiring.settings.state_dir) == (odd, odd / "state")
    assert wiring.settings.cache_dir == odd / "cache"
    found = [(t.connection.address, t.connection.user, t.connection.port) for t in wiring.lab.testbeds]
    assert found == [("box1", "root", 22), ("10.0.0.2", "root", 2222)]
    assert {t.variables.boot_method for t in wiring.lab.testbeds} == {"grub"}
    (builder,) = wiring.lab.builders
    assert (builder.connection.address, builder.connection.user) == ("big-builder", "kim")
    assert {one.connection.key for one in wiring.lab.testbeds} == {builder.connection.key} == {odd / "key"}


@pytest.mark.parametrize(
    "text", ["", "a b", "root@", "box:0", "box:65536", "box:x", "-o", "a@b@c", "[::1]", "x" * 300]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="not the address"):
        parse_address(text)


def test_an_address_has_a_user_and_a_port_if_they_are_written() -> None:
    assert parse_address("box") == Address("box", "", 22)
    assert parse_address("box:65535").port == 65535
    assert parse_address("kim@box.example:2222") == Address("box.example", "kim", 2222)

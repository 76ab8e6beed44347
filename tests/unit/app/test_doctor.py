"""Which checks this machine and those of the lab get, and what their answers become."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.system import host_packages, host_requirements
from bisector.adapters.system.host_requirements import Check
from bisector.app import doctor
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.schemas.lab import Lab
from bisector.schemas.settings import Settings

HOST, GUEST = Check("git", found="2.39"), Check("KVM", found="works")


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    made = Wiring(Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state"))
    made.lab = Lab(tmp_path / "lab.yml", (), ())
    return made


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, object]]:
    """What was asked, of the host and of guests; libvirt is there."""
    preflight = pytest.importorskip("bisector.adapters.guest.preflight", exc_type=ImportError)
    calls: list[tuple[str, object]] = []

    def checks(cache: Path) -> list[Check]:
        calls.append(("host", cache))
        return [HOST]

    def guest_checks(cache: Path, progress: object, *, probe: bool, shared: bool) -> list[Check]:
        calls.append(("guests", (cache, probe, shared)))
        return [GUEST]

    monkeypatch.setattr(host_requirements, "checks", checks)
    monkeypatch.setattr(host_requirements, "has_libvirt", lambda: True)
    monkeypatch.setattr(preflight, "guest_checks", guest_checks)
    monkeypatch.setattr(preflight, "prepare_guests", lambda cache, progress: calls.append(("prepare", cache)))
    return calls


@pytest.mark.parametrize(("probe", "store"), [(False, None), (True, "/srv/perfbisect")])
def test_a_host_with_libvirt_is_checked_for_guests_too(
    wiring: Wiring, asked: list[tuple[str, object]], probe: bool, store: str | None
) -> None:
    wiring.settings = wiring.settings.model_copy(update={"artefacts": store})
    found = doctor.check_host(wiring, print, probe=probe)
    state, cache = wiring.settings.state_dir, wiring.settings.cache_dir
    assert [(check.name, check.found) for check in found] == [
        *[("git", HOST.found), ("state folder", str(state)), ("cache folder", str(cache))],
        ("KVM", GUEST.found),
    ]
    assert asked == [("host", cache), ("guests", (cache, probe, store is not None))]


def test_without_libvirt_guests_are_neither_checked_nor_prepared(
    wiring: Wiring, asked: list[tuple[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_requirements, "has_libvirt", lambda: False)
    assert GUEST not in doctor.check_host(wiring, print)
    with pytest.raises(InfrastructureError, match="libvirt-python is not in this Python") as caught:
        doctor.prepare_guests(wiring, print)
    assert caught.value.cure == "perfbisect doctor --fix"
    assert [name for name, _ in asked] == ["host"]


def test_packages_are_installed_after_the_commands_were_told(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(host_packages, "missing", lambda: ["apt-get install gcc"])
    monkeypatch.setattr(host_packages, "install_missing", lambda: done.append("installed"))
    assert doctor.missing_packages() == ["apt-get install gcc"]
    assert done == []
    doctor.install_packages(done.append)
    assert done == ["running: apt-get install gcc", "installed"]


def test_guests_are_prepared_in_the_cache(wiring: Wiring, asked: list[tuple[str, object]]) -> None:
    doctor.prepare_guests(wiring, print)
    assert asked == [("prepare", wiring.settings.cache_dir)]

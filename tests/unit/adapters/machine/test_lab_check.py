"""Whether machines of a lab are usable: each kind has its own check, and errors name the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.machine import lab_check
from bisector.adapters.system.host_requirements import Check
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.lab import lab_from_inventory


def checks_of(testbed: dict[str, Any], builder: dict[str, Any]) -> dict[str, Callable[[], None]]:
    listing = {
        "_meta": {"hostvars": {"bed": testbed, "maker": builder}},
        "testbeds": {"hosts": ["bed"]},
        "builders": {"hosts": ["maker"]},
    }
    return dict(lab_check.lab_checks(lab_from_inventory(listing, Path("/lab/hosts.yml")), Path("/cache")))


@pytest.fixture
def host_lacks_libvirt(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Check("git", found="2.39", needed="building kernels"),
        Check("libvirtd", wrong="not installed", cure="make deps", needed="guests"),
    ]
    monkeypatch.setattr(lab_check, "checks", lambda _: found)


LOCAL = {"ansible_connection": "local"}


@pytest.mark.usefixtures("host_lacks_libvirt")
def test_this_machine_is_checked_for_what_it_is_used_for_only() -> None:
    found = checks_of({"perfbisect_kind": "libvirt"}, LOCAL)
    assert list(found) == ["testbed bed", "builder maker"]
    with pytest.raises(InfrastructureError, match="libvirtd: not installed") as error:
        found["testbed bed"]()
    assert error.value.cure == "make deps"
    found["builder maker"]()  # libvirt is not needed for building


@pytest.mark.usefixtures("host_lacks_libvirt")
def test_a_local_testbed_needs_nothing() -> None:
    checks_of({"perfbisect_kind": "local"}, LOCAL)["testbed bed"]()


def test_a_builder_over_ssh_needs_a_key() -> None:
    with pytest.raises(RequestError, match="the builder 'maker' has no SSH key") as error:
        checks_of({"perfbisect_kind": "local"}, {"ansible_host": "10.0.0.9"})["builder maker"]()
    assert "ansible_ssh_private_key_file" in error.value.cure


@pytest.mark.parametrize("machine", ["testbed bed", "builder maker"])
def test_a_machine_that_cannot_be_reached_is_infrastructure(tmp_path: Path, machine: str) -> None:
    key = tmp_path / "key"
    key.write_text("no key")
    far = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_private_key_file": str(key)}
    with pytest.raises(InfrastructureError):
        checks_of({"perfbisect_kind": "ssh", **far}, far)[machine]()

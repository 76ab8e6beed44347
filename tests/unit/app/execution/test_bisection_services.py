"""The services of a bisection: what is known of a guest's user space before it boots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.guest import rootfs
from bisector.app.execution.bisection_services import guest_image
from bisector.app.wiring import Wiring
from bisector.schemas.settings import Settings
from bisector.schemas.workload.workload import load_workload


@pytest.mark.parametrize(
    ("recipe", "kind", "image"),
    [
        ("x86_64-guest", "libvirt", "5" * 64),
        (
            "x86_64-old",
            "libvirt",
            "",
        ),  # the boot itself tells; an image that lies around must not overrule it
        ("x86_64-guest", "ssh", ""),
    ],
)
def test_only_guests_with_a_disk_have_an_image(
    monkeypatch: pytest.MonkeyPatch, recipe: str, kind: str, image: str
) -> None:
    monkeypatch.setattr(
        rootfs.GuestImages, "present", lambda _: SimpleNamespace(checksum="5" * 64), raising=True
    )
    lab: Any = SimpleNamespace(testbed=lambda _: SimpleNamespace(variables=SimpleNamespace(kind=kind)))
    accepted: Any = SimpleNamespace(request=SimpleNamespace(recipe=recipe), testbeds=("guest",))
    monkeypatch.setattr(Wiring, "lab", lab)
    assert guest_image(Wiring(Settings()), accepted, load_workload("pipe-test"), ["guest"]) == image

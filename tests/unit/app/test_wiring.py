"""What is known of a guest's user space before it boots: nothing, where no disk image is used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.guest import rootfs
from bisector.app import wiring
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
    assert wiring._guest_image(Settings(), lab, accepted, load_workload("pipe-test")) == image

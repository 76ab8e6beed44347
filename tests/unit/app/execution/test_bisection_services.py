"""The services of a bisection: what is known of a guest before it boots, and of a machine that was left."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.agent.workload_sources import source_checksum
from bisector.adapters.guest import rootfs
from bisector.adapters.machine.ssh_testbed import SSHTestbed
from bisector.app.execution import bisection_services
from bisector.app.execution.bisection_services import guest_image
from bisector.app.execution.function_weights import FunctionWeights
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import Settings
from bisector.schemas.workload.command_workload import command_workload
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


@pytest.mark.parametrize(
    ("searches", "kernels", "first_parent", "told"),
    [
        (True, (), False, True),
        (True, (), True, False),  # a merge has the changes of its whole branch there
        (True, ("6.1",), False, False),
        (False, (), False, False),
    ],
)
def test_functions_tell_of_commits_only_where_each_has_changes_of_its_own(
    searches: bool, kernels: tuple[str, ...], first_parent: bool, told: bool
) -> None:
    request = SimpleNamespace(repo="/linux", first_parent=first_parent)
    accepted: Any = SimpleNamespace(searches=searches, kernels=kernels, request=request)
    found = bisection_services._functions(accepted, threading.Event())
    assert isinstance(found, FunctionWeights) == told


def test_a_machine_that_another_process_has_used_and_not_given_back_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def wiring() -> Wiring:
        """Each is of another process."""
        variables = {
            "perfbisect_kind": "ssh",
            "perfbisect_boot_method": "kexec",
            "ansible_host": "10.0.0.1",
            "ansible_ssh_private_key_file": "/key",
        }
        listing = {"_meta": {"hostvars": {"box": variables}}, "testbeds": {"hosts": ["box"]}}
        made = Wiring(Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state"))
        made.lab = lab_from_inventory(listing, tmp_path / "lab.yml")
        return made

    for name in ("_fetch_missing", "check_unchanged", "source_of", "_builders", "planner_of", "guest_image"):
        monkeypatch.setattr(bisection_services, name, lambda *_: None)
    request = SimpleNamespace(recipe="x86_64-guest", apply=(), workload="pipe-test")
    accepted: Any = SimpleNamespace(
        request=request, kernels="", testbeds=("box",), searches=False, attempt=None, fixes=(), clock="wall"
    )
    monkeypatch.setattr(bisection_services, "workload_of", lambda _: load_workload("pipe-test"))
    services = bisection_services.bisection_services(wiring(), accepted, threading.Event())
    assert not services.left("box")
    used: Any = wiring().testbed("box")
    machine: SSHTestbed = used._testbed
    machine._note.begin()
    assert services.left("box")


@pytest.mark.parametrize("left", ["nothing", "an empty folder"])
def test_a_repository_that_is_not_mounted_is_told_without_an_option_that_resume_has_not(
    tmp_path: Path, left: str
) -> None:
    repo = tmp_path / "linux"
    if left != "nothing":
        repo.mkdir()
    request = SimpleNamespace(repo=str(repo))
    accepted: Any = SimpleNamespace(request=request, good="a" * 40, bad="b" * 40, fixes=(), attempt=None)
    with pytest.raises(InfrastructureError, match=f"repository is no longer in {repo}") as caught:
        bisection_services._fetch_missing(accepted)
    assert "there again" in caught.value.cure and "--repo" not in caught.value.cure


@pytest.mark.parametrize(
    ("metric", "known", "refused"),
    [("rate", "now", False), ("rate", "earlier", True), (None, "earlier", False)],
)
def test_a_bisection_whose_numbers_were_read_in_other_units_does_not_go_on(
    metric: str | None, known: str, refused: bool
) -> None:
    workload = command_workload("./bench", metric, higher_is_better=False)
    known = source_checksum(workload) if known == "now" else "0"
    accepted: Any = SimpleNamespace(request=SimpleNamespace(metric=metric), workload_sum=known, version="0.1")
    with pytest.raises(RequestError, match="'rate' was read otherwise") if refused else nullcontext():
        bisection_services._require_same_reading(accepted, workload)


@pytest.mark.parametrize(("begun", "now"), [("instructions", "wall"), ("wall", "instructions")])
def test_a_guest_that_has_got_kvm_meanwhile_or_lost_it_measures_no_more_of_a_bisection(
    begun: str, now: str
) -> None:
    """Its user joined the group 'kvm': 'resume' went on, and compared seconds of two clocks."""
    accepted: Any = SimpleNamespace(clock=begun)
    bisection_services._require_same_clock(accepted, {"a": begun})
    with pytest.raises(RequestError, match=f"'b' measures with the clock '{now}' now") as caught:
        bisection_services._require_same_clock(accepted, {"a": begun, "b": now})
    assert f"perfbisect_clock: {begun}" in caught.value.cure

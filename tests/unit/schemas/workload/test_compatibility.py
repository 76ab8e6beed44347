"""What a workload needs of a testbed, against what the inventory says that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.connection import Connection
from bisector.schemas.kernel.recipe import choose_recipe, load_recipe
from bisector.schemas.kernel.release import Release
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables
from bisector.schemas.workload.command_workload import command_workload
from bisector.schemas.workload.compatibility import (
    check_recipe,
    check_testbed,
    missing_resources,
    recipe_serves,
)
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.workload import Workload, load_workload

METRIC = {"name": "real", "unit": "s", "better": "lower", "threshold": "5%", "decides": True}


def workload(**requires: object) -> Workload:
    data = {"name": "toy", "description": "d", "metrics": [METRIC], "files": ["a"], "run": ["a"]}
    return Workload(Path("toy"), WorkloadManifest.model_validate({**data, "requires": requires}))


def machine(kind: str, **variables: object) -> TestbedSpec:
    known = TestbedVariables.model_validate({"kind": kind, **variables})
    return TestbedSpec("bed", known, Connection("bed", 22, "root", None, False))


@pytest.mark.parametrize(
    ("requires", "bed", "missing"),
    [
        ({}, machine("libvirt"), []),
        ({"cpus": 2}, machine("libvirt"), ["2 CPUs: it has 1"]),
        ({"cpus": 2}, machine("libvirt", cpus=2), []),
        ({"cpus": 64}, machine("ssh"), []),  # the inventory does not say how many it has
        ({"block_device": "1G"}, machine("libvirt"), []),  # each guest gets a disk
        (
            {"block_device": "1G"},
            machine("ssh"),
            ["a block device of 1G that it may overwrite: the inventory names none"],
        ),
        ({"block_device": "1G"}, machine("ssh", block_device="/dev/disk/by-id/x"), []),
    ],
)
def test_what_is_missing(requires: dict[str, object], bed: TestbedSpec, missing: list[str]) -> None:
    assert [one.description for one in missing_resources(workload(**requires), bed)] == missing


def test_this_machine_is_refused_since_it_boots_no_kernels() -> None:
    with pytest.raises(RequestError, match="'bed' is this machine, and boots no kernels"):
        check_testbed(workload(), machine("local"))


def test_a_testbed_that_lacks_something_is_refused_with_the_cure() -> None:
    check_testbed(workload(), machine("ssh"))
    with pytest.raises(RequestError, match="'toy' cannot run on the testbed 'bed'") as caught:
        check_testbed(workload(block_device="1G", cpus=2), machine("ssh"))
    assert caught.value.details.startswith("it needs a block device of 1G")
    assert "perfbisect_block_device: /dev/disk/by-id/..." in caught.value.cure


@pytest.mark.parametrize(
    ("name", "bed", "recipe"),
    [
        ("pipe-test", machine("libvirt"), "x86_64-small"),
        ("sched-tick/small", machine("libvirt"), "x86_64-small"),
        ("pipe-test", machine("ssh"), "x86_64-guest"),  # a machine is reached over its network
        ("hackbench", machine("libvirt"), "x86_64-guest"),  # a Debian package
        ("hackbench/small", machine("libvirt"), "x86_64-small"),
        ("db-aio", machine("libvirt"), "x86_64-small"),  # RAM disks
        ("db-aio/fio", machine("libvirt"), "x86_64-guest"),  # a disk
        ("cfs-bandwidth", machine("libvirt"), "x86_64-guest"),  # bash
        ("cfs-bandwidth/small", machine("libvirt"), "x86_64-small"),
        ("sched-tick", machine("libvirt"), "x86_64-small"),
    ],
)
def test_the_smallest_recipe_that_serves_is_chosen(name: str, bed: TestbedSpec, recipe: str) -> None:
    load = load_workload(name)
    fragments = load.manifest.requires.fragments
    serving = lambda one: recipe_serves(load, one, [bed])  # noqa: E731
    assert choose_recipe([Release(6, 1)], fragments, serves=serving) == recipe
    assert choose_recipe([Release(6, 1)], fragments) == "x86_64-guest"  # no workload: one for all
    assert choose_recipe([Release(2, 6, 24)], fragments, serves=serving) == "x86_64-old"


def test_a_workload_watched_by_perf_gets_a_recipe_that_has_it() -> None:
    watched = load_workload("pipe-test").with_monitors(["perf-stat"])
    assert not recipe_serves(watched, load_recipe("x86_64-small"), [machine("libvirt")])
    assert recipe_serves(watched, load_recipe("x86_64-guest"), [machine("libvirt")])


@pytest.mark.parametrize(
    ("requires", "details"),
    [
        ({}, "it runs on the user space debian ('userspaces' in its manifest); theirs is initramfs"),
        ({"packages": ["fio"]}, "it needs Debian packages (fio); an initramfs has none"),
        ({"block_device": "1G"}, "it needs a block device of 1G; they have no driver for one"),
    ],
)
def test_a_recipe_that_cannot_serve_is_refused_with_every_reason(
    requires: dict[str, object], details: str
) -> None:
    with pytest.raises(RequestError, match="cannot run on kernels of the recipe 'x86_64-small'") as caught:
        check_recipe(workload(**requires), load_recipe("x86_64-small"))
    assert details in caught.value.details.splitlines()
    check_recipe(workload(**requires), load_recipe("x86_64-guest"))


def test_who_named_no_recipe_is_not_told_to_leave_it_out() -> None:
    """--run on v2.6.29: 'leave out --recipe', and a key of a manifest that a command does not have."""
    command = command_workload("true", None, higher_is_better=False)
    with pytest.raises(RequestError) as caught:
        check_recipe(command, load_recipe("x86_64-old"), named=False)
    assert "--recipe" not in caught.value.cure
    assert "no recipe for commits of this age serves it" in caught.value.cure
    assert (
        caught.value.details == "it runs on the user space debian (a command of --run); theirs is initramfs"
    )
    with pytest.raises(RequestError) as caught:
        check_recipe(command, load_recipe("x86_64-small"))
    assert caught.value.cure.startswith("leave out --recipe")


def test_an_initramfs_with_a_driver_for_disks_serves_a_block_device() -> None:
    load = workload(block_device="1G").manifest
    able = Workload(Path("toy"), load.model_copy(update={"userspaces": ("initramfs",)}))
    check_recipe(able, load_recipe("x86_64-old"))
    with pytest.raises(RequestError, match="'x86_64-small'"):
        check_recipe(able, load_recipe("x86_64-small"))

"""What a workload needs of a testbed, against what the inventory says that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.errors import RequestError
from bisector.schemas.connection import Connection
from bisector.schemas.lab import TestbedSpec, TestbedVariables
from bisector.schemas.workload.compatibility import check_testbed, missing_resources
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.workload import Workload

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


def test_a_testbed_that_lacks_something_is_refused_with_the_cure() -> None:
    check_testbed(workload(), machine("local"))
    with pytest.raises(RequestError, match="'toy' cannot run on the testbed 'bed'") as caught:
        check_testbed(workload(block_device="1G", cpus=2), machine("local"))
    assert caught.value.details.startswith("it needs a block device of 1G")
    assert "perfbisect_block_device: /dev/disk/by-id/..." in caught.value.cure

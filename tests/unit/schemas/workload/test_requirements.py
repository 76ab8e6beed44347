"""What a workload requires of kernels and testbeds: said in its manifest, looked at, and refused in words."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path

import pytest

from bisector.adapters.agent import payload, scratch_disk
from bisector.adapters.agent.session import AgentSession
from bisector.adapters.machine.local_testbed import LocalTestbed, running_kernel
from bisector.app.wiring import Wiring
from bisector.app.workload_check import check_workload
from bisector.errors import RequestError, WorkloadFailed
from bisector.schemas.connection import Connection
from bisector.schemas.kernel.build_plan import load_plan
from bisector.schemas.kernel.recipe import (
    DEFAULT_RECIPE,
    load_recipe,
    resolve_recipe_name,
    with_default_recipe,
    with_fragments,
)
from bisector.schemas.kernel.release import Release
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables
from bisector.schemas.settings import Settings
from bisector.schemas.workload.workload import Workload, load_workload
from tests.support.toy_kernel import write_recipes

MANIFEST = """\
name: toy
description: A toy.
metrics:
  - {name: real, unit: s, better: lower, threshold: 5%, decides: true}
files: [toy.sh]
run: [toy.sh]
"""


def workload(folder: Path, requires: str = "", run: str = "run: [toy.sh]") -> Workload:
    place = folder / "toy"
    place.mkdir(parents=True)
    more = f"requires: {requires}\n" if requires else ""
    (place / "workload.yaml").write_text(MANIFEST.replace("run: [toy.sh]", run) + more)
    script = place / "toy.sh"
    script.write_text('#!/bin/sh\necho "real: 1 s"\necho "$1 $PERFBISECT_BLOCK_DEVICE" >&2\n')
    script.chmod(0o755)
    return load_workload(str(place))


def machine(name: str, **variables: object) -> TestbedSpec:
    return TestbedSpec(
        name, TestbedVariables.model_validate(variables), Connection(name, 22, "root", None, False)
    )


GUEST = machine("guest", kind="libvirt")
BOX = machine("box", kind="ssh", boot_method="kexec")


# --- the manifest -------------------------------------------------------------------------------------------


def test_sizes_and_fragments_are_understood(tmp_path: Path) -> None:
    found = workload(tmp_path, "{kernel: [block], block_device: 512M, cgroup: v2, cpus: 2}").manifest.requires
    assert found.block_device_bytes == 512 << 20
    assert found.fragments == ("block", "cgroup"), "control groups bring the kernel's part with them"


@pytest.mark.parametrize(
    ("requires", "run", "words"),
    [
        ("{block_device: 1}", "run: [toy.sh]", "write the size of the device as '512M' or '1G'"),
        ("{block_device: 1 GB}", "run: [toy.sh]", "write the size of the device as '512M' or '1G'"),
        ("{block_device: 0G}", "run: [toy.sh]", "write the size of the device as '512M' or '1G'"),
        ("{cgroup: v3}", "run: [toy.sh]", "'v1', 'v2' or 'any'"),
        ("{cpus: 0}", "run: [toy.sh]", "must be from 1 to 8,192"),
        ("{kernels: [block]}", "run: [toy.sh]", "did you mean 'kernel'?"),
        ("", "run: [toy.sh, '{block_device}']", "'{block_device}' needs its size"),
        ("{block_device: 1G}", "run: [toy.sh]\nparameters: {block_device: 3}", "is not a parameter"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, requires: str, run: str, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        workload(tmp_path, requires, run)
    assert words in caught.value.message


# --- kernels ------------------------------------------------------------------------------------------------


def test_fragments_are_required_and_in_any_order_the_same_recipe() -> None:
    name = with_fragments(with_fragments(DEFAULT_RECIPE, ["cgroup"]), ["block", "cgroup"])
    assert name == "x86_64-guest+block+cgroup"
    plain, more = load_recipe(DEFAULT_RECIPE), load_recipe(name)
    assert more.name == name
    assert more.manifest.required == (*plain.manifest.required, "block", "cgroup")
    status = {option.name: option.status for option in more.options}
    assert (status["BLK_DEV_RAM"], status["CGROUPS"]) == ("required", "required"), "it was wanted only"
    assert len(status) == len(more.options), "no option twice"
    assert "BLK_DEV_RAM" not in {option.name for option in plain.options}


def test_kernels_of_other_workloads_keep_their_key() -> None:
    """A change to this digest means that every kernel in everybody's cache is built again."""
    digest = load_plan(DEFAULT_RECIPE, Release(6, 1), "x").digest()
    assert digest == load_plan(with_fragments(DEFAULT_RECIPE, ()), Release(6, 1), "x").digest()
    assert digest != load_plan(with_fragments(DEFAULT_RECIPE, ["block"]), Release(6, 1), "x").digest()


def test_old_kernels_are_not_blamed_for_what_came_later() -> None:
    plan = load_plan("x86_64-old+block+cgroup", Release(2, 6, 24), "x")
    assert "CONFIG_BLK_DEV_RAM=y" in plan.required and "CONFIG_EXT2_FS=y" in plan.required
    assert "SCHED_AUTOGROUP" not in plan.required


def test_the_choice_of_a_recipe_keeps_the_fragments(tmp_path: Path) -> None:
    assert resolve_recipe_name("auto+block", [Release(6, 1)]) == "x86_64-guest+block"
    assert resolve_recipe_name("auto+block", [Release(2, 6, 24)]) == "x86_64-old+block"
    assert with_default_recipe("auto+block") == "x86_64-guest+block"
    with pytest.raises(RequestError, match=r"recipe 'toy\+sped': there is no fragment 'sped'; did you mean"):
        load_recipe("toy+sped", write_recipes(tmp_path / "kernels"))


# --- testbeds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"block_device": "sdb"}, "a path below /dev"),
        ({"kind": "libvirt", "block_device": "/dev/sdb"}, "gets a disk of its own"),
    ],
)
def test_devices_that_a_lab_cannot_name(variables: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TestbedVariables.model_validate(variables)


def test_a_fragment_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r":\d+: key 'requires.kernel.0': .*did you mean 'block'\?"):
        workload(tmp_path, "{kernel: [blok]}")


def test_checking_a_workload_asks_the_lab(tmp_path: Path) -> None:
    toy = workload(tmp_path, "{block_device: 1G, kernel: [block]}")
    wiring = Wiring(Settings(lock_dir=tmp_path / "locks"))
    found = {finding.what: finding for finding in check_workload(wiring, toy, [BOX])}
    assert (found["testbed box"].state, found["kernels"].state) == ("no", "note")
    assert found["run"].state == "note" and "not run here" in found["run"].words
    both = {finding.what: finding.state for finding in check_workload(wiring, toy, [GUEST, BOX])}
    assert (both["testbed guest"], both["testbed box"]) == ("ok", "note"), "one testbed is enough"


# --- devices ------------------------------------------------------------------------------------------------


def test_this_machine_gives_no_device_that_was_not_named(tmp_path: Path) -> None:
    job = payload.workload_job(workload(tmp_path, "{block_device: 1G}"), tmp_path / "job")
    with pytest.raises(RequestError, match="none of this machine is named for it"):
        LocalTestbed().boot(running_kernel(), job, tmp_path, lambda _: None)
    with pytest.raises(RequestError, match="it is not a block device"):
        LocalTestbed("local", "/dev/null").boot(running_kernel(), job, tmp_path, lambda _: None)


# --- the runner, which looks again where the workload runs --------------------------------------------------


def runner(job_folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(job_folder / payload.RUNNER), payload.PLAN],
        cwd=job_folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_runner_refuses_before_anything_runs(tmp_path: Path) -> None:
    toy = workload(tmp_path, "{block_device: 1G}", "run: [toy.sh, '{block_device}']")
    job = payload.workload_job(toy, tmp_path / "job")
    assert job.needs.block_device == 1 << 30
    assert job.run == (payload.RUNNER, payload.PLAN)
    none = runner(job.payload)
    assert (none.returncode, none.stdout) == (69, "")
    assert none.stderr == "perfbisect-runner: this testbed names no block device\n"
    wrong = runner(job.payload, PERFBISECT_BLOCK_DEVICE="/dev/null")
    assert "/dev/null is not a block device" in wrong.stderr
    many = payload.workload_job(workload(tmp_path / "many", "{cpus: 4096}"), tmp_path / "many-job")
    assert "4096 CPUs are needed" in runner(many.payload).stderr


def test_the_path_of_the_device_reaches_the_workload(tmp_path: Path) -> None:
    toy = workload(tmp_path, "{block_device: 1G}", "run: [toy.sh, 'at={block_device}']")
    job = payload.workload_job(toy, tmp_path / "job")
    folder = job.payload
    (folder / "perfbisect-setup.done").touch()  # looked at in the first run: then it is in our own use
    done = runner(folder, PERFBISECT_BLOCK_DEVICE="/dev/vdb")
    assert (done.stdout, done.stderr) == ("real: 1 s\n", "at=/dev/vdb /dev/vdb\n")
    command = payload.agent_command(scratch_disk.with_scratch_disk(job, "/dev/vdb"))
    assert "PERFBISECT_BLOCK_DEVICE=/dev/vdb" in command


def test_what_is_lacking_is_the_reason_of_the_failure(tmp_path: Path) -> None:
    job = payload.workload_job(workload(tmp_path, "{cpus: 4096}"), tmp_path / "job")
    session = LocalTestbed().boot(running_kernel(), dataclasses.replace(job), tmp_path, lambda _: None)
    assert isinstance(session, AgentSession)
    try:
        with pytest.raises(WorkloadFailed, match="'toy' cannot run here: 4096 CPUs are needed"):
            session.run(0)
    finally:
        session.leave()

"""A real kernel and real guests for tests: built once, then taken from perfbisect's own cache.

The kernel is the base of the demo's history, which the end-to-end test builds as well.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.guest.libvirt_testbed import LibvirtTestbed
from bisector.ports import BuildOrder, Kernel
from bisector.resources import resource
from bisector.schemas.connection import Connection
from bisector.schemas.lab import TestbedSpec
from bisector.schemas.machine.testbed_variables import TestbedVariables
from tests.support import demo_history
from tests.support.demo_history import CACHE

INVENTORY = resource("playbooks") / "inventory" / "laptop.yml"
NAME = "guest"
"""Of the testbed; it has to be in the inventory's group 'testbeds'."""


@functools.cache
def kernel(kernels: Path | None = None) -> Kernel:
    """Return a kernel for guests; skips only where this machine's archive has no kernel source.

    kernels: folder of recipes, by default the shipped one.
    """
    demo = demo_history.prepare()
    base = subprocess.run(
        ["git", "-C", str(demo), "rev-parse", "rt-00^{commit}"], capture_output=True, text=True, check=True
    )
    builder = KernelBuilder(demo, CACHE, Ansible(resource("playbooks"), INVENTORY), kernels=kernels)
    return builder.build(BuildOrder(base.stdout.strip(), "x86_64-guest"), lambda _: None)


def kernel_without_disk(folder: Path) -> Kernel:
    """Return the same kernel with initramfs support, to be started as an old one is.

    folder: of this test. What compiles anew is what depends on that one option: a minute on two cores.
    """
    kernels = folder / "kernels"
    shutil.copytree(resource("kernels"), kernels)
    with (kernels / "configs" / "guest.config").open("a", encoding="utf-8") as fragment:
        fragment.write("\n# The user space of old kernels.\nCONFIG_BLK_DEV_INITRD=y\n")
    recipe = kernels / "recipes" / "x86_64-guest.toml"
    recipe.write_text(f'userspace = "initramfs"\n{recipe.read_text(encoding="utf-8")}', encoding="utf-8")
    return kernel(kernels)


def testbed(state: Path, **variables: Any) -> LibvirtTestbed:
    """Return a testbed of guests; variables: those of the lab without their prefix."""
    spec = TestbedSpec(
        NAME,
        TestbedVariables(kind="libvirt", **{"clock": "instructions", **variables}),
        Connection(NAME, 22, "root", None, False),
    )
    return LibvirtTestbed(spec, Ansible(resource("playbooks"), INVENTORY), CACHE, state)


def with_build_id(original: Kernel, build_id: str) -> Kernel:
    """Return the same image under a wrong id."""
    return replace(original, build_id=build_id)

"""A real kernel and real guests for tests: built once, then taken from perfbisect's own cache.

The kernel is the base of the demo's history, which the end-to-end test builds as well.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from bisector.adapters.ansible import Ansible
from bisector.adapters.kernel_builder import KernelBuilder
from bisector.adapters.libvirt_testbed import LibvirtTestbed
from bisector.ports import BuildOrder, Kernel
from bisector.resources import resource
from bisector.spec.lab import Reach, TestbedSpec, TestbedVariables

CACHE = Path(os.environ.get("PERFBISECT_CACHE_DIR") or platformdirs.user_cache_dir("perfbisect"))
INVENTORY = resource("playbooks") / "inventory" / "laptop.yml"
NAME = "guest"
"""Of the testbed; it has to be in the inventory's group 'testbeds'."""


@functools.cache
def kernel() -> Kernel:
    """Return a kernel for guests; skips only where this machine's archive has no kernel source."""
    demo = CACHE / "demo" / "linux"
    script = resource("kernels") / "demo" / "prepare-history"
    done = subprocess.run(
        [sys.executable, str(script), str(demo)], capture_output=True, text=True, check=False
    )
    if done.returncode == 3:
        pytest.skip(f"no kernel source to be had: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stdout + done.stderr
    base = subprocess.run(
        ["git", "-C", str(demo), "rev-parse", "rt-00^{commit}"], capture_output=True, text=True, check=True
    )
    builder = KernelBuilder(demo, CACHE, Ansible(resource("playbooks"), INVENTORY))
    return builder.build(BuildOrder(base.stdout.strip(), "x86_64-guest"), lambda _: None)


def testbed(state: Path, **variables: Any) -> LibvirtTestbed:
    """Return a testbed of guests; variables: those of the lab without their prefix."""
    spec = TestbedSpec(
        NAME,
        TestbedVariables(kind="libvirt", **{"clock": "instructions", **variables}),
        Reach(NAME, 22, "root", None, False),
    )
    return LibvirtTestbed(spec, Ansible(resource("playbooks"), INVENTORY), CACHE, state)


def with_build_id(original: Kernel, build_id: str) -> Kernel:
    """Return the same image under a wrong id."""
    return replace(original, build_id=build_id)

"""Configurations from a file, and the modules that they bring: built, packed, part of what a kernel is."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.ports import BuildOrder
from bisector.resources import resource
from tests.support.toy_kernel import KCONFIG, MAKEFILE, RECIPE, ToyHistory, tools_missing, write_recipes

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

MODULAR = (
    MAKEFILE
    + r"""
modules: $(O)/vmlinux
	@echo "  LD [M]  kernel/driver.ko"
	@$(CC) -O2 -ffreestanding -c -o $(O)/kernel/driver.ko $(srctree)/kernel/driver.c
modules_install:
	@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/6.1.0-toy/kernel
	@cp $(O)/kernel/driver.ko $(INSTALL_MOD_PATH)/lib/modules/6.1.0-toy/kernel/
	@echo kernel/driver.ko: >$(INSTALL_MOD_PATH)/lib/modules/6.1.0-toy/modules.dep
	@ln -s $(srctree) $(INSTALL_MOD_PATH)/lib/modules/6.1.0-toy/source
"""
)
BASE = "CONFIG_MODULES=y\nCONFIG_DRIVER=m\nCONFIG_OF_ANOTHER_RELEASE=y\n"
INVENTORY = "all: {children: {builders: {hosts: {here: {ansible_connection: local}}}}}\n"
DRIVER = "int driver(void) { return 1; }\n"


def test_a_modular_configuration_gives_a_kernel_with_its_modules(tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    kconfig = f"{KCONFIG}config MODULES\nconfig DRIVER\n"
    first = history.commit({"Makefile": MODULAR, "Kconfig": kconfig, "kernel/driver.c": DRIVER}, "a driver")
    second = history.commit({"kernel/driver.c": DRIVER.replace("1", "2")}, "another one")
    kernels = write_recipes(tmp_path / "kernels")
    (kernels / "configs" / "mine.config").write_text(BASE)
    recipe = f'base = "mine.config"\nrest = "default"\nload = ["driver"]\n{RECIPE}'
    (kernels / "recipes" / "toy.toml").write_text(recipe)
    (tmp_path / "lab.yml").write_text(INVENTORY)
    ansible = Ansible(resource("playbooks"), tmp_path / "lab.yml")
    builder = KernelBuilder(history.path, tmp_path / "cache", ansible, kernels=kernels)
    one, two = (builder.build(BuildOrder(sha, "toy"), lambda _: None) for sha in (first, second))
    assert one.options["DRIVER"] == "m"
    assert one.options["TOY"] == "y", "fragments have the last word"
    assert one.load == ("driver",)
    assert one.modules is not None
    with tarfile.open(one.modules) as archive:
        names = {member.name for member in archive if not member.isdir()}
    assert names == {"lib/modules/6.1.0-toy/kernel/driver.ko", "lib/modules/6.1.0-toy/modules.dep"}
    assert one.build_id == two.build_id, "the image is the same"
    assert one.binary != two.binary, "and yet they are two kernels"

"""A toy kernel tree with the build interface of the real one, and a small git history of it.

It answers to `make O=... tinyconfig | allnoconfig | olddefconfig | bzImage`, honours KCONFIG_ALLCONFIG, has
a merge_config.sh, and really compiles and links a few C files, so that what compilers say is real too. It is
not Linux and boots nowhere.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.ports import BuildOrder
from bisector.resources import resource

MAKEFILE = r"""VERSION = 6
srctree := $(CURDIR)
O ?= $(CURDIR)
CC ?= gcc
objects := $(O)/init/main.o $(O)/kernel/work.o

tinyconfig:
	@mkdir -p $(O)
	@KCONFIG_ALLCONFIG= $(srctree)/scripts/conf $(srctree)/Kconfig >$(O)/.config
allnoconfig:
	@$(srctree)/scripts/conf $(srctree)/Kconfig >$(O)/.config.new
	@mv $(O)/.config.new $(O)/.config
olddefconfig:
	@test -e $(O)/.config

$(O)/include/config/kernel.release:
	@mkdir -p $(@D)
	@echo "6.1.0-toy$(LOCALVERSION)" >$@

$(O)/%.o: %.c $(O)/.config
	@mkdir -p $(@D)
	@echo "  CC      $*.o"
	@$(CC) -O2 -ffreestanding -fno-pie $(KCFLAGS) -c -o $@ $<
	@echo 'source_$*.o := $(srctree)/$<' >$(@D)/.$(@F).cmd

$(O)/vmlinux: $(objects)
	@echo "  LD      vmlinux"
	@echo link >>$(O)/links
	@$(CC) -nostdlib -static -no-pie -Wl,--build-id=sha1 -o $@ $(objects)

bzImage: $(O)/vmlinux $(O)/include/config/kernel.release
	@mkdir -p $(O)/arch/x86/boot
	@objcopy -S $(O)/vmlinux $(O)/arch/x86/boot/bzImage
.PHONY: tinyconfig allnoconfig olddefconfig bzImage
"""

CONF = r"""#!/bin/sh
# Grants what the file KCONFIG_ALLCONFIG asks for and this tree's Kconfig knows.
for name in $(sed -n 's/^config //p' "$1"); do
    line=$(grep -E "^(CONFIG_$name=|# CONFIG_$name is )" "${KCONFIG_ALLCONFIG:-/dev/null}" | tail -n 1)
    echo "${line:-# CONFIG_$name is not set}"
done
"""

MERGE = r"""#!/bin/sh
# -m -O folder base fragment: the last word on an option counts.
[ "$1" = -m ] && [ "$2" = -O ] || exit 1
cat "$4" "$5" >"$3/.config"
"""

MAIN = "extern int work(int); void _start(void) { for (;;) work(1); }\n"
WORK = "int work(int x) { return x * 3; }\n"
KCONFIG = "config TOY\nconfig SPEED\n"

BASE: Mapping[str, str] = {
    "Makefile": MAKEFILE,
    "Kconfig": KCONFIG,
    "Kbuild": "# objects are listed in the Makefile\n",
    "scripts/conf": CONF,
    "scripts/kconfig/merge_config.sh": MERGE,
    "init/main.c": MAIN,
    "kernel/work.c": WORK,
    "Documentation/toy.rst": "A toy.\n",
}

BUILDERS = """all:
  children:
    builders:
      hosts:
        here:
          ansible_connection: local
"""
"""The head of an inventory whose builders are this machine and what follows."""

RECIPE = """summary = "the toy kernel of the tests"
arch = "x86_64"
required = ["toy"]
wanted = ["speed"]
layouts = ["-falign-functions=64"]
"""


@dataclass(frozen=True, slots=True)
class ToyHistory:
    """A git repository of toy kernels. Every commit changes some files of the one before."""

    path: Path

    @classmethod
    def create(cls, path: Path) -> ToyHistory:
        path.mkdir(parents=True)
        history = cls(path)
        history.git("init", "--quiet", "--initial-branch=main")
        history.commit(BASE, "base")
        return history

    def commit(self, files: Mapping[str, str | None], message: str) -> str:
        """Write (or with None remove) files, commit all, return the commit's id."""
        for name, text in files.items():
            target = self.path / name
            if text is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            if text.startswith("#!"):
                target.chmod(0o755)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(self.path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_recipes(folder: Path, required: str = "CONFIG_TOY=y\n", wanted: str = "CONFIG_SPEED=y\n") -> Path:
    """Make a `kernels` folder with one recipe, 'toy'."""
    (folder / "recipes").mkdir(parents=True)
    (folder / "configs").mkdir()
    (folder / "recipes" / "toy.toml").write_text(RECIPE)
    (folder / "configs" / "toy.config").write_text(f"# What makes it a toy.\n{required}")
    (folder / "configs" / "speed.config").write_text(f"# Nice to have.\n{wanted}")
    return folder


def tools_missing() -> str:
    """Name what a toy build needs and this machine lacks, or an empty string."""
    needed = ("git", "make", "gcc", "ld", "ccache", "bc", "flex", "bison", "perl", "objcopy")
    return " ".join(tool for tool in needed if shutil.which(tool) is None)


BUILD_INVENTORY = (
    BUILDERS
    + """\
        far:
          ansible_connection: local
          perfbisect_shares_files: false
          perfbisect_folder: {folder}
"""
)
"""Two builders: one shares the files of this machine, one does not."""


class BuildLab:
    """A toy history, a toy recipe, and builders over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.history = ToyHistory.create(root / "repo")
        self.base = self.history.git("rev-parse", "HEAD").strip()
        self.kernels = write_recipes(root / "kernels")
        self.inventory = root / "lab.yml"
        self.inventory.write_text(BUILD_INVENTORY.format(folder=root / "far"))
        self.progress: list[str] = []

    def change(self, files: Mapping[str, str | None], message: str) -> str:
        """Make a commit on top of the base, whatever other tests have made."""
        self.history.git("checkout", "--quiet", "--force", "--detach", self.base)
        return self.history.commit(files, message)

    def builder(self, host: str = "here", cache: Path | None = None) -> KernelBuilder:
        ansible = Ansible(resource("playbooks"), self.inventory)
        return KernelBuilder(
            self.history.path, cache or self.root / "cache", ansible, host=host, kernels=self.kernels
        )

    def order(self, sha: str, **more: object) -> BuildOrder:
        return BuildOrder(sha, "toy", **more)  # type: ignore[arg-type]

    def links(self, folder: Path) -> int:
        """How often the toy kernel has been linked: how many builds really took place."""
        file = folder / "builder" / "out" / "toy-0" / "links"
        return len(file.read_text().splitlines()) if file.exists() else 0

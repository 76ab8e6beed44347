"""Toolchains that come as archives: fetched, believed with their checksum, tried by compiling."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.build.probe import WantedToolchain, probe_builder
from bisector.errors import InfrastructureError, RequestError
from bisector.ports import BuildOrder
from bisector.resources import resource
from bisector.schemas.kernel.toolchain import Toolchain, load_toolchains
from tests.support.toy_kernel import RECIPE, ToyHistory, tools_missing, write_recipes

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")

FILE = "toy/gcc-7-toy.tar.gz"
GCC = """#!/bin/sh
case " $* " in *" --version "*) echo "gcc-7 (of the archive) 7.0.0"; exit ;; esac
exec gcc "$@"
"""
ROW = """[[toolchain]]
name = "boxed"
compiler = "gcc-7"
archive = {{ file = "{file}", sha256 = "{sum}", bin = "gcc-7-toy/bin" }}
why = "a test of boxes"
"""
INVENTORY = "all: {children: {builders: {hosts: {here: {ansible_connection: local}}}}}\n"


class Boxed:
    """A mirror with one archive, a toolchain row for it, a toy kernel whose recipe wants it."""

    def __init__(self, root: Path, script: str = GCC) -> None:
        self.root, self.mirror = root, root / "mirror"
        self.archive = self.mirror / FILE
        self.archive.parent.mkdir(parents=True)
        with tarfile.open(self.archive, "w:gz") as archive:
            info = tarfile.TarInfo("gcc-7-toy/bin/gcc-7")
            info.size, info.mode = len(script), 0o755
            archive.addfile(info, io.BytesIO(script.encode()))
        self.kernels = write_recipes(root / "kernels")
        (self.kernels / "recipes" / "toy.toml").write_text(f'toolchain = "boxed"\n{RECIPE}')
        self.row(hashlib.sha256(self.archive.read_bytes()).hexdigest())
        (root / "lab.yml").write_text(INVENTORY)
        self.ansible = Ansible(resource("playbooks"), root / "lab.yml")

    def row(self, checksum: str) -> Toolchain:
        (self.kernels / "toolchains.toml").write_text(ROW.format(file=FILE, sum=checksum))
        return load_toolchains(self.kernels).toolchain[0]

    def builder(self, mirror: str | None) -> KernelBuilder:
        history = self.root / "repo"
        repo = history if history.exists() else ToyHistory.create(history).path
        return KernelBuilder(repo, self.root / "cache", self.ansible, kernels=self.kernels, mirror=mirror)


def quiet(_: str) -> None:
    """Progress that nobody wants to see."""


def test_a_kernel_is_built_by_the_compiler_of_an_archive_that_is_fetched_once(tmp_path: Path) -> None:
    box = Boxed(tmp_path)
    builder = box.builder(f"file://{box.mirror}")
    kernel = builder.build(BuildOrder("HEAD", "toy"), quiet)
    assert kernel.toolchain.startswith("gcc-7 (of the archive) 7.0.0; GNU ld")
    toolchains = list((tmp_path / "cache" / "builder" / "toolchains").iterdir())
    assert [folder.name for folder in toolchains] == [hashlib.sha256(box.archive.read_bytes()).hexdigest()]
    box.archive.unlink()
    assert box.builder(f"file://{box.mirror}").build(BuildOrder("HEAD", "toy"), quiet).cached


def test_an_archive_that_is_not_what_its_row_says_is_refused(tmp_path: Path) -> None:
    box = Boxed(tmp_path)
    wanted = WantedToolchain(box.row("0" * 64), f"file://{box.mirror}")
    with pytest.raises(
        InfrastructureError, match=f"the archive {FILE} is not what the toolchain 'boxed'"
    ) as e:
        probe_builder(box.ansible, "here", tmp_path / "cache", wanted, quiet)
    assert "kernels/toolchains.toml: the row 'boxed', every release" in e.value.details
    assert not list((tmp_path / "cache" / "builder" / "toolchains").glob("0*"))


def test_a_mirror_must_be_named_and_must_have_it(tmp_path: Path) -> None:
    box = Boxed(tmp_path)
    with pytest.raises(RequestError, match="no mirror is configured") as unnamed:
        box.builder(None).build(BuildOrder("HEAD", "toy"), quiet)
    assert "PERFBISECT_TOOLCHAIN_MIRROR" in unnamed.value.cure
    box.archive.unlink()
    with pytest.raises(InfrastructureError, match="'boxed' cannot be put on the builder 'here'") as gone:
        box.builder(f"file://{box.mirror}").build(BuildOrder("HEAD", "toy"), quiet)
    assert FILE in gone.value.details


def test_a_compiler_that_does_not_compile_is_found_before_any_kernel(tmp_path: Path) -> None:
    broken = GCC.replace('exec gcc "$@"', 'echo "gcc-7: cannot execute cc1" >&2; exit 1')
    box = Boxed(tmp_path, broken)
    with pytest.raises(InfrastructureError, match="'boxed' does not work on the builder 'here'") as error:
        box.builder(f"file://{box.mirror}").build(BuildOrder("HEAD", "toy"), quiet)
    assert "cannot execute cc1" in error.value.details


def test_a_missing_compiler_names_its_package_and_the_command(tmp_path: Path) -> None:
    box = Boxed(tmp_path)
    row = Toolchain(name="old", compiler="gcc-99", package="gcc-99 binutils-99")
    with pytest.raises(InfrastructureError, match="the builder 'here' lacks: gcc-99") as error:
        probe_builder(box.ansible, "here", tmp_path / "cache", WantedToolchain(row), quiet)
    assert "install --no-install-recommends gcc-99 binutils-99" in error.value.cure
    assert "kernel check A..B --install" in error.value.cure
    cross = row.model_copy(update={"cross": "x-"})
    assert WantedToolchain(cross).packages(["x-ld", "bison", "tuxmake"]) == ["gcc-99", "binutils-99", "bison"]

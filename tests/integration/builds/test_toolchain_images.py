"""Toolchains in container images: pulled, tried, and kernels compiled in them, by podman itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.build.probe import WantedToolchain, probe_builder
from bisector.errors import BuildFailed, InfrastructureError
from bisector.ports import BuildOrder
from bisector.resources import resource
from bisector.schemas.kernel.toolchain import Toolchain
from tests.support import container_image
from tests.support.toy_kernel import BUILDERS, RECIPE, ToyHistory, tools_missing, write_recipes

_MISSING = [*tools_missing(), *container_image.tools_missing()]
pytestmark = pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {_MISSING}")

ROW = """[[toolchain]]
name = "boxed"
compiler = "gcc-11"
container = "{image}"
driver = "make"
why = "a test of images"
"""
NOWHERE = f"127.0.0.1:1/nobody/gcc@sha256:{'0' * 64}"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    return container_image.image(tmp_path_factory.mktemp("image"))


def quiet(_: str) -> None:
    """Progress that nobody wants to see."""


def ansible(root: Path) -> Ansible:
    (root / "lab.yml").write_text(BUILDERS)
    return Ansible(resource("playbooks"), root / "lab.yml")


def builder(root: Path, image: str) -> KernelBuilder:
    kernels = write_recipes(root / "kernels")
    (kernels / "recipes" / "toy.toml").write_text(f'toolchain = "boxed"\n{RECIPE}')
    (kernels / "toolchains.toml").write_text(ROW.format(image=image))
    return KernelBuilder(root / "repo", root / "cache", ansible(root), kernels=kernels)


def row(image: str, compiler: str = "gcc-11") -> Toolchain:
    return Toolchain(name="boxed", compiler=compiler, container=image, driver="make")


def left(folder: Path) -> str:
    told = ["podman", "ps", "--all", "--quiet", "--filter", f"volume={folder}"]
    return subprocess.run(told, check=True, capture_output=True, text=True).stdout


def test_a_kernel_is_compiled_in_the_image_and_taken_from_the_cache_later(tmp_path: Path, image: str) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    broken = history.commit({"kernel/work.c": "int work(int x) { return y; }\n"}, "break it")
    made = builder(tmp_path, image)
    kernel = made.build(BuildOrder("HEAD~1", "toy"), quiet)
    assert kernel.toolchain.startswith("gcc-11 (Debian 11.")
    assert b"GCC: (Debian 11." in kernel.image.read_bytes()
    assert not kernel.cached
    assert made.build(BuildOrder("HEAD~1", "toy"), quiet).cached
    with pytest.raises(BuildFailed, match=r"kernel/work\.c:1"):
        made.build(BuildOrder(broken, "toy"), quiet)
    assert left(tmp_path / "cache") == ""


def test_an_image_that_nobody_has_is_told_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(
        InfrastructureError, match="the image of the toolchain 'boxed' cannot be fetched"
    ) as e:
        probe_builder(ansible(tmp_path), "here", tmp_path / "cache", WantedToolchain(row(NOWHERE)), quiet)
    assert "kernels/toolchains.toml: the row 'boxed', every release" in e.value.details
    assert f"podman pull {NOWHERE}" in e.value.cure


def test_an_image_without_the_compiler_is_told(tmp_path: Path, image: str) -> None:
    with pytest.raises(InfrastructureError, match="the builder 'here' lacks: gcc-99, in the image") as error:
        probe_builder(
            ansible(tmp_path), "here", tmp_path / "cache", WantedToolchain(row(image, "gcc-99")), quiet
        )
    assert error.value.cure == "take an image that has them"


def test_a_builder_without_podman_is_told_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in Path("/usr/bin").iterdir():
        if tool.name != "podman":
            (tools / tool.name).symlink_to(tool)
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(InfrastructureError, match="the builder 'here' lacks: podman") as error:
        probe_builder(ansible(tmp_path), "here", tmp_path / "cache", WantedToolchain(row(NOWHERE)), quiet)
    assert "install --no-install-recommends podman runc" in error.value.cure

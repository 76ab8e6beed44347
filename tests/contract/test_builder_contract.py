"""What every Builder must do, asked of the fake, the real one with a toy kernel, and that of packages."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.build.kernel_cache import KernelCache
from bisector.adapters.packages.package_builder import PackageBuilder
from bisector.adapters.system.files import sha256_of
from bisector.errors import BuildFailed, RequestError
from bisector.model.commit_graph import listed_id
from bisector.ports import Builder, BuildOrder
from bisector.resources import resource
from bisector.schemas.kernel.listed_kernel import ListedKernel
from bisector.simulation.histories import linear
from bisector.simulation.noise_model import LabModel, SyntheticLab
from bisector.testing.fakes import FakeBuilder
from tests.support.kernels import kernel_packages
from tests.support.toy_kernel import ToyHistory, tools_missing, write_recipes


@dataclass(frozen=True)
class World:
    """A way to make builders over one cache, and commits: one, one with the same code, one that breaks."""

    make: Callable[[], Builder]
    plain: str
    twin: str
    broken: str
    recipe: str = "toy"
    compiles: bool = True
    """Whether it compiles, and so knows build ids and layouts."""

    def order(self, sha: str, layout: int = 0) -> BuildOrder:
        return BuildOrder(sha, self.recipe, layout)


def fake(folder: Path) -> World:
    graph = linear(3)
    lab = SyntheticLab(graph, LabModel(inert=1.0), {}, seed=1)
    lab.untestable[2] = "build"
    plain, twin, broken = graph.shas[:3]
    return World(lambda: FakeBuilder(lab, folder / "kernels"), plain, twin, broken)


def real(folder: Path) -> World:
    if tools_missing():
        pytest.skip(f"not installed: {tools_missing()}")
    history = ToyHistory.create(folder / "repo")
    plain = history.git("rev-parse", "HEAD").strip()
    twin = history.commit({"Documentation/toy.rst": "Words.\n"}, "words")
    broken = history.commit({"kernel/work.c": "int work(int x) { return y; }\n"}, "broken")
    kernels = write_recipes(folder / "kernels")
    ansible = Ansible(resource("playbooks"), resource("playbooks") / "inventory" / "laptop.yml")
    return World(
        lambda: KernelBuilder(history.path, folder / "cache", ansible, kernels=kernels), plain, twin, broken
    )


def unpacked(folder: Path) -> World:
    """Packages: two with the same files, and one that was cut off."""
    plain = kernel_packages.deb(folder, "6.1-1")
    twin = shutil.copy(plain, folder / "twin.deb")
    broken = folder / "broken.deb"
    data = plain.read_bytes()
    broken.write_bytes(data[: len(data) - 1500])
    kernels = [
        ListedKernel(
            id=listed_id(path.stem, sha256_of(path)),
            files=(str(path),),
            sums=(sha256_of(path),),
            package="linux-image",
            version="6.1-1",
            release="6.1-1-toy",
            built="#1 SMP Debian 6.1-1",
        )
        for path in map(Path, (plain, twin, broken))
    ]
    cache = KernelCache(folder / "kernels")
    one, two, three = (kernel.id for kernel in kernels)
    return World(
        lambda: PackageBuilder(kernels, cache), one, two, three, recipe="x86_64-package", compiles=False
    )


@pytest.fixture(scope="module", params=[fake, real, unpacked], ids=["fake", "real", "packages"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    made: World = request.param(tmp_path_factory.mktemp("builder"))
    return made


def test_a_kernel_is_built_once_and_then_known(world: World) -> None:
    builder = world.make()
    assert builder.cached(world.order(world.plain)) is None
    said: list[str] = []
    kernel = builder.build(world.order(world.plain), said.append)
    assert said, "progress was told"
    assert (kernel.sha, kernel.recipe, kernel.cached) == (world.plain, world.recipe, False)
    assert kernel.image.is_file()
    assert kernel.config.is_file()
    assert kernel.log.is_file()
    assert kernel.options
    if world.compiles:
        assert len(bytes.fromhex(kernel.build_id)) == 20
    else:
        assert kernel.version
    assert kernel.binary
    assert kernel.release
    assert kernel.key
    for later in (builder, world.make()):  # this process, and the next one
        again, known = (
            later.build(world.order(world.plain), said.append),
            later.cached(world.order(world.plain)),
        )
        assert known is not None
        assert again.cached
        assert known.cached
        assert kernel.key == again.key == known.key
        assert kernel.binary == again.binary == known.binary
        assert kernel.build_id == again.build_id == known.build_id


def test_the_same_code_is_the_same_binary(world: World) -> None:
    builder = world.make()
    kernels = [builder.build(world.order(sha), lambda _: None) for sha in (world.plain, world.twin)]
    assert kernels[0].binary == kernels[1].binary
    assert kernels[0].build_id == kernels[1].build_id
    assert [kernel.sha for kernel in kernels] == [world.plain, world.twin]


def test_layouts_are_kernels_of_their_own(world: World) -> None:
    builder = world.make()
    if not world.compiles:
        with pytest.raises(RequestError, match="no other layout"):
            builder.build(world.order(world.plain, layout=1), lambda _: None)
        return
    plain = builder.build(world.order(world.plain), lambda _: None)
    assert builder.cached(world.order(world.plain, layout=1)) is None
    moved = builder.build(world.order(world.plain, layout=1), lambda _: None)
    assert moved.key != plain.key


def test_a_broken_commit_is_a_failed_build_and_never_cached(world: World) -> None:
    builder = world.make()
    for _ in range(2):
        with pytest.raises(BuildFailed) as error:
            builder.build(world.order(world.broken), lambda _: None)
        assert error.value.details
        assert error.value.kind == "build"
    assert builder.cached(world.order(world.broken)) is None

"""Two hosts with caches of their own and one artefact store: each kernel is compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.artefacts.exchange import Exchange
from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.build.kernel_share import KernelShare
from bisector.ports import BuildOrder
from bisector.resources import resource
from tests.support.toy_kernel import ToyHistory, tools_missing, write_recipes

pytestmark = pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")


def test_the_second_host_compiles_nothing(tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    order = BuildOrder(history.git("rev-parse", "HEAD").strip(), "toy")
    kernels = write_recipes(tmp_path / "kernels")
    (tmp_path / "store").mkdir()
    store = FolderArtefacts(tmp_path / "store")

    said: list[str] = []

    def host(name: str) -> KernelBuilder:
        ansible = Ansible(resource("playbooks"), resource("playbooks") / "inventory" / "laptop.yml")
        made = KernelBuilder(history.path, tmp_path / name, ansible, kernels=kernels)
        made.share = KernelShare(made._store, Exchange(store, tmp_path / name / "work", said.append))
        return made

    first, second = host("a"), host("b")
    built = first.build(order, lambda _: None)
    assert first.share is not None
    first.share.exchange.close(60)
    taken = second.build(order, lambda _: None)
    assert (built.cached, built.fetched) == (False, False)
    assert (taken.cached, taken.fetched) == (True, True)
    assert (taken.key, taken.binary, taken.build_id) == (built.key, built.binary, built.build_id)
    assert taken.image.read_bytes() == built.image.read_bytes()
    assert taken.image.is_relative_to(tmp_path / "b")
    assert taken.options == built.options
    assert not list((tmp_path / "b" / "builder").glob("**/links")), "nothing was linked there"
    assert not second.build(order, lambda _: None).fetched, "from its own cache from now on"
    assert said == []

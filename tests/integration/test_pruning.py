"""From the dependency files of real builds of a toy kernel to the commits that cannot change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.builder import KernelBuilder
from bisector.adapters.build.kernel_cache import KernelCache
from bisector.adapters.git.changed_paths import read_changes
from bisector.adapters.git.source import GitSource
from bisector.app.pruning import Pruning
from bisector.linux.relevance import Change
from bisector.ports import BuildOrder
from bisector.resources import resource
from bisector.schemas.settings import Settings
from tests.support.toy_kernel import ToyHistory, tools_missing, write_recipes


def test_what_commits_change(tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    base = history.git("rev-parse", "HEAD").strip()
    one = history.commit({"drivers/odd name.c": "int x;\n", "kernel/work.c": "int work(int x);\n"}, "one")
    two = history.commit({"drivers/odd name.c": None}, "two")
    found = read_changes(history.path, base, two, tmp_path / "kept")
    expected = {
        one: (Change("drivers/odd name.c", added=True), Change("kernel/work.c", added=False)),
        two: (Change("drivers/odd name.c", added=False),),
    }
    assert found == expected
    (history.path / ".git").rename(tmp_path / "gone")
    assert read_changes(history.path, base, two, tmp_path / "kept") == expected
    next((tmp_path / "kept").iterdir()).write_bytes(b"cut short")
    (tmp_path / "gone").rename(history.path / ".git")
    assert read_changes(history.path, base, two, tmp_path / "kept") == expected


@pytest.mark.skipif(bool(tools_missing()), reason=f"not installed: {tools_missing()}")
def test_pruned_commits_have_the_kernel_of_their_parent(tmp_path: Path) -> None:
    history = ToyHistory.create(tmp_path / "repo")
    base = history.git("rev-parse", "HEAD").strip()
    words = history.commit({"Documentation/toy.rst": "More.\n"}, "words")
    driver = history.commit({"drivers/none.c": "int none;\n"}, "a driver that is not compiled")
    history.commit({"drivers/Kconfig": "config NONE\n"}, "its option")
    end = history.commit({"init/main.c": "int work(int);\nvoid _start(void) { work(9); }\n"}, "end")
    inventory = tmp_path / "lab.yml"
    inventory.write_text("all: {children: {builders: {hosts: {here: {ansible_connection: local}}}}}\n")
    cache, ansible = tmp_path / "cache", Ansible(resource("playbooks"), inventory)
    builder = KernelBuilder(history.path, cache, ansible, kernels=write_recipes(tmp_path / "kernels"))
    graph = GitSource(history.path).graph(base, end)
    prune = Pruning(Settings(cache_dir=cache), history.path, "toy", "x86_64")

    def build(sha: str) -> str:
        return builder.build(BuildOrder(sha, "toy"), lambda _: None).binary

    before = build(base)
    assert prune(graph) is None  # the other side may read more
    build(end)
    sources = KernelCache(cache / "kernels").entries()[0].sources()
    assert sources == frozenset({"init/main.c", "kernel/work.c"})
    found = prune(graph)
    assert found is not None
    assert {graph.shas[i] for i in found.commits} == {words, driver}
    assert found.kept == {"compiled": 1, "makefile or Kconfig": 1}
    assert build(driver) == before  # with the words before it

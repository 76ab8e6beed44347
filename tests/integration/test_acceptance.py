"""What an accepted request remembers of patches and recipes: what may not change until it ends."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bisector import resources
from bisector.app import accept
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.schemas.kernel.cpu_model import cpu_model, load_cpu_models
from bisector.schemas.kernel.patch_files import digest
from bisector.schemas.request import Accepted, Request
from bisector.schemas.settings import Settings
from bisector.schemas.workload.sample_keys import sample_keys
from tests.support.toy_kernel import ToyHistory


class Case:
    """A toy history, its two ends, a patch, and a folder of recipes of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        history = ToyHistory.create(root / "repo")
        self.good = history.git("rev-parse", "HEAD").strip()
        self.bad = history.commit({"kernel/work.c": "int work(int x) { return x; }\n"}, "faster")
        self.patch = root / "one.patch"
        self.patch.write_text("--- a\n+++ b\n")
        shutil.copytree(resources.resource("kernels"), root / "data" / "kernels")
        (root / "data" / "workloads").symlink_to(resources.resource("workloads"))
        monkeypatch.setattr(resources, "_PACKAGE", root / "data" / "bisector")
        self.recipe = root / "data" / "kernels" / "recipes" / "x86_64-guest.toml"
        self.wiring = Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state"))
        self.request = Request(
            repo=str(history.path),
            good="HEAD~",
            bad="HEAD",
            workload="pipe-test",
            recipe="x86_64-guest",
            apply=(str(self.patch),),
        )

    def accepted(self) -> Accepted:
        """What is kept when everything is resolved."""
        return Accepted(
            request=self.request,
            good=self.good,
            bad=self.bad,
            goal={},
            testbeds=("guest",),
            clock="instructions",
            workload="pipe-test",
            workload_sum="0",
            recipe_sum=accept.recipe_sum(
                self.wiring.trees(self.request.repo), self.request.recipe, self.good, self.bad
            ),
            patch_sums=(digest(self.patch),),
            sample_keys=sample_keys(accept.workload_of(self.request).manifest),
        )


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch)


def test_what_has_not_changed_goes_on(case: Case) -> None:
    accepted = case.accepted()
    assert len(accepted.recipe_sum) == 64
    case.recipe.write_text("# a comment changes no kernel\n" + case.recipe.read_text())
    accept.check_unchanged(case.wiring, accepted)


def test_a_changed_recipe_is_refused(case: Case) -> None:
    accepted = case.accepted()
    fragment = case.recipe.parent.parent / "configs" / "guest.config"
    fragment.write_text(fragment.read_text() + "CONFIG_SOMETHING_ELSE=y\n")
    with pytest.raises(RequestError, match="the recipe 'x86_64-guest', or a table it uses, has changed"):
        accept.check_unchanged(case.wiring, accepted)
    assert case.accepted().identity() != accepted.identity()


def test_a_processor_that_is_modelled_otherwise_is_refused(case: Case) -> None:
    cpu = cpu_model("")
    case.request = case.request.model_copy(update={"metric": "LL-misses"})
    accepted = case.accepted().model_copy(update={"cpu": cpu})
    accept.check_unchanged(case.wiring, accepted)
    table = case.recipe.parent.parent / "cpus.toml"
    table.write_text(table.read_text().replace(cpu.source, "elsewhere").replace('"memory", ', "", 1))
    assert cpu_model("").source != cpu.source
    assert cpu_model("").estimates != cpu.estimates
    accept.check_unchanged(case.wiring, accepted)  # the same numbers, cited otherwise
    table.write_text(table.read_text().replace("memory = 240", "memory = 241"))
    assert cpu_model("") != cpu
    with pytest.raises(RequestError, match=f"the processor '{cpu.name}' of kernels/cpus.toml has changed"):
        accept.check_unchanged(case.wiring, accepted)
    assert case.accepted().model_copy(update={"cpu": cpu_model("")}).identity() != accepted.identity()
    table.unlink()
    accept.check_unchanged(case.wiring, case.accepted())  # nothing is modelled
    with pytest.raises(RequestError, match=f"the processor '{cpu.name}' of kernels/cpus.toml has changed"):
        accept.check_unchanged(case.wiring, accepted)


def test_a_processor_that_is_not_named_is_the_first_row(case: Case) -> None:
    table = case.recipe.parent.parent / "cpus.toml"
    first = cpu_model("")
    unnamed = {"metric": "LL-misses"}
    named = {"monitors": (f"counters={first.name}",), "metric": "LL-misses"}
    begun = [
        case.accepted().model_copy(
            update={"cpu": first, "request": case.request.model_copy(update=asked), "sample_keys": {}}
        )
        for asked in (unnamed, named)
    ]
    head, *rows = table.read_text().split("[[cpu]]")
    table.write_text("[[cpu]]".join([head, *reversed(rows)]))
    assert first in load_cpu_models()
    assert cpu_model("") != first
    with pytest.raises(RequestError, match=f"the processor '{first.name}' .* has changed") as refused:
        accept.check_unchanged(case.wiring, begun[0])
    assert cpu_model("").model in refused.value.details
    accept.check_unchanged(case.wiring, begun[1])


def test_a_changed_patch_is_refused(case: Case) -> None:
    accepted = case.accepted()
    case.patch.write_text("--- a\n+++ c\n")
    with pytest.raises(RequestError, match=r"one\.patch has changed since the bisection began"):
        accept.check_unchanged(case.wiring, accepted)
    case.patch.unlink()
    with pytest.raises(RequestError, match=r"one\.patch cannot be read"):
        accept.check_unchanged(case.wiring, accepted)


def test_a_workload_that_is_run_or_read_otherwise_is_refused(case: Case, tmp_path: Path) -> None:
    own = tmp_path / "pipe-test"
    shutil.copytree(resources.resource("workloads") / "pipe-test", own)
    case.request = case.request.model_copy(update={"workload": str(own)})
    accepted, manifest = case.accepted(), own / "workload.yaml"
    begun = manifest.read_text()
    manifest.write_text(re.sub(r"timeout: \d+", "timeout: 999", begun) + "# a comment\n")
    accept.check_unchanged(case.wiring, accepted)
    manifest.write_text(begun.replace("warmup: 1", "warmup: 2"))
    with pytest.raises(RequestError, match=r"pipe-test/workload\.yaml: 'warmup' changed since"):
        accept.check_unchanged(case.wiring, accepted)
    accept.check_unchanged(case.wiring, accepted.model_copy(update={"sample_keys": {}}))  # begun by 1.0


def test_what_decides_samples_is_no_part_of_an_identity(case: Case) -> None:
    accepted = case.accepted()
    assert accepted.sample_keys
    assert accepted.model_copy(update={"sample_keys": {}}).identity() == accepted.identity()

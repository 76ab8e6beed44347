"""`--kernels`: what is accepted, refused and kept, and a whole search over packages on a fake testbed."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bisector.app import bisections, transfer
from bisector.app.accept import workload_of
from bisector.app.load_report import find_commit, load_material
from bisector.app.operations import plan_values
from bisector.app.packages.accept_kernels import RECIPE, accept_request
from bisector.app.packages.listed_sources import source_of, unpacker
from bisector.app.wiring import Wiring
from bisector.errors import RequestError
from bisector.model.commit_graph import short_name
from bisector.ports import Job, Kernel, Progress
from bisector.report import bisect_log, text
from bisector.report.html import bisection_page
from bisector.schemas.kernel.cpu_model import cpu_model
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import Accepted, Request, command_line, read_accepted
from bisector.schemas.settings import Settings
from bisector.schemas.workload.sample_keys import sample_keys
from bisector.simulation.noise_model import SyntheticLab
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from tests.support import fake_bisection
from tests.support.kernels import kernel_packages as packages

VERSIONS = tuple(f"6.1.{number}-1" for number in range(1, 8))
CULPRIT = 4


class Case:
    """Seven packages and a lab of one guest."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        debs = [packages.deb(root, version) for version in VERSIONS]
        self.path = packages.listed(root, *debs)
        self.wiring = Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state"))
        hosts = {"guest": {"perfbisect_kind": "libvirt"}}
        inventory = {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": list(hosts)}}
        self.wiring.lab = lab_from_inventory(inventory, root / "lab.yml")
        lab = fake_bisection.a_lab()
        monkeypatch.setattr(Wiring, "testbed", lambda wiring, name, stop=None: FakeTestbed(name, lab))

    def request(self, **fields: object) -> Request:
        said: dict[str, object] = {
            "good": VERSIONS[0],
            "bad": VERSIONS[-1],
            "workload": "pipe-test",
            "repo": str(self.path),
            "kernels": str(self.path),
        }
        return Request.model_validate({**said, **fields})


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch)


def test_what_is_accepted_is_kept_and_needs_the_list_no_more(case: Case) -> None:
    accepted, graph = accept_request(case.wiring, case.request(bad=VERSIONS[5]))
    assert [short_name(sha) for sha in graph.shas] == [*VERSIONS[:6]]
    assert accepted.request.recipe == RECIPE
    case.path.unlink()
    kept = read_accepted(accepted.model_dump_json())
    assert kept.sample_keys == sample_keys(workload_of(accepted.request).manifest)
    assert kept.identity() == accepted.identity()
    assert kept.the_goal().terms.unit == "kernel"
    assert source_of(case.wiring, kept).names() == [*VERSIONS[:6]]
    again = command_line(kept.request.model_dump(mode="json"))
    assert f"--kernels {case.path}" in " ".join(again)
    assert not {"--repo", "--recipe"} & {*again}  # these exclude each other


def test_another_content_is_another_bisection(case: Case) -> None:
    before = accept_request(case.wiring, case.request())[0].identity()
    packages.kernel_folder(case.path.parent / "own", "6.2-own")
    case.path.write_text(f"{case.path.read_text(encoding='utf-8')}own\n", encoding="utf-8")
    assert accept_request(case.wiring, case.request(bad="own"))[0].identity() != before
    one, *others = case.path.read_text(encoding="utf-8").splitlines()
    packages.listed(case.path.parent, *others[:2], one, *others[2:])  # the same ends, in another order
    with pytest.raises(RequestError, match="is listed before"):
        accept_request(case.wiring, case.request(good=VERSIONS[0], bad=VERSIONS[1]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"first_parent": True}, "--first-parent has no meaning with --kernels"),
        ({"paths": ("kernel",)}, "a path after -- has no meaning"),
        ({"apply": ("/a.patch",)}, "--apply has no meaning"),
        ({"with_fix": ("abc",)}, "--with-fix has no meaning"),
        ({"priors": "/a.toml"}, "--priors has no meaning"),
        ({"good": "6.0"}, "'6.0' names no kernel of the list"),
        ({"good": VERSIONS[-1], "bad": VERSIONS[0]}, "is listed before"),
        ({"bad": VERSIONS[0]}, "the same kernel"),
    ],
)
def test_what_has_no_meaning_is_refused(fields: dict[str, object], message: str, case: Case) -> None:
    with pytest.raises(RequestError, match=message):
        accept_request(case.wiring, case.request(**fields))


@pytest.mark.parametrize(("metric", "modelled"), [("LL-misses", True), ("instructions", False)])
def test_the_processor_of_a_model_is_kept(
    case: Case, monkeypatch: pytest.MonkeyPatch, metric: str, modelled: bool
) -> None:
    guest = FakeTestbed("guest", fake_bisection.a_lab())
    guest.clock = "instructions"
    monkeypatch.setattr(Wiring, "testbed", lambda wiring, name, stop=None: guest)
    accepted, _ = accept_request(case.wiring, case.request(metric=metric))
    assert accepted.cpu == (cpu_model("") if modelled else None)
    assert accepted.the_goal().exact is not modelled


class OnPackages(FakeTestbed):
    """A fake that knows a kernel by its id; its own reads the layout from the fake image."""

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        image = folder.with_suffix(".json")
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_text('{"layout": 0}', encoding="utf-8")
        return super().boot(replace(kernel, image=image), job, folder, progress)


def _search(case: Case, folder: Path) -> Accepted:
    """Search with the real planner, source and builder; only the testbed is a fake."""
    accepted, graph = accept_request(case.wiring, case.request())
    lab = SyntheticLab(graph, fake_bisection.QUIET, {CULPRIT: 10.0}, seed=1)
    goal = {**accepted.goal, "metric": fake_bisection.accepted(lab).goal["metric"], "clock": lab.model.clock}
    accepted = accepted.model_copy(update={"goal": goal, "testbeds": ("fake",), "clock": lab.model.clock})
    services = replace(
        fake_bisection.services(lab, folder),
        source=source_of(case.wiring, accepted),
        builders=[partial(unpacker, case.wiring, accepted.kernels)],
        store=case.wiring.store,
        testbeds={"fake": OnPackages("fake", lab)},
    )
    stored, _ = bisections.begin(case.wiring.store, accepted, graph, 1e9)
    bisections.run(stored, services, lambda event: None, threading.Event())
    return accepted


def test_a_search_names_the_package_and_speaks_of_no_commit(case: Case, tmp_path: Path) -> None:
    _search(case, tmp_path / "state")
    material = load_material(case.wiring, None)
    assert material.conclusion is not None
    (finding,) = material.conclusion.culprits
    assert short_name(material.graph.shas[finding.commits[0]]) == VERSIONS[CULPRIT]
    said = text.render(material)
    assert f"{VERSIONS[CULPRIT]} (" in said
    assert "compared afresh with its predecessor 6.1.4-1" in said
    assert "--good v6.1.4 --bad v6.1.5 --workload pipe-test" in said
    plain = said.replace("# The commit:", "").replace("bisect the commits", "")
    page = re.sub(
        r"<style.*?</style>|<script.*?</script>|<[^>]*>", " ", bisection_page.render(material), flags=re.S
    )
    page = page.replace("# The commit:", "")
    for words in (plain, bisect_log.render(material), page):
        assert re.findall(r".{0,60}\b(?:[Cc]ommits?|git|parents?)\b.{0,40}", words) == []


def test_a_kernel_is_found_by_its_name_without_the_list(case: Case, tmp_path: Path) -> None:
    accepted = _search(case, tmp_path / "state")
    case.path.unlink()
    material = load_material(case.wiring, None)
    request = accepted.request.model_dump()
    assert find_commit(case.wiring, material.id, material.graph, request, VERSIONS[1]) == 1
    with pytest.raises(RequestError, match=r"'6\.9' names no kernel of the bisection"):
        find_commit(case.wiring, material.id, material.graph, request, "6.9")


def test_a_search_is_exported_and_read_without_the_list(case: Case, tmp_path: Path) -> None:
    _search(case, tmp_path / "state")
    stored = case.wiring.store.list()[0]
    transfer.export_bisection(
        case.wiring, case.wiring.store.load(stored.id), tmp_path / "x.tar.gz", lambda _: None
    )
    case.path.unlink()
    other = Wiring(Settings(cache_dir=tmp_path / "cache2", state_dir=tmp_path / "state2"))
    other.lab = case.wiring.lab
    transfer.import_bisection(other, tmp_path / "x.tar.gz")
    assert f"{VERSIONS[CULPRIT]} (" in text.render(load_material(other, None))


def test_a_plan_speaks_of_unpacking(case: Case) -> None:
    rows = plan_values.plan_of(case.wiring, case.request(), lambda _: None)["rows"]
    assert rows["good"].startswith("6.1.1-1: 6.1.1-1")
    assert "unpacking" in rows["seconds each"]
    assert not {"recipe", "relevant"} & rows.keys()

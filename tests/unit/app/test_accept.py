"""What accepting a request resolves and keeps, and what it refuses before anything was changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import bisector
from bisector.adapters.agent.workload_sources import checksum
from bisector.app import accept, bisections
from bisector.app.wiring import Wiring
from bisector.errors import NoKernel, RequestError
from bisector.model.goal import TestbedClock
from bisector.schemas.commit_priors import Priors
from bisector.schemas.kernel.patch_files import digest
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import Request
from bisector.schemas.settings import Settings
from bisector.schemas.workload.sample_keys import sample_keys
from bisector.schemas.workload.workload import load_workload
from bisector.testing.fake_testbed import FakeTestbed
from tests.support import fake_bisection
from tests.support.toy_kernel import ToyHistory

YOUNG = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 0\n"
OLD = "VERSION = 2\nPATCHLEVEL = 6\nSUBLEVEL = 24\n"
WORK = "int work(int x) { return x; }\n"
PATCH = """--- a/kernel/work.c
+++ b/kernel/work.c
@@ -1 +1,2 @@
 int work(int x) { return x; }
+int more;
"""
SLOW = WORK.replace("return x;", "return -x;")


class Case:
    """A history of three kernels, tagged 'good', 'middle' and 'bad', a lab of two machines and a guest."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.history = ToyHistory.create(root / "repo")
        self.shas = {
            tag: self.commit(files, tag)
            for tag, files in (
                ("good", {"Makefile": YOUNG, "kernel/work.c": WORK}),
                ("middle", {"Documentation/toy.rst": "Another toy.\n"}),
                ("bad", {"kernel/other.c": "int other;\n"}),
            )
        }
        hosts = {"bed": {"ansible_host": "192.0.2.2"}, "other": {"ansible_host": "192.0.2.1"}}
        hosts["guest"] = {"perfbisect_kind": "libvirt"}
        self.wiring = Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state"))
        inventory = {"_meta": {"hostvars": hosts}, "testbeds": {"hosts": list(hosts)}}
        self.wiring.lab = lab_from_inventory(inventory, root / "lab.yml")
        self.clocks: dict[str, TestbedClock] = {"bed": "wall", "other": "wall", "guest": "wall"}
        monkeypatch.setattr(Wiring, "testbed", lambda wiring, name: self._testbed(name))

    def _testbed(self, name: str) -> FakeTestbed:
        testbed = FakeTestbed(name, fake_bisection.a_lab())
        testbed.clock = self.clocks[name]
        return testbed

    def commit(self, files: Mapping[str, str | None], tag: str) -> str:
        sha = self.history.commit(files, tag)
        self.history.git("tag", tag)
        return sha

    def request(self, **fields: object) -> Request:
        asked = {"repo": str(self.history.path), "good": "good", "bad": "bad", "workload": "pipe-test"}
        return Request.model_validate({**asked, **fields})

    def refusal(self, **fields: object) -> RequestError:
        """Return why a request is refused; it leaves no state folder."""
        with pytest.raises(RequestError) as caught:
            accept.accept(self.wiring, self.request(**fields))
        assert not self.wiring.settings.state_dir.exists()
        return caught.value

    def patch(self) -> Path:
        path = self.root / "one.patch"
        path.write_text(PATCH)
        return path


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch)


def test_names_become_commits_and_the_range_is_what_lies_between(case: Case) -> None:
    accepted, graph = accept.accept(case.wiring, case.request())
    assert (accepted.good, accepted.bad) == (case.shas["good"], case.shas["bad"])
    assert set(graph.shas) == set(case.shas.values())
    assert (graph.shas[graph.good], graph.shas[graph.bad]) == (accepted.good, accepted.bad)


def test_what_is_accepted_is_what_will_be_measured(case: Case) -> None:
    patch = case.patch()
    accepted, _ = accept.accept(
        case.wiring, case.request(apply=(str(patch),), threshold="7%", alpha=0.01, max_runs=9)
    )
    workload = load_workload("pipe-test")
    assert (accepted.workload, accepted.workload_sum) == ("pipe-test", checksum(workload.folder))
    assert accepted.sample_keys == sample_keys(workload.manifest)
    assert accepted.patch_sums == (digest(patch),)
    assert accepted.version == bisector.__version__
    goal = accepted.the_goal()
    assert (goal.metric.name, goal.metric.threshold.value, goal.alpha) == ("real", 0.07, 0.01)
    assert (goal.budget.runs, goal.clock) == (9, "wall")
    accept.check_unchanged(case.wiring, accepted)


def test_what_would_be_made_or_measured_otherwise_is_refused(case: Case) -> None:
    patch = case.patch()
    accepted, _ = accept.accept(case.wiring, case.request(apply=(str(patch),)))
    changed = {"recipe_sum": "another", "sample_keys": dict.fromkeys(accepted.sample_keys, "another")}
    accept.check_unchanged(case.wiring, accepted.model_copy(update={"recipe_sum": ""}))  # none was known
    for key, value in changed.items():
        with pytest.raises(RequestError):
            accept.check_unchanged(case.wiring, accepted.model_copy(update={key: value}))
    patch.write_text(patch.read_text() + "\n")
    with pytest.raises(RequestError, match=patch.name):
        accept.check_unchanged(case.wiring, accepted)


@pytest.mark.parametrize(("metric", "exact"), [("instructions", True), ("L2-misses", False), (None, True)])
def test_misses_of_a_model_are_not_exact_on_any_clock(case: Case, metric: str | None, exact: bool) -> None:
    case.clocks["guest"] = "instructions"
    accepted, _ = accept.accept(case.wiring, case.request(metric=metric, testbeds=("guest",)))
    goal = accepted.the_goal()
    assert (goal.clock, goal.exact) == ("instructions", exact)


@pytest.mark.parametrize(("clock", "fresh"), [("instructions", True), ("wall", False)])
def test_boots_with_fresh_random_numbers_are_not_exact(case: Case, clock: TestbedClock, fresh: bool) -> None:
    case.clocks["guest"] = clock
    asked = case.request(workload="hackbench/small", testbeds=("guest",), recipe="auto")
    goal = accept.accept(case.wiring, asked)[0].the_goal()
    assert (goal.clock, goal.fresh_seeds, goal.exact) == (clock, fresh, False)


def test_a_goal_of_an_earlier_version_is_read_and_is_the_same_request(case: Case) -> None:
    case.clocks["guest"] = "instructions"
    accepted, _ = accept.accept(case.wiring, case.request(metric="L2-misses", testbeds=("guest",)))
    earlier = {k: value for k, value in accepted.goal.items() if k not in ("modelled", "fresh_seeds")}
    begun = accepted.model_copy(update={"goal": earlier})
    assert begun.the_goal().exact, "it goes on as it was begun"
    assert begun.identity() == accepted.identity()


def test_auto_becomes_the_recipe_that_covers_both_ends(case: Case) -> None:
    accepted, _ = accept.accept(case.wiring, case.request(recipe="auto"))
    assert accepted.request.recipe == "x86_64-guest"
    old = case.commit({"Makefile": OLD}, "old")
    assert accept.recipe_for(case.wiring.trees(case.history.path), "auto", old) == "x86_64-old"


def test_guests_get_the_smallest_recipe_that_serves_unless_one_is_named(case: Case) -> None:
    accepted, _ = accept.accept(case.wiring, case.request(recipe="auto", testbeds=("guest",)))
    assert (accepted.request.recipe, accepted.recipe_chosen) == ("x86_64-small", True)
    named, _ = accept.accept(case.wiring, case.request(recipe="x86_64-guest", testbeds=("guest",)))
    assert (named.request.recipe, named.recipe_chosen) == ("x86_64-guest", False)
    mixed, _ = accept.accept(case.wiring, case.request(recipe="auto", testbeds=("guest", "other")))
    assert mixed.request.recipe == "x86_64-guest"  # a machine is reached over its network


def test_a_search_that_an_earlier_version_began_goes_on_with_its_recipe(case: Case) -> None:
    request = case.request(recipe="auto", testbeds=("guest",))
    begun, graph = accept.accept(
        case.wiring, case.request(recipe="x86_64-guest", testbeds=("guest",))
    )  # what earlier versions made of 'auto'
    stored, _ = bisections.begin(case.wiring.store, begun, graph, now=1.0)
    again, _ = accept.accept(case.wiring, request)
    assert (again.request.recipe, again.identity()) == ("x86_64-guest", begun.identity())
    bisections.cancel(case.wiring.store, stored)
    assert accept.accept(case.wiring, request)[0].request.recipe == "x86_64-small"


def test_the_first_testbed_and_those_like_it_measure_unless_others_are_named(case: Case) -> None:
    assert accept.accept(case.wiring, case.request())[0].testbeds == ("bed", "other")
    named, _ = accept.accept(case.wiring, case.request(testbeds=("other", "bed")))
    assert named.testbeds == ("other", "bed")


def test_commits_to_skip_are_marked_in_the_range(case: Case) -> None:
    _, graph = accept.accept(case.wiring, case.request(skip=("middle",)))
    assert [graph.shas[number] for number in graph.untestable] == [case.shas["middle"]]


def test_testbeds_of_different_clocks_are_refused(case: Case) -> None:
    case.clocks["other"] = "instructions"
    error = case.refusal(testbeds=("bed", "other"))
    assert error.message == "testbeds with different clocks cannot be compared"
    assert error.details == "bed: wall\nother: instructions"


def test_a_clock_that_cannot_decide_the_workload_is_refused(case: Case) -> None:
    case.clocks["bed"] = "instructions"
    folder = case.root / "only-wall"
    folder.mkdir()
    (folder / "x").touch()
    (folder / "workload.yaml").write_text(
        "name: only-wall\ndescription: d\nfiles: [x]\nrun: [x]\nclocks: [wall]\n"
        "metrics: [{name: real, unit: s, better: lower, threshold: 5%, decides: true}]\n"
    )
    assert "cannot be decided by the clock 'instructions'" in case.refusal(workload=str(folder)).message


@pytest.mark.parametrize("end", ["good", "bad"])
def test_an_end_without_a_kernel_is_refused(case: Case, end: str) -> None:
    none = case.commit({"Makefile": None}, "none")
    if end == "good":
        case.commit({"Makefile": YOUNG}, "again")
        error = case.refusal(good="none", bad="again")
    else:
        error = case.refusal(bad="none")
    assert error.message == f"the {end} end {none[:12]} holds no Linux kernel"
    assert isinstance(error, NoKernel)


def test_priors_are_kept_with_full_ids_and_name_only_commits_that_may_be_the_culprit(case: Case) -> None:
    path = case.root / "priors.toml"
    path.write_text(f'[commits]\n"{case.shas["middle"][:12]}" = 8\n[paths]\n"kernel/" = 0.5\n')
    accepted, _ = accept.accept(case.wiring, case.request(priors=str(path)))
    assert accepted.priors == Priors(commits={case.shas["middle"]: 8}, paths={"kernel/": 0.5})
    assert accept.accept(case.wiring, case.request())[0].priors is None
    path.write_text(f'[commits]\n"{case.shas["good"][:12]}" = 8\n')
    assert "no commit that is searched has this id" in case.refusal(priors=str(path)).message


def test_priors_name_only_paths_that_the_history_has(case: Case) -> None:
    case.commit({"mm/gone.c": "int gone;\n"}, "came")
    case.commit({"mm/gone.c": None}, "went")
    path = case.root / "priors.toml"
    known = ("kernel/", "Documentation", "kernel/other.c", "Documentation/toy.rst", "mm/gone.c", "mm/")
    path.write_text("[paths]\n" + "".join(f'"{one}" = 2\n' for one in known))
    accepted, _ = accept.accept(case.wiring, case.request(priors=str(path), bad="went"))
    assert accepted.priors is not None and tuple(accepted.priors.paths) == known
    turned = case.request(priors=str(path), find="fix", bad="good", good="went")
    assert accept.accept(case.wiring, turned)[0].priors == accepted.priors
    for unknown in ("nofolder/", "kernel/other.c/", "other.c", "*.c", "kernel/o"):
        path.write_text(f'[paths]\n"kernel/" = 2\n"{unknown}" = 2\n')
        error = case.refusal(priors=str(path))
        assert f":3: key 'paths.{unknown}': no commit that is searched has this" in error.message


def test_a_patch_that_does_not_apply_to_an_end_is_refused(case: Case) -> None:
    patch = case.patch()
    case.commit({"kernel/work.c": SLOW}, "slow")
    error = case.refusal(bad="slow", apply=(str(patch),))
    assert error.message.startswith("--apply: ") and error.message.endswith(", the bad end")
    assert error.cure == "give a patch that applies to both ends; where it does not in between is a skip"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"good": "nowhere"}, "nowhere"),
        ({"workload": "pipe-tset"}, "pipe-tset"),
        ({"metric": "speed"}, "speed"),
        ({"recipe": "x86_64-gest"}, "x86_64-gest"),
        ({"testbeds": ("bad",)}, "'bad'"),
        ({"threshold": "much"}, "--threshold: "),
        ({"apply": ("/nowhere.patch",)}, "/nowhere.patch: no such patch"),
    ],
)
def test_a_wrong_word_is_refused_by_its_name(case: Case, fields: dict[str, object], words: str) -> None:
    assert words in case.refusal(**fields).message


def test_a_monitor_is_told_that_the_kernel_lacks_what_it_needs(case: Case) -> None:
    accepted, _ = accept.accept(case.wiring, case.request(monitors=("ftrace",)))
    assert accept.missing_monitors(accepted)[0].startswith("monitor ftrace: ")
    plain, _ = accept.accept(case.wiring, case.request())
    assert accept.missing_monitors(plain) == []

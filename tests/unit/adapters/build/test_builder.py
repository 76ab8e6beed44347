"""What becomes of an order: from the cache, from another host, or built, in turn, by one process.

Nothing is compiled. Real builds: tests/integration/builds/test_kernel_builds.py.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build import builder as module
from bisector.adapters.build.builder import KernelBuilder, PlannedBuild
from bisector.adapters.build.kernel_cache import CachedKernel, KernelCache, kernel_key
from bisector.adapters.build.kernel_share import KernelShare
from bisector.adapters.build.probe import BuilderFacts
from bisector.adapters.build.toolchain_notes import write_note
from bisector.errors import (
    BuilderUnwell,
    BuildFailed,
    InfrastructureError,
    Interrupted,
    PerfbisectError,
    SourceFailed,
)
from bisector.ports import BuildOrder, Progress

BUILD = KernelBuilder._build_kernel
FACTS = {"binary": "b", "build_id": "00", "release": "6.1", "toolchain": "gcc 12"}
ROW: Any = SimpleNamespace(identity="gcc")


class Lab:
    """A builder that compiles nothing. did: what happened, in its order; now: a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.did: list[str] = []
        self.now = 0.0
        self.stopped = False
        manifest = SimpleNamespace(userspace="debian", arch="x86_64", load=())
        plan = SimpleNamespace(
            toolchain=ROW,
            digest=lambda layout: f"layout {layout}",
            recipe=SimpleNamespace(name="toy", manifest=manifest),
            not_granted=lambda options: (),
        )
        self.plan = cast("Any", plan)
        monkeypatch.setattr(KernelBuilder, "plan", lambda _, order: PlannedBuild(self.plan, order.sha))
        facts = BuilderFacts("/f", True, 2, "gcc 12", ())
        monkeypatch.setattr(KernelBuilder, "probe", lambda *_: facts)
        monkeypatch.setattr(KernelBuilder, "_build_kernel", self.compile)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))

    @property
    def cache(self) -> KernelCache:
        return KernelCache(self.folder / "kernels")

    def key(self, sha: str) -> str:
        return kernel_key(sha, "layout 0", "gcc 12")

    def put(self, sha: str) -> CachedKernel:
        made = self.cache.make_workspace() / "kernel"
        made.mkdir()
        for name in ("image", "config", "build.log"):
            (made / name).write_text(f"{name} of {sha}")
        return self.cache.put(self.key(sha), made, FACTS)

    def compile(
        self, order: BuildOrder, planned: object, key: str, builder: object, progress: object
    ) -> CachedKernel:
        self.did.append(f"compiled {order.sha}")
        self.now += 60.0
        return self.put(order.sha)

    @contextlib.contextmanager
    def in_turn(self, progress: Progress) -> Iterator[None]:
        self.did.append("turn")
        self.now += 1000.0  # somebody measured there
        yield
        self.did.append("turn over")

    def builder(self, **how: Any) -> KernelBuilder:
        ansible = Ansible(self.folder, self.folder / "lab.yml", lambda: self.stopped)
        return KernelBuilder(self.folder, self.folder, ansible, in_turn=self.in_turn, **how)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


def order(sha: str) -> BuildOrder:
    return BuildOrder(sha, "toy")


def test_a_kernel_is_compiled_in_turn_once_and_its_seconds_are_those_of_the_build(lab: Lab) -> None:
    """What `kernel list` says and costs are made of: time in which others measured is none of it."""
    kernel = lab.builder().build(order("a"), print)
    assert lab.did == ["turn", "compiled a", "turn over"]
    assert (kernel.cached, kernel.fetched, kernel.seconds, kernel.key) == (False, False, 60.0, lab.key("a"))
    again = lab.builder().build(order("a"), print)
    assert (again.cached, again.fetched, again.binary) == (True, False, "b")
    assert len(lab.did) == 3


def test_what_another_process_built_while_we_waited_is_taken(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def making(cache: KernelCache, key: str, *_: object) -> Iterator[None]:
        lab.put("a")
        yield

    monkeypatch.setattr(KernelCache, "making", making)
    assert lab.builder().build(order("a"), print).key == lab.key("a")
    assert "compiled a" not in lab.did


def test_waiting_for_another_process_ends_when_told_to(lab: Lab) -> None:
    lab.stopped = True
    with lab.cache.making(lab.key("a"), print, lambda: False), pytest.raises(Interrupted):
        lab.builder().build(order("a"), print)
    assert lab.did == []


class Share:
    """Other hosts. fetches: seconds that it takes to fetch each kernel; None: nobody has it."""

    def __init__(self, lab: Lab, fetches: float | None) -> None:
        self.lab, self.fetches = lab, fetches
        self.offered: list[str] = []

    def offer(self, entry: CachedKernel) -> None:
        self.offered.append(entry.key)

    def obtain(
        self, key: str, build: Callable[[], CachedKernel], stop: Callable[[], bool], progress: Progress
    ) -> tuple[CachedKernel, float | None]:
        assert stop() is self.lab.stopped
        return (build(), None) if self.fetches is None else (self.lab.put("a"), self.fetches)


@pytest.mark.parametrize("fetches", [5.0, None])
def test_a_kernel_of_another_host_costs_what_it_takes_to_fetch(lab: Lab, fetches: float | None) -> None:
    share = Share(lab, fetches)
    kernel = lab.builder(share=cast("KernelShare", share)).build(order("a"), print)
    fetched = fetches is not None
    assert (kernel.fetched, kernel.cached, kernel.seconds) == (fetched, fetched, 5.0 if fetched else 60.0)
    assert ("compiled a" in lab.did) is not fetched
    assert share.offered == []
    lab.builder(share=cast("KernelShare", share)).build(order("a"), print)
    assert share.offered == [lab.key("a")], "it may be older than the artefact store"


def test_what_is_needed_and_what_was_just_built_stay_in_a_cache_that_is_full(lab: Lab) -> None:
    """Else a bisection would build its ends again at each trial."""
    for sha in ("needed", "old"):
        lab.put(sha)
    needed = frozenset([lab.key("needed")])
    lab.builder(cache_bytes=0, needed=lambda: needed).build(order("a"), print)
    assert {entry.key for entry in lab.cache.entries()} == {lab.key("needed"), lab.key("a")}


def test_the_cache_is_asked_without_a_builder(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.put("a")
    builder = lab.builder()
    assert builder.cached(order("a")) is None, "nobody has said which compiler there is"
    write_note(lab.folder, "elsewhere", ROW, "gcc 12")
    assert builder.cached(order("a")) is None, "of another system"
    assert lab.builder(system="elsewhere").cached(order("a")) is not None
    write_note(lab.folder, "here", ROW, "gcc 12")
    known = builder.cached(order("a"))
    assert known is not None
    assert (known.key, known.cached, known.seconds) == (lab.key("a"), True, 0.0)
    assert builder.cached(order("b")) is None

    def fail(*_: object) -> None:
        raise SourceFailed("no row covers it")

    monkeypatch.setattr(KernelBuilder, "plan", fail)
    assert builder.cached(order("a")) is None, "whoever builds it is told why not"


# --- a build on a builder that answers as a test says -----------------------------------------------------

ANSWER = {"status": "ok", "release": "6.1.0", "build_id": "00", "binary": "b" * 64}


class Remote:
    """A builder and the user's repository. told: what each build was told; packed: trees that were sent."""

    def __init__(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[Mapping[str, str]] = []
        self.sent: list[Mapping[str, str]] = []
        self.usual: list[int] = []
        self.packed: list[str] = []
        self.answer, self.log = ANSWER, "  CC  work.o\n"
        self.facts = BuilderFacts("/f", False, 2, "gcc 12", ("b",))
        manifest = SimpleNamespace(
            userspace="debian",
            arch="x86_64",
            load=(),
            base="defconfig",
            rest="no",
            image=["bzImage"],
            files=9,
        )
        recipe = SimpleNamespace(name="toy", manifest=manifest, base="", flags=lambda layout: f"-O{layout}")
        words = dict.fromkeys(("driver", "compiler", "cross", "programs", "container"), "x")
        toolchain = SimpleNamespace(identity="gcc", shim=str, host_shim=str, **words)
        given = {"config": "", "required": "", "release": "v6.1", "not_granted": lambda options: ()}
        plan = SimpleNamespace(
            toolchain=toolchain, recipe=recipe, digest=lambda layout: f"layout {layout}", **given
        )
        lab.plan = cast("Any", plan)
        trees = SimpleNamespace(
            pack=self.pack, object_folders=lambda: [Path("/objects")], defines=lambda tree, option: False
        )
        monkeypatch.setattr(KernelBuilder, "_build_kernel", BUILD)
        monkeypatch.setattr(KernelBuilder, "probe", lambda *_: self.facts)
        monkeypatch.setattr(KernelBuilder, "_kernel_trees", property(lambda _: trees))
        monkeypatch.setattr(module, "BuildPlay", self.begin)

    def pack(self, tree: str, known: Sequence[str], path: Path) -> None:
        self.packed.append(tree)
        path.write_text("pack")

    def begin(self, *given: Any) -> Remote:
        self.given = given
        return self

    def play(
        self, build: Mapping[str, str], variables: Mapping[str, str], usual: int, progress: Progress
    ) -> Mapping[str, str]:
        self.told.append(build)
        self.sent.append(variables)
        self.usual.append(usual)
        with tarfile.open(variables["perfbisect_artefacts"], "w") as tar:
            for name, text in (("image", "kernel"), ("config", "CONFIG_TOY=y\n"), ("build.log", self.log)):
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
        return self.answer


@pytest.fixture
def remote(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Remote:
    return Remote(lab, monkeypatch)


def test_the_source_is_sent_to_a_builder_elsewhere_that_lacks_it_and_to_no_other(
    lab: Lab, remote: Remote
) -> None:
    """A whole tree has 250 MB; without it nothing can be built there."""
    builder = lab.builder(host="far")
    builder.build(order("a"), print)
    assert remote.packed == ["a"]
    assert remote.sent[0]["perfbisect_pack"].endswith("source.pack")
    assert remote.told[0]["PB_OBJECTS"] == ""
    assert builder._builders["gcc"].trees == ("b", "a"), "the next commits are sent as differences"
    builder.build(order("b"), print)
    remote.facts = replace(remote.facts, here=True)
    builder.build(order("c"), print)
    assert remote.packed == ["a"]
    assert [sent["perfbisect_pack"] for sent in remote.sent[1:]] == ["", ""]
    assert remote.told[2]["PB_OBJECTS"] == "/objects"


def test_a_build_is_told_what_its_settings_say_and_its_kernel_what_made_it(lab: Lab, remote: Remote) -> None:
    builder = lab.builder(timeout=77.0)
    kernel = builder.build(order("a"), print)
    assert (kernel.toolchain, kernel.release, kernel.options) == ("gcc 12", "6.1.0", {"TOY": "y"})
    facts = lab.cache.entries()[0].facts
    assert (facts["sha"], facts["recipe"], facts["layout"]) == ("a", "toy", "0")
    told = remote.told[0]
    assert (told["PB_JOBS"], told["PB_NICE"], told["PB_BASE"]) == ("2", "0", "defconfig")
    assert remote.given[5:] == (77.0, builder._other), "one for all builds: it knows who was waited for"
    assert remote.usual == [9], "what the recipe says, until a build has told"
    remote.answer = {**ANSWER, "compiled": "700"}
    lab.plan.recipe.base = "CONFIG_TOY=y"
    lab.builder(jobs=5, nice=19).build(order("b"), print)
    lab.builder().build(order("c"), print)
    told = remote.told[1]
    assert (told["PB_JOBS"], told["PB_NICE"], told["PB_BASE"]) == ("5", "19", "")
    assert remote.usual == [9, 9, 700]


def test_repositories_of_two_hosts_share_nothing_on_a_builder(
    lab: Lab, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sha, name in (("a", "box1"), ("b", "box2"), ("c", "box1")):
        monkeypatch.setattr("platform.node", lambda name=name: name)
        lab.builder().build(order(sha), print)
    domains = [told["PB_DOMAIN"] for told in remote.told]
    assert domains[0] == domains[2] != domains[1]


@pytest.mark.parametrize(
    ("answer", "log", "kind"),
    [
        ({"status": "failed"}, "work.c:1: error: no\n", BuildFailed),
        ({"status": "failed"}, "cc1: No space left on device\n", BuilderUnwell),
        ({**ANSWER, "binary": "none"}, "", InfrastructureError),  # what cannot be blames nobody
    ],
)
def test_a_build_that_fails_keeps_its_log_and_nothing_else(
    lab: Lab, remote: Remote, answer: dict[str, str], log: str, kind: type[PerfbisectError]
) -> None:
    remote.answer, remote.log = answer, log
    with pytest.raises(kind) as error:
        lab.builder().build(order("a"), print)
    assert type(error.value) is kind
    assert lab.cache.entries() == []
    assert [path.read_text() for path in lab.cache.failed_logs()] == [log] * (kind is not InfrastructureError)
    assert not list(lab.cache.folder.glob("building-*")), "a kernel with all its modules has a GiB"


def test_a_result_without_end_does_not_fill_the_disk_and_blames_nobody(
    lab: Lab, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RESULT_BYTES_MAX", 8)
    with pytest.raises(InfrastructureError):
        lab.builder().build(order("a"), print)
    assert not list(lab.cache.folder.glob("building-*"))

"""What is missing for a bisection is all said at once, before anything is built. Machines are given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bisector.adapters.build.toolchain_notes import write_note
from bisector.adapters.guest.counting import counting_plugin
from bisector.adapters.system import host_requirements
from bisector.adapters.system.architectures import X86_64, Machine
from bisector.adapters.system.host_requirements import BUILDING, GUESTS, Check
from bisector.app.execution import readiness
from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError
from bisector.schemas.kernel.release import Release
from bisector.schemas.kernel.toolchain import Toolchain, load_toolchains, toolchain_for
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.request import Accepted, Request
from bisector.schemas.settings import Settings
from tests.support.toy_kernel import ToyHistory

MAKEFILE = "VERSION = {}\nPATCHLEVEL = {}\nSUBLEVEL = {}\n"
MISSING = [
    Check("git", found="2.39", needed=BUILDING),
    Check("flex", wrong="not installed", cure="apt-get install flex", needed=BUILDING),
    Check("libvirtd", wrong="not installed", cure="apt-get install libvirt-daemon", needed=GUESTS),
    Check("mmdebstrap", wrong="not installed", cure="apt-get install mmdebstrap", needed=GUESTS),
    Check("bwrap", wrong="not installed", cure="apt-get install bubblewrap", needed=BUILDING, optional=True),
    Check("disk", wrong="0.5 GiB free", cure="free some", needed=BUILDING),
]

_CURES = ("apt-get install flex", "apt-get install libvirt-daemon", "free some", "there: apt-get install gcc")


class Case:
    """A lab of one guest, one machine and two builders; one builder's compiler is missing."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.history = ToyHistory.create(root / "repo")
        for tag, numbers in (("old", (2, 6, 24)), ("good", (6, 1, 0)), ("bad", (6, 2, 0))):
            self.history.commit({"Makefile": MAKEFILE.format(*numbers)}, tag)
            self.history.git("tag", tag)
        self.wiring = Wiring(Settings(cache_dir=root / "cache", state_dir=root / "state"))
        hosts: dict[str, dict[str, object]] = {
            "guest": {"perfbisect_kind": "libvirt"},
            "machine": {"ansible_host": "192.0.2.1"},
            "here": {"ansible_connection": "local"},
            "far": {"ansible_host": "192.0.2.2"},
        }
        inventory = {
            "_meta": {"hostvars": hosts},
            "testbeds": {"hosts": ["guest", "machine"]},
            "builders": {"hosts": ["here", "far"]},
        }
        self.wiring.lab = lab_from_inventory(inventory, root / "lab.yml")
        self.asked: list[tuple[str, str]] = []
        self.room: list[float] = []
        monkeypatch.setattr(host_requirements, "checks", self._checks)
        monkeypatch.setattr(host_requirements, "has_libvirt", lambda: False)
        monkeypatch.setattr(Machine, "require_emulator", lambda machine: None)
        monkeypatch.setattr(Machine, "compiler", lambda machine: ("gcc",))
        monkeypatch.setattr(Wiring, "builder", lambda wiring, repo, name: Builder(self, name))

    def _checks(self, disk: Path, gib: float) -> list[Check]:
        self.room.append(gib)
        return MISSING

    def missing(self, **fields: object) -> list[str]:
        asked = {"repo": str(self.history.path), "good": "good", "bad": "bad", "workload": "pipe-test"}
        request = Request.model_validate({"recipe": "auto", **asked, **fields})
        return [check.name for check in readiness.lacking(self.wiring, request)]


class Builder:
    """A builder; 'far' has no compiler."""

    def __init__(self, case: Case, name: str) -> None:
        self._case, self._name = case, name
        self.cache, self.system = case.wiring.settings.cache_dir, name

    def probe(self, row: Toolchain, progress: object) -> Any:
        self._case.asked.append((self._name, row.name))
        if self._name == "far":
            raise InfrastructureError("the builder 'far' lacks: gcc", cure="there: apt-get install gcc")


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return Case(tmp_path, monkeypatch)


def test_all_that_is_missing_is_said_at_once_with_what_mends_it(case: Case) -> None:
    request = Request(
        repo=str(case.history.path), good="good", bad="bad", workload="pipe-test", recipe="auto"
    )
    with pytest.raises(InfrastructureError) as caught:
        readiness.require_ready(case.wiring, request)
    assert caught.value.message == "4 things that this bisection needs are missing; nothing was built"
    lines = caught.value.details.splitlines()
    assert lines[0::2] == [
        "flex: not installed",
        "libvirtd: not installed",
        "disk: 0.5 GiB free",
        "builder 'far': the builder 'far' lacks: gcc",
    ]
    assert lines[1::2] == [f"  {cure}" for cure in _CURES]
    assert not case.wiring.settings.state_dir.exists()


def test_one_thing_alone_is_the_error_itself(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_requirements, "checks", lambda *_: MISSING[:2])
    monkeypatch.setattr(Builder, "probe", lambda *_: None)
    with pytest.raises(InfrastructureError) as caught:
        request = Request(repo=str(case.history.path), good="good", bad="bad", workload="pipe-test")
        readiness.require_ready(case.wiring, request)
    assert (caught.value.message, caught.value.cure) == ("flex: not installed", "apt-get install flex")


def test_a_shared_folder_that_is_not_mounted_is_missing(case: Case, tmp_path: Path) -> None:
    store = tmp_path / "store"
    case.wiring.settings = case.wiring.settings.model_copy(update={"artefacts": str(store)})
    assert "artefact store" in case.missing()
    store.mkdir()
    assert "artefact store" not in case.missing()


def test_what_only_other_testbeds_need_is_not_missing(case: Case) -> None:
    assert "libvirtd" not in case.missing(testbeds=("machine",))
    assert "mmdebstrap" in case.missing(recipe="x86_64-guest")  # a guest with a disk
    assert "mmdebstrap" not in case.missing(recipe="x86_64-small")


def test_compilers_of_the_whole_range_are_asked_of_every_builder_until_they_are_known(case: Case) -> None:
    assert case.missing()[-1] == "builder 'far'"
    assert case.asked == [("here", "gcc"), ("far", "gcc")]
    case.asked.clear()
    case.missing(good="old", bad="old")
    assert case.asked == [("here", "gcc-12-as-4.4"), ("far", "gcc-12-as-4.4")]
    row = toolchain_for(load_toolchains(), "gcc", Release.parse("v6.1"), "the commit")
    write_note(case.wiring.settings.cache_dir, "far", row, "gcc 12")
    assert "builder 'far'" not in case.missing()


def test_a_guest_needs_its_emulator_and_a_compiler_for_static_programs(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(machine: Machine) -> None:
        raise InfrastructureError(f"'{machine.emulator}' is not installed", cure="apt-get install qemu")

    monkeypatch.setattr(Machine, "require_emulator", none)
    assert X86_64.emulator in case.missing()
    assert X86_64.emulator not in case.missing(testbeds=("machine",))


def test_a_tree_that_is_there_needs_less_room(case: Case) -> None:
    case.missing()
    (case.wiring.settings.cache_dir / "builder" / "source").mkdir(parents=True)
    case.missing()
    assert case.room[0] > case.room[1]


def no_plugins(cache: Path, machine: Machine) -> Path:
    raise InfrastructureError("it does not load plugins")


def test_a_qemu_that_cannot_count_is_missing_only_where_what_decides_is_counted(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = "instructions"
    monkeypatch.setattr(counting_plugin, "counting_plugin", no_plugins)
    monkeypatch.setattr(Wiring, "testbed", lambda wiring, name: SimpleNamespace(clock=clock))
    assert "counters" not in case.missing()
    assert "counters" in case.missing(metric="instructions")
    assert "counters" not in case.missing(metric="real", monitors=["counters"])  # a monitor says it is absent
    assert "counters" not in case.missing(workload="db-aio")  # whose manifest counts beside
    assert "counters" in case.missing(workload="db-aio", metric="LL-misses")
    clock = "wall"  # where perf's own number decides
    assert "counters" not in case.missing(metric="instructions")


def test_what_is_not_counted_beside_the_deciding_metric_is_said(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(clock: str = "instructions", **fields: object) -> list[str]:
        asked = {"repo": "r", "good": "a", "bad": "b", "recipe": "x86_64-small", **fields}
        accepted = Accepted(
            request=Request.model_validate(asked),
            good="a",
            bad="b",
            goal={},
            testbeds=("guest",),
            clock=clock,
            workload="w",
            workload_sum="",
        )
        return readiness.left_out(case.wiring, accepted)

    monkeypatch.setattr(counting_plugin, "counting_plugin", lambda *_: Path())
    assert said(workload="db-aio") == said(workload="pipe-test", clock="wall") == []
    (note,) = said(workload="db-aio", clock="wall")
    assert note.startswith("left out, because only an emulated guest (clock 'instructions') counts: ")
    assert "LL-misses" in note
    monkeypatch.setattr(counting_plugin, "counting_plugin", no_plugins)
    (note,) = said(workload="db-aio")
    assert note.startswith("left out, because it does not load plugins: ") and "LL-misses" in note
    assert said(workload="pipe-test", monitors=["counters"]) == [
        "left out, because it does not load plugins: counters"
    ]
    assert said(workload="pipe-test") == said(workload="pipe-test", metric="loads") == []

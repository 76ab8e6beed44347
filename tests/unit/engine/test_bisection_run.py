"""One bisection on several testbeds: one that stays broken is set aside, the search goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bisector.adapters.store.open_database import open_state_file
from bisector.adapters.store.sql_store import SqlStore
from bisector.app import bisections
from bisector.engine import bisection_run, trial_runner
from bisector.engine.bisection_run import BisectionRun
from bisector.engine.events import Event
from bisector.engine.services import Services
from bisector.errors import BootFailed, ExitCode, InfrastructureError, WorkloadFailed
from bisector.model.decisions import Ending
from bisector.model.records import Booted, SetAside
from bisector.model.stored_bisection import Stored
from bisector.ports import Job, Kernel, Progress, Testbed
from bisector.simulation.noise_model import SyntheticLab
from bisector.simulation.testbed_traits import TestbedTraits
from bisector.testing.fake_testbed import FakeSession, FakeTestbed
from bisector.testing.fakes import Faults
from tests.support import fake_bisection as fake

ROOT = Path(__file__).resolve().parents[3]
ALWAYS = {number: InfrastructureError("no power") for number in range(1, 1000)}


def begin(folder: Path, *broken: str) -> tuple[Stored, Services]:
    """Return a bisection on the testbeds a and b; those that are broken never boot."""
    lab = fake.a_lab()
    store = SqlStore(open_state_file(folder / "perfbisect.sqlite"))
    testbeds = {
        name: FakeTestbed(name, lab, faults=Faults(boot=ALWAYS) if name in broken else None) for name in "ab"
    }
    services = replace(fake.services(lab, folder, store=store), testbeds=testbeds)
    return fake.begin(store, lab, ("a", "b")), services


def anew(services: Services, testbeds: Mapping[str, Testbed]) -> Services:
    """Return the services of the next process: those of one that failed were told to stop."""
    return replace(services, testbeds=testbeds, stop=threading.Event())


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.01)


class PatientTestbed(FakeTestbed):
    """A testbed that has both ends measured and then waits until another one is set aside.

    Else a search of a third of a second could end before the other one's tries have.
    """

    def __init__(self, name: str, lab: SyntheticLab) -> None:
        super().__init__(name, lab)
        self.events: list[Event] = []
        self._is_alone = threading.Event()

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        if self.boots == 4:
            self._is_alone.wait(60)
        return super().boot(kernel, job, folder, progress)

    def hear(self, event: Event) -> None:
        """Take note of what the search tells."""
        self.events.append(event)
        if "set aside" in event.text:
            self._is_alone.set()


def patient(services: Services) -> tuple[Services, PatientTestbed]:
    """Return the services with a testbed a that waits for the end of the testbed b."""
    testbed = PatientTestbed("a", fake.a_lab())
    return replace(services, testbeds={**services.testbeds, "a": testbed}), testbed


def booted_on(stored: Stored, services: Services) -> set[str]:
    """Return the testbeds that booted a kernel."""
    return {r.testbed for _, r in services.store.records(stored.id) if isinstance(r, Booted)}


def test_the_search_goes_on_without_a_testbed_that_stays_broken(tmp_path: Path) -> None:
    stored, services = begin(tmp_path, "b")
    services, first = patient(services)
    conclusion = bisections.run(stored, services, first.hear, threading.Event())
    assert conclusion.ending is Ending.CULPRIT
    assert conclusion.findings[0].commits == (fake.CULPRIT,)
    assert booted_on(stored, services) == {"a"}
    said = [event.text for event in first.events if event.kind == "trouble" and event.testbed == "b"]
    assert said == [
        "no power; trying again",
        "no power; trying again",
        "no power",
        "the testbed 'b' is set aside until 'perfbisect resume'; the search goes on with a",
    ]
    records = [record for _, record in services.store.records(stored.id)]
    assert [(r.testbed, r.failure) for r in records if isinstance(r, SetAside)] == [("b", "no power")]


def test_the_search_stops_when_no_testbed_is_left_and_goes_on_when_one_is_mended(tmp_path: Path) -> None:
    stored, services = begin(tmp_path, "a", "b")
    with pytest.raises(
        InfrastructureError, match=r"^no testbed is left; the last one, '[ab]': no power$"
    ) as e:
        bisections.run(stored, services, lambda _: None, threading.Event())
    assert e.value.exit_code == ExitCode.INFRASTRUCTURE
    assert f"perfbisect resume {stored.id}" in e.value.cure
    stored, services = begin(tmp_path, "a")
    conclusion = bisections.run(stored, services, lambda _: None, threading.Event())
    assert conclusion.findings[0].commits == (fake.CULPRIT,)
    assert booted_on(stored, services) == {"b"}


class UpdatedTestbed(FakeTestbed):
    """A testbed whose firmware is updated after its first boots."""

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> FakeSession:
        session = super().boot(kernel, job, folder, progress)
        facts = {**session.facts.facts, "machine.bios": "F2" if self.boots <= 2 else "F3"}
        session.facts = replace(session.facts, facts=facts)
        return session


def test_the_search_goes_on_without_a_testbed_whose_firmware_was_updated(tmp_path: Path) -> None:
    stored, services = begin(tmp_path)
    lab = fake.a_lab()
    services, first = patient(replace(services, testbeds={"b": UpdatedTestbed("b", lab)}))
    conclusion = bisections.run(stored, services, first.hear, threading.Event())
    assert [finding.commits for finding in conclusion.findings] == [(fake.CULPRIT,)]
    said = [event.text for event in first.events if event.kind == "trouble" and event.testbed == "b"]
    assert len(said) == 2, "it is not tried again"
    assert said[0].startswith(f"the firmware of the testbed 'b' changed since the bisection '{stored.id}'")
    assert f"'perfbisect discard {stored.id} --boot BOOT'" in said[0]
    assert "the testbed 'b' is set aside" in said[1]
    records = [record for _, record in services.store.records(stored.id)]
    assert sum(isinstance(r, Booted) and r.testbed == "b" for r in records) == 2


def test_the_search_stops_where_the_firmware_of_the_last_testbed_was_updated(tmp_path: Path) -> None:
    stored, services = begin(tmp_path)
    testbeds = {name: UpdatedTestbed(name, fake.a_lab()) for name in "ab"}
    with pytest.raises(InfrastructureError, match=r"the firmware of the testbed '[ab]' changed") as e:
        bisections.run(stored, replace(services, testbeds=testbeds), lambda _: None, threading.Event())
    assert f"'perfbisect discard {stored.id} --boot BOOT'" in e.value.cure


@pytest.mark.parametrize("failure", [BootFailed("no root"), WorkloadFailed("no library")])
def test_a_testbed_on_which_nothing_ever_works_blames_no_commit(tmp_path: Path, failure: Exception) -> None:
    stored, services = begin(tmp_path)
    lacking = dict.fromkeys(range(1, 1000), failure)
    services.testbeds["b"].faults = Faults(boot=lacking)  # type: ignore[attr-defined]
    services, first = patient(services)
    conclusion = bisections.run(stored, services, first.hear, threading.Event())
    assert [finding.commits for finding in conclusion.findings] == [(fake.CULPRIT,)]
    records = [record for _, record in services.store.records(stored.id)]
    assert [r.testbed for r in records if isinstance(r, SetAside)] == ["b"]
    assert all(r.ok for r in records if isinstance(r, Booted))


def test_the_search_stops_when_no_testbed_is_left_that_shows_the_change(tmp_path: Path) -> None:
    """a shows it, b does not; a fails once the ends are compared. b alone cannot go on."""
    stored, services = begin(tmp_path)
    lab = fake.a_lab(model=replace(fake.QUIET, testbeds=(TestbedTraits("b", effect=0.0),)))
    broken = Faults(boot=dict.fromkeys(range(9, 1000), InfrastructureError("no power")))
    failing = {"a": FakeTestbed("a", lab, faults=broken), "b": FakeTestbed("b", lab)}
    with pytest.raises(InfrastructureError, match=r"no testbed is left") as e:
        bisections.run(stored, replace(services, testbeds=failing), lambda _: None, threading.Event())
    assert e.value.exit_code == ExitCode.INFRASTRUCTURE
    mended = {name: FakeTestbed(name, lab) for name in "ab"}
    other = {"b": mended["b"]}
    with pytest.raises(InfrastructureError, match=r"no testbed is left that the search goes on with") as e:
        bisections.run(stored, anew(services, other), lambda _: None, threading.Event())
    assert e.value.cure == "have a used again, then 'perfbisect resume'"
    conclusion = bisections.run(stored, anew(services, mended), lambda _: None, threading.Event())
    assert conclusion.searched_on == ("a",)
    assert [finding.commits for finding in conclusion.findings] == [(fake.CULPRIT,)]


_KILLED = """
import os, signal, sys, threading
from pathlib import Path
from bisector.app import bisections
from bisector.engine import trial_runner
from tests.unit.engine.test_bisection_run import begin, patient
trial_runner._PAUSE_SECONDS = 0.01
stored, services = begin(Path(sys.argv[1]), "b")
services, first = patient(services)
told = []
def tell(event):
    first.hear(event)
    if told and event.kind == "decision":
        os.kill(os.getpid(), signal.SIGKILL)
    if "set aside" in event.text:
        told.append(event)
bisections.run(stored, services, tell, threading.Event())
"""


def test_after_a_kill_a_testbed_that_was_set_aside_is_tried_again(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    stored, services = begin(tmp_path)
    conclusion = bisections.run(stored, services, lambda _: None, threading.Event())
    assert conclusion.findings[0].commits == (fake.CULPRIT,)
    assert booted_on(stored, services) == {"a", "b"}


def test_a_bisection_is_resumed_without_a_testbed_that_the_inventory_has_lost(tmp_path: Path) -> None:
    stored, services = begin(tmp_path)
    left = replace(services, testbeds={"a": services.testbeds["a"]})
    assert bisections.run(stored, left, lambda _: None, threading.Event()).ending is Ending.CULPRIT
    assert booted_on(stored, services) == {"a"}


@dataclass
class Decider:
    """What is under way, as each look at the database tells it."""

    looks: list[frozenset[tuple[str, int]]]
    ended_trials: int = 0

    def under_way(self) -> frozenset[tuple[str, int]]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


A, B = ("a", 1), ("b", 2)


@pytest.mark.parametrize(
    ("looks", "ends"),
    [
        ([frozenset()], True),  # what was waited for has ended before the first look
        ([frozenset({A}), frozenset({A, B})], False),
        ([frozenset({A}), frozenset({A, B}), frozenset({B})], True),
        ([frozenset({A}), frozenset()], True),
    ],
)
def test_an_idle_testbed_waits_until_a_trial_of_whatever_process_has_ended(
    tmp_path: Path, looks: list[frozenset[tuple[str, int]]], ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisection_run, "_WAIT_SECONDS", 0.001)
    stored, services = begin(tmp_path)
    run = BisectionRun(stored.id, lambda: (stored, services), lambda _: None, threading.Event(), ["a"])
    asked = 0

    def wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked > 200

    run._wait(SimpleNamespace(decider=Decider(looks)), 0, wanted)  # type: ignore[arg-type]
    assert (asked <= 200) is ends

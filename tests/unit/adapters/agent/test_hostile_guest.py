"""A guest that floods, garbles, lies or stops in the middle, through the real session and the real engine.

Each row of the table is one misbehaviour. It is the testbed's failure, told in words: the trial is repeated,
and nothing is said of the commit.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.agent import session as session_module
from bisector.adapters.agent.answers import parse_facts
from bisector.adapters.agent.session import AgentSession, await_greeting
from bisector.adapters.store.memory_store import MemoryStore
from bisector.adapters.system.channel import LineReader
from bisector.engine import trial_runner
from bisector.engine.bisection_run import OpenBisection
from bisector.engine.events import Event
from bisector.model.decisions import Conclusion, Decision, Ending, Measure
from bisector.model.goal import TestbedClock
from bisector.model.printable import printable
from bisector.model.records import Booted, Left, Ran, RunFailed
from bisector.ports import BootFacts, Job, Kernel, MetricSpec, Progress, Testbed
from bisector.simulation.noise_model import SyntheticLab
from bisector.testing.fakes import METRIC
from tests.support import fake_bisection as fake
from tests.support.agent_answers import GREETING, finished_line

Pieces = Iterable[bytes | None]
"""What arrives: bytes, None for silence, b"" for the end."""

Misbehave = Callable[[random.Random, bytes], Pieces]
"""Given the honest answer with its newline, return what comes instead."""

CLOSED = b""
FACTS = b'{"uname.release": "6.1", "tainted": "0"}\n'
RUN_TIMEOUT = 0.15


def _changed(**fields: Any) -> Misbehave:
    """Return the misbehaviour of an honest answer with other values; None takes a key out."""

    def answer(_: random.Random, honest: bytes) -> Pieces:
        told = json.loads(honest) | fields
        text = json.dumps({key: value for key, value in told.items() if value is not None})
        return [text.encode() + b"\n"]

    return answer


def _line(text: str | bytes) -> Misbehave:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda *_: [data + b"\n"]


def _for_ever(data: bytes) -> Misbehave:
    return lambda *_: itertools.repeat(data)


def _cut(random: random.Random, honest: bytes) -> bytes:
    return honest[: random.randrange(1, len(honest) - 1)]


def _with_a_wrong_byte(random: random.Random, honest: bytes) -> Pieces:
    place = random.randrange(len(honest) - 1)
    return [honest[:place] + bytes([random.choice(b"\x00\x1b\x80\xff")]) + honest[place:]]


ON_A_RUN: dict[str, tuple[Misbehave, str]] = {
    "a line without end": (_for_ever(b"x" * 65536), "sent a line of more than 8 MiB"),
    "a line without end, byte by byte": (_for_ever(b"x"), "stopped in the middle of an answer|8 MiB"),
    "zeroes without end": (_for_ever(bytes(65536)), "sent a line of more than 8 MiB"),
    "empty lines without end": (_for_ever(b"\n" * 999), "answer is garbled"),
    "pauses without end": (_for_ever(b'{"paused":1}\n'), "answered what was not asked"),
    "greetings without end": (_for_ever(GREETING.encode() + b"\n"), "answered what was not asked"),
    "files that nobody asked for": (_for_ever(b'{"file":"a","data":"","cut":0}\n'), "not asked"),
    "the answer of a monitor": (_changed(monitor="proc"), "not asked"),
    "random bytes": (lambda r, _: [r.randbytes(9999) + b"\n"], "garbled"),
    "a wrong byte": (_with_a_wrong_byte, "garbled"),
    "half an answer, then silence": (lambda r, h: [_cut(r, h)], "stopped in the middle of an answer"),
    "half an answer, then the end": (lambda r, h: [_cut(r, h), CLOSED], "lost during a run"),
    "the end at once": (lambda *_: [CLOSED], "lost during a run"),
    "an answer twice": (lambda _, h: [h, h], "answered what was not asked"),
    "an answer, then noise": (lambda _, h: [h, b"[  3.14] random: crng\n"], "garbled"),
    "two answers in one line": (lambda _, h: [h[:-1] * 2 + b"\n"], "garbled"),
    "a kernel panic that the console does not show": (_line("Kernel panic - not syncing: x"), "garbled"),
    "a screen full of commands": (_line(b"\x1b]0;owned\x07\x1b[2J\x9b31m"), "garbled"),
    "UTF-16": (lambda _, h: [h.decode().encode("utf-16")], "garbled"),
    "brackets 100,000 deep": (_line("[" * 100_000), "garbled"),
    "a list": (_line("[1, 2]"), "garbled"),
    "null": (_line("null"), "garbled"),
    "an object with nothing in it": (_line("{}"), "garbled"),
    "a number of 5,000 digits": (_line('{"code":' + "9" * 5000 + "}"), "garbled"),
    "half a pair of surrogates": (
        lambda _, h: [h.replace(b'"kernel": []', b'"kernel": ["\\ud800"]')],
        "garbled",
    ),
    "a key too many": (_changed(more=1), "garbled"),
    "a key too few": (_changed(tainted=None), "garbled"),
    "text for a number": (_changed(seconds="1.0"), "garbled"),
    "NaN seconds": (_changed(seconds=float("nan")), "garbled"),
    "infinite seconds": (_changed(raw_seconds=float("inf")), "garbled"),
    "negative seconds": (_changed(seconds=-1.0), "garbled"),
    "seconds of a universe": (_changed(user=1e300), "garbled"),
    "an output of an exabyte": (_changed(out_cut=10**18), "garbled"),
    "a negative size": (_changed(err_cut=-1), "garbled"),
    "an exit code of a billion": (_changed(code=10**9), "garbled"),
    "no end at all": (_changed(code=-1, signal=0), "garbled"),
    "two ends": (_changed(code=0, signal=9), "garbled"),
    "a kill that nobody wanted": (_changed(code=-1, signal=9, killed=1), "killed a run that nobody told it"),
    "ticks backwards": (_changed(ticks=-1), "garbled"),
    "more ticks than a register has": (_changed(ticks=1 << 70), "garbled"),
    "more output than an agent keeps": (_changed(out="A" * (3 << 20)), "garbled"),
    "output that is no base64": (_changed(out="e*=="), "garbled"),
    "100,000 messages of the kernel": (_changed(kernel=["x"] * 100_000), "garbled"),
    "messages that are no text": (_changed(kernel=[1]), "garbled"),
    "an error of a megabyte": (_line(json.dumps({"error": "x" * (1 << 20), "reason": ""})), "garbled"),
}

BEFORE_A_RUN: dict[str, tuple[str, Misbehave, str]] = {
    "no greeting": ("greeting", _line("login:"), "garbled"),
    "another greeting": ("greeting", _line(GREETING.replace("1", "2")), "another protocol"),
    "an answer for a greeting": ("greeting", _line('{"paused":1}'), "not asked"),
    "a greeting without end": ("greeting", _for_ever(b"x" * 65536), "8 MiB"),
    "the end for a greeting": ("greeting", lambda *_: [CLOSED], "ended the conversation"),
    "no facts": ("facts", _line("Welcome"), "told no facts"),
    "facts that are numbers": ("facts", _line('{"tainted": 1}'), "told no facts"),
    "taint flags that are no number": ("facts", _line('{"tainted": "-1"}'), "facts are garbled"),
    "facts of two megabytes": ("facts", _line(json.dumps({"a": "x" * (2 << 20)})), "too many facts"),
    "half the facts": ("facts", lambda r, h: [_cut(r, h), CLOSED], "ended the conversation"),
    "a run for a pause": ("pause", lambda *_: [finished_line().encode() + b"\n"], "not asked"),
    "a line without end for a pause": ("pause", _for_ever(b"x" * 65536), "8 MiB"),
}

TABLE = {name: ("run", *row) for name, row in ON_A_RUN.items()} | BEFORE_A_RUN


class HostileAgent:
    """The agent's side of a line, byte by byte. It misbehaves once, on one kind of command."""

    def __init__(self, value: Callable[[], float], when: str, misbehave: Misbehave | None, seed: int) -> None:
        self._value, self._when, self._misbehave = value, when, misbehave
        self._random = random.Random(seed)
        self._coming: Iterator[bytes | None] = iter(())
        self._reader = LineReader("the guest", self._read)
        self.receive = self._reader.receive
        self._answer("facts", FACTS)

    def greet(self) -> None:
        self._answer("greeting", GREETING.encode() + b"\n")

    def send(self, text: str) -> None:
        self._reader.restart_count()
        command = text.split()[0]
        if command == "pause":
            self._answer(command, b'{"paused":1}\n')
        elif command == "run":
            seconds = 0.0
            line = finished_line(out=f"{METRIC}: {self._value()!r}\n".encode(), seconds=seconds)
            self._answer(command, line.encode() + b"\n")

    def close(self) -> None:
        self._coming = iter((CLOSED,))

    def _answer(self, command: str, honest: bytes) -> None:
        pieces: Pieces = [honest]
        if command == self._when and self._misbehave is not None:
            pieces, self._misbehave = self._misbehave(self._random, honest), None
        self._coming = itertools.chain(self._coming, pieces)

    def _read(self, timeout: float) -> bytes | None:
        piece = next(self._coming, None)
        if piece is None:
            time.sleep(min(timeout, 0.005))
        return piece


class HostileTestbed:
    """ports.Testbed whose guests misbehave in the boots for which `plan` says how."""

    __test__ = False

    clock: TestbedClock = "wall"
    has_own_kernel = False

    def give_back(self, progress: Progress, stop: Callable[[], bool] = lambda: False) -> None:
        pass

    def __init__(self, name: str, lab: SyntheticLab, plan: Iterator[tuple[str, Misbehave] | None]) -> None:
        self.name, self._lab, self._plan = name, lab, plan
        self._index = {sha: i for i, sha in enumerate(lab.graph.shas)}
        self.boots = 0

    def boot(self, kernel: Kernel, job: Job, folder: Path, progress: Progress) -> AgentSession:
        self.boots += 1
        layout = int(json.loads(kernel.image.read_text())["layout"])
        boot = self._lab.boot(self._index[kernel.sha], layout, self.name, folder.name)
        numbers = itertools.count()
        when, misbehave = next(self._plan, None) or ("", None)
        line = HostileAgent(lambda: boot.run(next(numbers), 0.0), when, misbehave, self.boots)
        facts = parse_facts(line.receive(1.0))
        line.greet()
        await_greeting(line)
        job = replace(job, metrics=(MetricSpec(METRIC, "s"),), timeout=RUN_TIMEOUT, settle=0.001)
        return AgentSession(
            facts=BootFacts("6.1", "", facts),
            job=job,
            line=line,
            folder=folder,
            crashed=lambda: None,
            on_leave=lambda: None,
        )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_CONSOLE_POLL_SECONDS", "_CONSOLE_DELAY_SECONDS", "_ANSWER_SECONDS"):
        monkeypatch.setattr(session_module, name, 0.05)
    monkeypatch.setattr(trial_runner, "_PAUSE_SECONDS", 0.0)


def _search(folder: Path, plan: Iterator[tuple[str, Misbehave] | None]) -> tuple[Decision, list[Event], Any]:
    """Bisect with the real planner and engine on a hostile testbed; return the end, events and records."""
    lab, store = fake.a_lab(), MemoryStore()
    events: list[Event] = []
    testbeds: dict[str, Testbed] = {"fake": HostileTestbed("fake", lab, plan)}
    given = replace(fake.services(lab, folder, store=store), testbeds=testbeds)
    opened = OpenBisection.take_up(fake.begin(store, lab), given, events.append, threading.Event())
    for _ in range(200):
        decision = opened.decider.decide("fake")
        if isinstance(decision, Conclusion):
            opened.trials.close()
            return decision, events, [record for _, record in store.records(opened.stored.id)]
        assert isinstance(decision, Measure)
        opened.carry_out(decision, "fake")
    raise AssertionError("the search does not end")


def _says_nothing_of_a_commit(records: Any) -> bool:
    return not [r for r in records if isinstance(r, RunFailed) or (isinstance(r, Booted) and not r.ok)]


class _Two:
    """A planner that wants two samples of two commits."""

    def next(self, state: Any) -> Decision:
        for commit in (3, 4):
            visits = [v for v in state.visits if v.commit == commit]
            missing = 2 - sum(len(v.samples) for v in visits)
            if missing > 0:
                live = [v.boot for v in visits if v.live]
                return Measure(commit, missing, "search", "scripted", live[0] if live else None)
        return Conclusion(Ending.INCONCLUSIVE, "enough")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", TABLE)
def test_a_misbehaviour_is_the_testbeds_failure_and_the_trial_is_repeated(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when, misbehave, words = TABLE[name]
    services = fake.services
    monkeypatch.setattr(
        fake, "services", lambda *args, **more: replace(services(*args, **more), planner=_Two())
    )
    _, events, records = _search(tmp_path, iter([(when, misbehave)]))
    troubles = [event.text for event in events if event.kind == "trouble"]
    assert len(troubles) == 1
    assert re.search(words, troubles[0]), troubles
    assert troubles[0].endswith("; trying again")
    assert printable(troubles[0]) == troubles[0]
    assert len(troubles[0]) < 300
    assert _says_nothing_of_a_commit(records)
    values = [round(r.values[METRIC]) for r in records if isinstance(r, Ran)]
    assert len(values) in (4, 5), "each commit has its two samples"
    assert set(values) == {100}
    lost = [r.lost for r in records if isinstance(r, Left)]
    assert lost.count(True) == (when in ("run", "pause"))


def test_the_table_is_large() -> None:
    assert len(TABLE) >= 50


@pytest.mark.timeout(240)
def test_the_same_culprit_is_found_where_every_other_guest_misbehaves(tmp_path: Path) -> None:
    def plan() -> Iterator[tuple[str, Misbehave] | None]:
        for when, misbehave, _ in sorted(TABLE.values(), key=lambda row: row[2]):
            yield when, misbehave
            yield None

    honest, _, _ = _search(tmp_path / "honest", iter(()))
    found, events, records = _search(tmp_path / "hostile", plan())
    assert isinstance(found, Conclusion) and isinstance(honest, Conclusion)
    assert found.ending is Ending.CULPRIT
    assert [f.commits for f in found.findings] == [f.commits for f in honest.findings]
    assert _says_nothing_of_a_commit(records)
    assert sum(event.kind == "trouble" for event in events) > 3


def test_a_run_that_says_it_took_longer_than_the_host_saw_is_not_counted(tmp_path: Path) -> None:
    liar = ("run", _changed(seconds=5.0))
    _, _, records = _search(tmp_path, iter([liar]))
    flagged = [r.flags for r in records if isinstance(r, Ran) and r.flags]
    assert flagged == [("clock",)]
    assert _says_nothing_of_a_commit(records)

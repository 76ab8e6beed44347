"""The build waits for others that build in the same folder of a builder, and says who they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bisector.adapters.ansible.playbook_events import Played, Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build import build_play, build_progress
from bisector.adapters.build.build_play import BuildPlay, FolderHolder
from bisector.adapters.build.probe import BuilderFacts
from bisector.errors import BuilderUnwell


@dataclass(slots=True)
class _Scripted(Ansible):
    """Ansible whose builds print what the test says. during: what happens in a play; told its stop, too."""

    outputs: list[str] = field(default_factory=list)
    played: list[Mapping[str, Any]] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    begins: Callable[[], None] = lambda: None
    during: Callable[[Mapping[str, str], Callable[[], bool] | None], None] = lambda build, stop: None

    def play(self, playbook: str, **how: Any) -> Played:
        self.begins()
        self.played.append(how["variables"])
        self.during(how["variables"]["perfbisect_build"], self.stop)
        self.timeouts.append(how["timeout"])
        task = Task("building", how["limit"], "ok", 1.0, {"stdout": self.outputs.pop(0)})
        return Played(playbook, (task,), 1.0, self.inventory)


def test_a_busy_folder_is_waited_for_and_who_has_it_is_told_when_that_changes(tmp_path: Path) -> None:
    busy = "status=busy\nholder=process {} (bisection 'x', state folder /s), since 2026"
    outputs = [busy.format(7), busy.format(7), busy.format(8), "status=busy\nholder=", "status=ok\nrelease=6"]
    played: list[Mapping[str, Any]] = []
    ansible = _Scripted(tmp_path, tmp_path / "log", outputs=outputs, played=played)
    builder = BuilderFacts("/far", False, 2, "gcc", ())
    told: list[str] = []
    facts = BuildPlay(ansible, "box", builder, "process 9 on here", tmp_path).play(
        {"PB_KEY": "k", "PB_OUT": "recipe-0"}, {"perfbisect_pack": "the pack"}, 0, told.append
    )
    assert facts == {"status": "ok", "release": "6"}
    assert told == [
        "waiting for 'box': process 7 (bisection 'x', state folder /s), since 2026 builds in /far/builder",
        "waiting for 'box': process 8 (bisection 'x', state folder /s), since 2026 builds in /far/builder",
        "waiting for 'box': another process builds in /far/builder",
    ]
    assert [variables["perfbisect_pack"] for variables in played] == ["the pack", "", "", "", ""]
    waits = [int(variables["perfbisect_build"]["PB_WAIT"]) for variables in played]
    assert waits[0] < waits[1] == waits[4] <= 60, "who has it is told anew within a minute"
    assert {variables["perfbisect_build"]["PB_KEY"] for variables in played} == {"k"}
    assert played[0]["perfbisect_build"]["PB_HOLDER"].startswith("process 9 on here, since 2")


class _Clock:
    """`awake_seconds` that each play takes an hour of."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def goes_on(self) -> None:
        self.now += 3600.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    clock = _Clock()
    monkeypatch.setattr(build_play, "awake_seconds", clock)
    return clock


def waiting(folder: Path, clock: _Clock, holders: list[str], other: FolderHolder) -> BuildPlay:
    """A build for which the folder is busy so often, and then its own."""
    outputs = [*(f"status=busy\nholder={name}" for name in holders), "status=ok"]
    ansible = _Scripted(folder, folder / "log", outputs=outputs, begins=clock.goes_on)
    builder = BuilderFacts("/far", False, 2, "gcc", ())
    return BuildPlay(ansible, "box", builder, "process 9", folder, timeout=2.5 * 3600, other=other)


def build(play: BuildPlay) -> dict[str, str]:
    return play.play({"PB_KEY": "k", "PB_OUT": "recipe-0"}, {}, 0, lambda _: None)


def test_one_build_that_keeps_the_folder_longer_than_any_may_take_makes_the_builder_unwell(
    tmp_path: Path, clock: _Clock
) -> None:
    other = FolderHolder()
    with pytest.raises(BuilderUnwell, match=r"'box' is held for 4\.0 h by one build, of process 7$") as error:
        build(waiting(tmp_path, clock, ["process 7"] * 9, other))
    assert "a build may take 2.5 h; what holds /far/builder/lock" in error.value.details
    assert "fuser -v /far/builder/lock" in error.value.cure
    again = waiting(tmp_path, clock, ["process 7"] * 9, other)
    with pytest.raises(BuilderUnwell, match=r"5\.0 h"):  # it is tried again, and nobody waits anew
        build(again)
    assert isinstance(again.ansible, _Scripted)
    assert len(again.ansible.played) == 1


def test_builds_that_end_are_waited_for_however_many_they_are(tmp_path: Path, clock: _Clock) -> None:
    other = FolderHolder()
    holders = [f"process {number}" for number in range(3) for _ in range(3)]
    assert build(waiting(tmp_path, clock, holders, other)) == {"status": "ok"}
    unnamed = [""] * 3
    assert build(waiting(tmp_path, clock, unnamed, other)) == {"status": "ok"}
    assert build(waiting(tmp_path, clock, unnamed, other)) == {"status": "ok"}, "it was free meanwhile"


def test_the_builder_ends_a_build_by_itself_before_its_play_is_ended(tmp_path: Path, clock: _Clock) -> None:
    play = waiting(tmp_path, clock, [], FolderHolder())
    build(play)
    assert isinstance(play.ansible, _Scripted)
    assert play.ansible.played[0]["perfbisect_build"]["PB_SECONDS"] == "9000"
    assert play.ansible.timeouts[0] > 9000 + 600


def test_a_builder_whose_clock_is_wrong_has_built_nothing(tmp_path: Path, clock: _Clock) -> None:
    """Its answer has neither kernel nor log: the build would seem to be the commit's failure."""
    play = waiting(tmp_path, clock, [], FolderHolder())
    assert isinstance(play.ansible, _Scripted)
    play.ansible.outputs[:] = ["status=wrong-clock\nahead=-90"]
    with pytest.raises(BuilderUnwell, match="the clock of the builder 'box' is 90 s behind ours"):
        build(play)


@pytest.mark.parametrize("here", [True, False])
def test_what_is_compiled_is_told_of_a_builder_that_has_our_files_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    """A builder far away may have its folder under the same path as another one here."""
    monkeypatch.setattr(build_progress, "_REPORT_SECONDS", 0.0)
    folder, kept = tmp_path / "builder", tmp_path / "play.log"
    (folder / "work").mkdir(parents=True)
    kept.write_text("the log of the play")
    told, stops = list[str](), list[bool]()

    def compiles(build: Mapping[str, str], stop: Callable[[], bool] | None) -> None:
        (folder / "lock.holder").write_text(build["PB_HOLDER"])
        (folder / "work" / "build.log").write_text("  CC      a.o\n")
        assert stop is not None
        stops.append(stop())

    ansible = _Scripted(tmp_path, kept, lambda: True, outputs=["status=ok"], during=compiles)
    builder = BuilderFacts(str(tmp_path), here, 2, "gcc", ())
    BuildPlay(ansible, "box", builder, "process 9", tmp_path, timeout=0.5).play(
        {"PB_KEY": "k", "PB_OUT": "recipe-0"}, {}, 4, told.append
    )
    assert told == (["compiling: 1 of about 4 files"] if here else [])
    assert stops == [True], "a request to stop ends the play"
    assert not kept.exists(), "logs of plays that went well do not fill the disk"
    assert ansible.played[0]["perfbisect_build"]["PB_SECONDS"] == "1", "0 would be no limit"

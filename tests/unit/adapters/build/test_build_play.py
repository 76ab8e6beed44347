"""The build waits for others that build in the same folder of a builder, and says who they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bisector.adapters.ansible.playbook_events import Played, Task
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.build.build_play import BuildPlay
from bisector.adapters.build.probe import BuilderFacts


@dataclass(slots=True)
class _Scripted(Ansible):
    """Ansible whose builds print what the test says."""

    outputs: list[str] = field(default_factory=list)
    played: list[Mapping[str, Any]] = field(default_factory=list)

    def play(self, playbook: str, **how: Any) -> Played:
        self.played.append(how["variables"])
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
    assert waits[0] < waits[1] == waits[4]
    assert {variables["perfbisect_build"]["PB_KEY"] for variables in played} == {"k"}
    assert played[0]["perfbisect_build"]["PB_HOLDER"].startswith("process 9 on here, since 2")

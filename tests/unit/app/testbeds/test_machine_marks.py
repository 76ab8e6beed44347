"""Commands that touch a machine by hand leave one alone that another host's perfbisect has marked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bisector.adapters.machine.machine_reach import MachineReach
from bisector.adapters.system.ssh import SSHRefused
from bisector.app.machines import deep_check
from bisector.app.machines.check_machines import user_of
from bisector.app.testbeds.machine_marks import marked, marked_by_others, require_unmarked
from bisector.app.wiring import Wiring
from bisector.errors import MachineInUse
from bisector.interfaces.cli import run
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.settings import load_settings


class Machine:
    """What the machine says of its mark, and what was asked of it."""

    def __init__(self) -> None:
        self.answers: dict[str, str | Exception] = {}
        self.asked: list[str] = []
        self.seconds: list[str] = []
        self.patience: set[float] = set()

    def run(self, command: Sequence[str]) -> str:
        self.asked.append(command[-1])
        self.seconds.append(command[-3])
        said = self.answers.get(command[-1], "free" if command[-1] in ("ask", "drop") else "ours")
        if isinstance(said, Exception):
            raise said
        return said


USER = "process 7 on box2 (bisection 'x')"


@pytest.fixture(autouse=True)
def machine(own_folders: Path, own_locks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    made = Machine()
    (tmp_path / "power").write_text("off\n")
    state = tmp_path / "power"
    box = {
        "ansible_host": "192.0.2.1",
        "ansible_ssh_private_key_file": "/key",
        "perfbisect_boot_method": "kexec",
        "perfbisect_boot_timeout": 3000,
        "perfbisect_power": {"on": ["sh", "-c", f"echo on >{state}"], "status": ["cat", str(state)]},
    }
    data = {"_meta": {"hostvars": {"box": box, "guest": {"perfbisect_kind": "libvirt"}}}}
    monkeypatch.setattr(
        Wiring, "lab", lab_from_inventory(data | {"testbeds": {"hosts": ["box", "guest"]}}, Path("lab.yml"))
    )

    def run(reach: MachineReach, command: Sequence[str], **_: object) -> str:
        made.patience.add(reach.probe_seconds)
        return made.run(command)

    monkeypatch.setattr(MachineReach, "run", run)
    return made


def test_a_machine_that_another_host_uses_is_not_switched(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.answers["ask"] = f"refused {USER}"
    assert run(["lab", "power", "box", "on"]) == 3
    said = capsys.readouterr().err
    assert f"'box' is in use: {USER}" in said
    assert "remove /var/lib/perfbisect/in-use there" in " ".join(said.split())
    assert (tmp_path / "power").read_text() == "off\n"
    assert run(["lab", "power", "box", "status"]) == 0, "asking disturbs nobody"


def test_a_machine_that_does_not_answer_is_switched_with_a_word(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.answers["ask"] = SSHRefused("no route")
    assert run(["lab", "power", "box", "on"]) == 0
    assert "cannot say whether another host's perfbisect uses it: no route" in capsys.readouterr().err
    assert (tmp_path / "power").read_text() == "on\n"


def test_a_deep_check_refuses_before_it_touches_anything(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.answers["set"] = f"refused {USER}"
    steps: list[str] = []
    monkeypatch.setattr(deep_check, "_steps", lambda *_: steps)
    assert run(["lab", "check", "--deep", "box", "--yes"]) == 3
    assert machine.asked == ["set"]


def test_a_check_knows_of_the_user(machine: Machine, wiring: Wiring) -> None:
    machine.answers["ask"] = f"refused {USER}"
    assert user_of(wiring)("box") == USER
    assert user_of(wiring)("guest") == ""
    machine.answers["ask"] = SSHRefused("no route")
    assert user_of(wiring)("box") == ""


def test_what_is_marked_is_released(machine: Machine, wiring: Wiring) -> None:
    with marked(wiring, "box", 60):
        assert machine.asked == ["set"]
    assert machine.asked == ["set", "drop"]
    assert machine.seconds[0] == "60" and min(machine.patience) > 100, "a slow machine is waited for"
    machine.answers["set"] = SSHRefused("no route")
    with marked(wiring, "box", 60), marked(wiring, "guest", 60):
        pass
    assert machine.asked[2:] == ["set"]
    machine.answers["set"] = f"refused {USER}"
    with pytest.raises(MachineInUse), marked(wiring, "box", 60):
        pytest.fail("it is another's")


@pytest.fixture
def wiring(own_folders: Path) -> Wiring:
    from bisector.schemas.settings import Settings

    return Wiring(Settings(state_dir=own_folders / "state", cache_dir=own_folders / "cache"))


def test_what_other_hosts_cannot_use_has_no_mark_and_one_that_cannot_be_taken_off_ends_by_itself(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = {"perfbisect_kind": "local", "ansible_connection": "local"}
    guest = {
        "perfbisect_kind": "libvirt",
        "perfbisect_libvirt_uri": "qemu+ssh://root@192.0.2.9/system",
        "ansible_ssh_private_key_file": "/key",
    }
    wiring = Wiring(load_settings())
    machine.answers["drop"] = SSHRefused("no route to host")
    with marked(wiring, "box", 60.0):
        pass
    assert machine.asked[-1] == "drop"
    asked = len(machine.asked)
    data = {"_meta": {"hostvars": {"here": local, "far": guest}}, "testbeds": {"hosts": ["here", "far"]}}
    monkeypatch.setattr(Wiring, "lab", lab_from_inventory(data, Path("lab.yml")))
    told: list[str] = []
    for name in ("here", "far"):
        with marked(wiring, name, 60.0):
            assert marked_by_others(wiring, name) == ""
        require_unmarked(wiring, name, told.append)
    assert len(machine.asked) == asked and told == []

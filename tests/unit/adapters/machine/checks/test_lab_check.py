"""Whether machines of a lab are usable: each kind has its own checks; what fails is named with its cure."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bisector.adapters.agent.scratch_disk import check_device
from bisector.adapters.ansible.runner import Ansible
from bisector.adapters.machine.checks import lab_check
from bisector.adapters.machine.checks.lab_check import Around
from bisector.adapters.machine.console import open_console
from bisector.adapters.machine.machine_facts import MachineFacts
from bisector.adapters.machine.machine_needs import BOOT_MIB, BUILDER_MIB, WORK_MIB, finding
from bisector.adapters.machine.power import verified_power
from bisector.adapters.system.host_requirements import Check
from bisector.adapters.system.ssh import SSH
from bisector.errors import InfrastructureError
from bisector.model.machines.lab_findings import LabFinding
from bisector.resources import resource
from bisector.schemas.lab import lab_from_inventory


def look(
    testbed: dict[str, Any], builder: dict[str, Any], user: str = ""
) -> dict[str, dict[str, LabFinding]]:
    listing = {
        "_meta": {"hostvars": {"bed": testbed, "maker": builder}},
        "testbeds": {"hosts": ["bed"]},
        "builders": {"hosts": ["maker"]},
    }
    lab = lab_from_inventory(listing, Path("/lab/hosts.yml"))
    around = Around(Ansible(Path("/playbooks"), lab.inventory), Path("/cache"), lambda _: user)
    rows = {name: [*checks()] for name, checks in lab_check.lab_checks(lab, around)}
    for found in rows.values():
        assert len({one.check for one in found}) == len(found), "nothing is told twice"
    return {name: {one.check: one for one in found} for name, found in rows.items()}


@pytest.fixture
def host_lacks_libvirt(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Check("git", found="2.39", needed="building kernels"),
        Check("libvirtd", wrong="not installed", cure="make deps", needed="guests"),
    ]
    monkeypatch.setattr(lab_check, "checks", lambda _: found)


LOCAL = {"ansible_connection": "local"}


@pytest.mark.usefixtures("host_lacks_libvirt")
def test_this_machine_is_checked_for_what_it_is_used_for_only() -> None:
    found = look({"perfbisect_kind": "libvirt"}, LOCAL)
    guests = found["testbed bed"]["this machine"]
    assert (guests.result, guests.found, guests.cure) == ("wrong", "libvirtd: not installed", "make deps")
    assert found["builder maker"]["this machine"].result == "ok"  # libvirt is not needed for building


@pytest.mark.usefixtures("host_lacks_libvirt")
def test_a_local_testbed_needs_nothing() -> None:
    assert [f.result for f in look({"perfbisect_kind": "local"}, LOCAL)["testbed bed"].values()] == ["ok"]


@pytest.mark.parametrize("script", ["look.sh", "probe.sh"])
def test_a_builder_is_looked_at_for_what_its_first_build_looks_for(script: str) -> None:
    text = (resource("playbooks") / "roles/builder/files" / script).read_text()
    (tools,) = re.findall(r"^ *for tool in (.+); do$", text, re.MULTILINE)
    wanted = tools.replace('"$PB_TOOLCHAIN"', "gcc").replace("${PB_CROSS}", "").replace('"', "").split()
    assert {word for word in wanted if "$" not in word and word != "podman}"} <= {*lab_check.BUILDER_TOOLS}


def test_what_is_ignored_in_the_inventory_is_told() -> None:
    jump = {"ansible_ssh_common_args": "-J gate", "ansible_ssh_user": "me"}
    found = look({"perfbisect_kind": "local", "perfbisect_between_boots": "kexec"}, LOCAL | jump)
    bed = found["testbed bed"]["inventory"]
    assert (bed.result, bed.is_setting) == ("doubtful", True)
    assert bed.found.startswith("/lab/hosts.yml: host 'bed': variable 'perfbisect_between_boots': 'kexec' ")
    assert "inventory" not in found["builder maker"], "nothing connects to it"
    maker = look({"perfbisect_kind": "local"}, jump)["builder maker"]["inventory"]
    assert "host 'maker': variable 'ansible_ssh_user': is not read" in maker.found
    assert "its ProxyJump" in maker.found and "write ansible_user: me; make" in maker.cure


def test_a_builder_without_a_key_is_a_wrong_inventory() -> None:
    found = look({"perfbisect_kind": "local"}, {"ansible_host": "10.0.0.9"})["builder maker"]["ssh"]
    assert found.is_setting and found.found == "the builder 'maker' has no SSH key"
    assert "ansible_ssh_private_key_file" in found.cure


def test_without_a_connection_nothing_that_needs_it_is_tried_and_power_is_asked_all_the_same(
    tmp_path: Path,
) -> None:
    for name in ("key", "known_hosts"):
        (tmp_path / name).write_text("")
    far = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_private_key_file": f"{tmp_path}/key"}
    bed = {
        **far,
        "perfbisect_known_hosts": f"{tmp_path}/known_hosts",
        "perfbisect_boot_method": "kexec",
        "perfbisect_power": {"cycle": ["true"]},
    }
    found = look(bed, LOCAL)["testbed bed"]
    assert not found["ssh"].is_setting and found["ssh"].result == "wrong"
    untried = [name for name, one in found.items() if one.found == "it needs its connection"]
    assert untried == ["root", "tools", "boot", "disk /boot", "disk workload", "clock", "python"]
    assert found["power"].result == "doubtful" and "--deep" in found["power"].cure
    assert found["console"].result == "not tried" and "perfbisect_console" in found["console"].cure


@pytest.mark.parametrize(
    ("stages", "result", "says", "cure"),
    [
        ([["echo", "on"], ["echo", "off"]], "ok", "command cycle: on; command cycle: off", ""),
        (
            [["echo", "on"], ["echo", "dead"]],
            "doubtful",
            "answers: command cycle: 'echo' says neither",
            "asks",
        ),
        ([["echo", "dead"], ["echo", "on"]], "doubtful", "neither 'on' nor 'off'; command cycle: on", "asks"),
        ([["echo", "dead"]], "wrong", "cannot be asked for its state: command cycle: 'echo' says", "asks"),
    ],
)
def test_each_stage_of_the_power_is_asked(
    monkeypatch: pytest.MonkeyPatch, stages: list[list[str]], result: str, says: str, cure: str
) -> None:
    """A management controller that is dead must not be hidden by the power strip behind it."""
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.0)
    power = [{"cycle": ["cycle"], "status": status} for status in stages]
    found = look({"ansible_ssh_private_key_file": "/key", "perfbisect_power": power}, LOCAL)
    one = found["testbed bed"]["power"]
    assert one.result == result and says in one.found and cure in one.cure


def test_a_password_that_a_search_would_miss_is_missed_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PB_NO_PASSWORD", raising=False)
    bmc = {"kind": "ipmi", "address": "127.0.0.1", "user": "me", "password_env": "PB_NO_PASSWORD"}
    power = [bmc, {"cycle": ["true"], "status": ["echo", "on"]}]
    found = look({"ansible_ssh_private_key_file": "/key", "perfbisect_power": power}, LOCAL)
    one = found["testbed bed"]["power"]
    assert one.is_setting and one.found == "the variable PB_NO_PASSWORD is not set"


def test_a_key_that_is_not_pinned_is_no_matter_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("")
    bed = {
        "ansible_host": "127.0.0.1",
        "ansible_ssh_private_key_file": f"{tmp_path}/key",
        "perfbisect_known_hosts": f"{tmp_path}/none",
    }
    found = look(bed, LOCAL)["testbed bed"]
    assert found["host key"].result == "wrong" and "ssh-keyscan" in found["host key"].cure
    assert found["ssh"].result == "not tried"


def test_the_host_key_of_a_builder_is_looked_for_where_its_builds_do(tmp_path: Path) -> None:
    """Ansible gives these arguments to `ssh`; the check looked into ~/.ssh/known_hosts all the same."""
    (tmp_path / "key").write_text("")
    maker = {
        "ansible_host": "127.0.0.1",
        "ansible_ssh_private_key_file": f"{tmp_path}/key",
        "ansible_ssh_common_args": f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={tmp_path}/known",
    }
    found = look({"perfbisect_kind": "local"}, maker)["builder maker"]
    assert found["host key"].result == "wrong" and f"{tmp_path}/known" in found["host key"].cure


def test_the_console_of_a_machine_that_is_used_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening it would end the session of whoever measures there."""
    heard = tmp_path / "heard"
    bed = {
        "ansible_host": "127.0.0.1",
        "ansible_port": 1,
        "ansible_ssh_private_key_file": "/none",
        "perfbisect_console": ["touch", str(heard)],
    }
    reached_with(monkeypatch, MachineFacts(room(BOOT_MIB, WORK_MIB)))
    assert look(KEXEC, LOCAL, user="the worker 'w1'")["testbed bed"]["python"].result == "not tried"
    monkeypatch.undo()
    found = look(bed, LOCAL, user="the worker 'w1'")["testbed bed"]
    assert "the worker 'w1'" in found["console"].found and found["python"].result == "not tried"
    assert not heard.exists()


@pytest.mark.parametrize(
    ("script", "seconds", "result", "said"),
    [
        ("echo text; sleep 30", 3.0, "ok", "it can be opened; the machine printed something"),
        ("sleep 30", 0.2, "ok", "it can be opened; silent now"),
        ("exit 1", 30.0, "wrong", "the console cannot be opened, or ended at once"),
    ],
)
def test_a_console_is_opened_for_a_moment(
    script: str, seconds: float, result: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_check, "_CONSOLE_SECONDS", seconds)
    bed = {"ansible_ssh_private_key_file": "/none", "perfbisect_console": ["sh", "-c", script]}
    found = look(bed, LOCAL)["testbed bed"]["console"]
    assert (found.result, found.found) == (result, said)


def test_a_console_server_that_does_not_answer_for_long_is_no_silent_console(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host that drops packets is given up after ten seconds, 'no route' after three."""

    def connect(*_: object) -> None:
        time.sleep(1.0)
        raise OSError(113, "No route to host")

    monkeypatch.setattr(lab_check, "_CONSOLE_SECONDS", 0.2)
    monkeypatch.setattr(open_console, "TcpStream", connect)
    console = {"kind": "tcp", "address": "192.0.2.20", "port": 3004}
    bed = {"ansible_ssh_private_key_file": "/none", "perfbisect_console": console}
    found = look(bed, LOCAL)["testbed bed"]["console"]
    assert (found.result, found.found) == ("wrong", "the console cannot be opened, or ended at once")
    assert "No route to host" in found.details


def test_a_machine_without_python_is_told_with_what_to_install() -> None:
    class Broken:
        def play(self, *_: object, **__: object) -> None:
            raise InfrastructureError("'box' cannot run modules", details="/bin/sh: python3: not found")

    lab = lab_from_inventory({"testbeds": {"hosts": ["box"]}}, Path("lab.yml"))
    ssh = SimpleNamespace(host="root@box")
    with pytest.raises(InfrastructureError, match="cannot run a module there") as error:
        lab_check._runs_modules(lab.testbeds[0], cast(SSH, ssh), cast(Ansible, Broken()))
    assert "the package python3" in error.value.cure and "not found" in error.value.details


def test_the_host_of_guests_elsewhere_is_looked_at_and_not_this_machine() -> None:
    far = {"perfbisect_kind": "libvirt", "perfbisect_libvirt_uri": "qemu+ssh://root@192.0.2.1/system"}
    found = look(far, {"ansible_connection": "local"})["testbed bed"]
    assert found["ssh"].result == "wrong" and "no SSH key for 192.0.2.1" in found["ssh"].found
    assert found["libvirt"].result == "not tried" and "this machine" not in found


def test_a_strip_without_status_is_no_doubt_where_another_stage_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verified_power, "_PAUSE_SECONDS", 0.0)
    power = [{"cycle": ["cycle"], "status": ["echo", "on"]}, {"cycle": ["cycle"]}]
    found = look({"ansible_ssh_private_key_file": "/key", "perfbisect_power": power}, LOCAL)
    one = found["testbed bed"]["power"]
    assert (one.result, one.found) == ("ok", "all stages answer: command cycle: on; command cycle: unknown")


@pytest.mark.parametrize(
    ("state", "opens", "result"),
    [("off", True, "wrong"), ("lost", True, "wrong"), ("silent", False, "wrong"), ("silent", True, "ok")],
)
def test_a_console_that_was_looked_at_is_closed(
    monkeypatch: pytest.MonkeyPatch, state: str, opens: bool, result: str
) -> None:
    """A BMC has one console: the next bisection would not get it."""
    closed: list[str] = []
    reasons = ["", "in use"]
    console = SimpleNamespace(
        state=lambda: state,
        opened=lambda seconds: opens,
        close=lambda: closed.append("it"),
        reason=lambda: reasons.pop(),
        end=lambda: "its last words",
    )
    monkeypatch.setattr(lab_check, "_CONSOLE_SECONDS", 0.0)
    monkeypatch.setattr(lab_check, "open_console", lambda *_: console)
    bed = {"ansible_ssh_private_key_file": "/key", "perfbisect_console": ["cat"]}
    for why in ("in use", "its last words"):
        found = look(bed, LOCAL)["testbed bed"]["console"]
        assert (found.result, found.details) == (result, why if result == "wrong" else "")
    assert closed == ["it"] * 2


def test_a_host_of_guests_whose_libvirt_does_not_run_is_told() -> None:
    ssh: Any = SimpleNamespace(run=lambda words, check: SimpleNamespace(code=0))
    assert lab_check._has_libvirt(ssh) == "its daemon runs"
    ssh = SimpleNamespace(run=lambda words, check: SimpleNamespace(code=1))
    with pytest.raises(InfrastructureError, match="libvirt does not run there") as error:
        lab_check._has_libvirt(ssh)
    assert "libvirtd" in error.value.cure


def reached_with(
    monkeypatch: pytest.MonkeyPatch, facts: MachineFacts | None, said: str = "", code: int = 0
) -> None:
    """Have each machine be reached, tell these facts (None: its shell runs nothing) and say this."""
    ssh = SimpleNamespace(host="root@bed", run=lambda *_, **__: SimpleNamespace(code=code, output=said))

    @contextmanager
    def connected(_: object) -> Iterator[tuple[list[LabFinding], Any]]:
        yield [LabFinding("ssh", "ok", "it answers")], ssh

    def dead() -> str:
        raise InfrastructureError("no shell")

    monkeypatch.setattr(lab_check, "connected", connected)
    monkeypatch.setattr(lab_check, "facts_of", lambda *_: (finding("shell", dead), facts))
    monkeypatch.setattr(lab_check, "_runs_modules", lambda spec, *_: f"asked of {spec.name}")


def room(boot: int, work: int, **more: str) -> dict[str, str]:
    tools = ("sh", "tar", "mkdir", "gzip", "sha256sum", "awk", "kexec", *lab_check.BUILDER_TOOLS)
    there = {f"tool.{name}": "yes" for name in tools}
    return {**there, "uid": "0", "boot.free_kib": f"{boot << 10}", "work.free_kib": f"{work << 10}", **more}


KEXEC = {"ansible_ssh_private_key_file": "/key", "perfbisect_boot_method": "kexec"}


def test_a_machine_that_has_all_is_well_and_each_thing_that_it_lacks_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["root", "tools", "boot", "disk /boot", "disk workload", "clock"]
    reached_with(monkeypatch, MachineFacts(room(BOOT_MIB, WORK_MIB)))
    found = look(KEXEC, LOCAL)["testbed bed"]
    assert [found[name].result for name in names] == ["ok"] * 6
    assert found["python"].found == "asked of bed" and "device" not in found
    assert found["power"].result == "not tried" and "perfbisect_power" in found["power"].cure
    lacking = room(BOOT_MIB - 1, WORK_MIB - 1, uid="1000", kexec_disabled="1")
    del lacking["tool.kexec"], lacking["tool.awk"]
    reached_with(monkeypatch, MachineFacts(lacking, skew=1000.0))
    found = look(KEXEC, LOCAL)["testbed bed"]
    assert [found[name].result for name in names] == [*["wrong"] * 5, "doubtful"]
    assert found["tools"].found == "missing: awk, kexec"
    assert f"/boot has {BOOT_MIB - 1} MiB" in found["disk /boot"].found


def test_a_builder_that_lacks_something_is_told_before_a_build_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> str:
        raise InfrastructureError("no sandbox")

    names, far = ["tools", "disk", "clock", "sandbox"], {"ansible_ssh_private_key_file": "/key"}
    monkeypatch.setattr(lab_check, "has_sandbox", none)
    for facts, results in (
        (MachineFacts(room(1, BUILDER_MIB)), ["ok", "ok", "ok", "wrong"]),
        (MachineFacts(room(1, BUILDER_MIB - 1), skew=100.0), ["ok", "wrong", "doubtful", "wrong"]),
        (MachineFacts({"uid": "0"}, skew=130.0), ["wrong", "doubtful", "wrong", "wrong"]),
    ):
        reached_with(monkeypatch, facts)
        found = look({"perfbisect_kind": "local"}, far)["builder maker"]
        assert [found[name].result for name in names] == results
        assert found["python"].found == "asked of maker"


def test_each_machine_is_asked_about_its_own_folder_and_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    reached_with(monkeypatch, None)
    asked: list[tuple[str, set[str]]] = []

    def facts_of(_: object, folder: str, names: Sequence[str]) -> tuple[LabFinding, MachineFacts]:
        asked.append((folder, {*names}))
        return LabFinding("shell", "ok", ""), MachineFacts(room(BOOT_MIB, BUILDER_MIB))

    monkeypatch.setattr(lab_check, "facts_of", facts_of)
    monkeypatch.setattr(lab_check, "has_sandbox", lambda _, folder: f"in {folder}")
    key, guests = {"ansible_ssh_private_key_file": "/key"}, "qemu+ssh://root@192.0.2.1/system"
    maker = look({**KEXEC, "perfbisect_workdir": "/srv/w"}, {**key, "perfbisect_folder": "/srv/b"})[
        "builder maker"
    ]
    look({"perfbisect_kind": "libvirt", "perfbisect_libvirt_uri": guests}, LOCAL)
    assert [folder for folder, _ in asked[:2]] == ["/srv/w", "/srv/b"]
    assert maker["sandbox"].found == "in /srv/b"
    assert {"awk", "kexec"} <= asked[0][1] and {*lab_check.BUILDER_TOOLS} <= asked[1][1]
    assert {"qemu-system-x86_64", "qemu-kvm", "xargs"} <= asked[2][1]


def test_a_builder_that_is_not_reached_has_nothing_else_tried() -> None:
    maker = look({"perfbisect_kind": "local"}, {"ansible_host": "10.0.0.9"})["builder maker"]
    untried = [name for name, one in maker.items() if one.found == "it needs its connection"]
    assert untried == ["tools", "sandbox", "disk", "clock", "python"]


def test_a_machine_whose_shell_runs_nothing_has_nothing_else_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    reached_with(monkeypatch, None)
    guests = {"perfbisect_kind": "libvirt", "perfbisect_libvirt_uri": "qemu+ssh://root@192.0.2.1/system"}
    found = look(KEXEC, {"ansible_ssh_private_key_file": "/key"})
    bed = found["testbed bed"]
    untried = [name for name, one in bed.items() if one.found == "it needs its shell"]
    assert untried == ["root", "tools", "boot", "disk /boot", "disk workload", "clock", "python"]
    assert bed["shell"].result == found["builder maker"]["shell"].result == "wrong"
    assert [*look(guests, LOCAL)["testbed bed"]] == ["ssh", "shell"]


@pytest.mark.parametrize(("said", "result"), [("ok\n", "ok"), ("it is mounted or in use\n", "wrong")])
def test_a_device_that_workloads_may_overwrite_is_looked_at_and_its_size_is_each_workloads_matter(
    monkeypatch: pytest.MonkeyPatch, said: str, result: str
) -> None:
    reached_with(monkeypatch, MachineFacts(room(BOOT_MIB, WORK_MIB)), said)
    asked: list[tuple[str, int]] = []

    def noted(path: str, size: int, *more: Any) -> None:
        asked.append((path, size))
        check_device(path, size, *more)

    monkeypatch.setattr(lab_check, "check_device", noted)
    device = look({**KEXEC, "perfbisect_block_device": "/dev/sdz"}, LOCAL)["testbed bed"]["device"]
    assert (device.result, asked) == (result, [("/dev/sdz", 0)])


@pytest.mark.parametrize("code", [0, 1, 127])
def test_a_host_of_guests_is_asked_for_its_tools_and_its_libvirt(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    reached_with(monkeypatch, MachineFacts({}), code=code)
    guests = {"perfbisect_kind": "libvirt", "perfbisect_libvirt_uri": "qemu+ssh://root@192.0.2.1/system"}
    found = look(guests, LOCAL)["testbed bed"]
    assert found["tools"].result == "wrong" and found["libvirt"].result == ("wrong" if code else "ok")


def test_modules_are_run_over_the_way_that_was_checked_and_end_nobody_elses_play() -> None:
    given: dict[str, Any] = {}

    class Plays:
        def play(self, *_: object, **more: Any) -> Any:
            given.update(more)
            said = {"ansible_facts": {"discovered_interpreter_python": "/usr/bin/python3.11"}}
            return SimpleNamespace(tasks=[SimpleNamespace(result={}), SimpleNamespace(result=said)])

    lab = lab_from_inventory({"testbeds": {"hosts": ["box"]}}, Path("lab.yml"))
    ssh = SimpleNamespace(host="root@box")
    text = lab_check._runs_modules(lab.testbeds[0], cast(SSH, ssh), cast(Ansible, Plays()))
    assert text == "Ansible runs modules with /usr/bin/python3.11"
    assert (given["limit"], given["connection"], given["reap"]) == ("box", "root@box", False)

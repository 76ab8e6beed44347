"""Settings that the agent makes are put back, however it ends. The 'machine' is a folder of files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bisector.adapters.agent.payload import AGENT
from bisector.adapters.system.architectures import X86_64
from bisector.resources import resource

SOURCES = resource("playbooks") / "roles" / "measure" / "files" / "agent"
STATE = """\
#!/bin/sh
# Like roles/quiet/files/host.sh: a setting that is no file.
[ "$1" = missing ] && exit 3
[ "$2" = get ] && exec cat "state.$1"
[ "$1" = stubborn ] && echo "it will not" && exit 1
[ "$1" = halfway ] && [ "$3" = off ] && echo apt >"state.$1" && echo "apt is not loaded" && exit 5
echo "$3" >"state.$1"
"""


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("agent") / AGENT
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    subprocess.run([*X86_64.compiler(), "-O1", "-o", str(program), *sources], check=True)
    return program


@pytest.fixture
def machine(tmp_path: Path, agent: Path) -> Path:
    """A folder with what a machine has, and the agent in it."""
    (tmp_path / AGENT).hardlink_to(agent)
    for cpu in range(3):
        (tmp_path / f"governor{cpu}").write_text("powersave\n" if cpu < 2 else "schedutil\n")
    (tmp_path / "thp").write_text("always [madvise] never\n")
    (tmp_path / "script").write_text(STATE)
    for name in ("timers", "stubborn"):
        (tmp_path / f"state.{name}").write_text("cron,apt\n")
    (tmp_path / "facts").touch()
    lines = {
        "governor": f"{tmp_path}/governor*",
        "thp": f"{tmp_path}/thp",
        "turbo": f"{tmp_path}/nothing*",
        **dict.fromkeys(("missing", "stubborn", "timers"), "!script"),
    }
    (tmp_path / "settings").write_text("".join(f"{name} {place} off\n" for name, place in lines.items()))
    return tmp_path


def state(machine: Path) -> dict[str, str]:
    wanted = ("governor0", "governor1", "governor2", "thp", "state.timers")
    return {name: (machine / name).read_text().split("\n")[0] for name in wanted}


BEFORE = {
    "governor0": "powersave",
    "governor1": "powersave",
    "governor2": "schedutil",
    "thp": "madvise",  # what stood in brackets, as the kernel takes it
    "state.timers": "cron,apt",
}


def prepare(machine: Path) -> dict[str, str]:
    command = [f"./{AGENT}", "prepare", "facts", "settings"]
    done = subprocess.run(command, cwd=machine, capture_output=True, text=True, check=True)
    told: dict[str, str] = json.loads(done.stdout)
    return told


@pytest.fixture
def serving(machine: Path) -> Iterator[subprocess.Popen[str]]:
    prepare(machine)
    command = [f"./{AGENT}", "serve", "--undo", "yes", "--", "/bin/sleep", "60"]
    with subprocess.Popen(
        command, cwd=machine, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert "hello" in process.stdout.readline()
        yield process
        process.kill()


def wait_until_undone(machine: Path) -> None:
    deadline = time.monotonic() + 20
    while (machine / "perfbisect-undo").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert {name: text.strip() for name, text in state(machine).items()} == BEFORE


def test_before_and_after_are_told_and_what_cannot_be_set_as_well(machine: Path) -> None:
    told = {k.removeprefix("setting."): v for k, v in prepare(machine).items() if k.startswith("setting.")}
    assert (told["governor.before"], told["governor.after"]) == ("powersave, schedutil", "off")
    assert (told["timers.before"], told["timers.after"]) == ("cron,apt", "off")
    assert (told["turbo.before"], told["turbo.after"]) == ("absent", "absent")
    assert (told["missing.before"], told["missing.after"]) == ("absent", "absent")
    assert told["stubborn.error"] == "it will not"
    assert set(state(machine).values()) == {"off"}


def test_an_orderly_end_puts_everything_back_before_it_is_over(
    machine: Path, serving: subprocess.Popen[str]
) -> None:
    serving.communicate("quit\n", timeout=20)
    assert {name: text.strip() for name, text in state(machine).items()} == BEFORE


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_that_is_killed_with_its_group_leaves_nothing_changed(
    machine: Path, serving: subprocess.Popen[str], how: signal.Signals
) -> None:
    assert serving.stdin is not None
    serving.stdin.write("run\n")
    serving.stdin.flush()
    os.killpg(serving.pid, how)
    serving.wait(20)
    wait_until_undone(machine)


def add_setting(machine: Path, name: str, place: str, before: str) -> None:
    """Have the machine be prepared with one setting more, which is `before` now."""
    with (machine / "settings").open("a") as settings:
        settings.write(f"{name} {place} off\n")
    (machine / f"state.{name}").write_text(f"{before}\n")


@pytest.mark.parametrize("place", ["!script", "state.long"])
def test_a_long_value_is_put_back_whole(machine: Path, place: str) -> None:
    many = ",".join(f"update-notifier-{number}.timer" for number in range(40))  # Ubuntu has 20
    add_setting(machine, "long", place, many)
    assert many.startswith(prepare(machine)["setting.long.before"][:200])
    assert (machine / "state.long").read_text().strip() == "off"
    subprocess.run([f"./{AGENT}", "undo"], cwd=machine, check=True)
    assert (machine / "state.long").read_text().strip() == many


def test_what_could_be_set_in_part_is_put_back(machine: Path) -> None:
    add_setting(machine, "halfway", "!script", "cron,apt")
    assert prepare(machine)["setting.halfway.error"] == "apt is not loaded"
    assert (machine / "state.halfway").read_text().strip() == "apt", "cron is off"
    subprocess.run([f"./{AGENT}", "undo"], cwd=machine, check=True)
    assert (machine / "state.halfway").read_text().strip() == "cron,apt"


def test_more_changes_than_a_large_machine_has_are_all_put_back(machine: Path) -> None:
    for number in range(5000):
        (machine / f"idle{number}").write_text("on\n")
    with (machine / "settings").open("a") as settings:
        settings.write(f"cstates {machine}/idle* off\n")
    add_setting(machine, "last", "state.last", "on")
    prepare(machine)
    subprocess.run([f"./{AGENT}", "undo"], cwd=machine, check=True)
    assert {path.read_text().strip() for path in machine.glob("idle*")} == {"on"}
    assert (machine / "state.last").read_text().strip() == "on"


HOST_SCRIPT = resource("playbooks") / "roles" / "quiet" / "files" / "host.sh"


def by_hand(machine: Path, *words: str) -> str:
    """Run what the playbook 'quiet' runs on a machine, with its note in the folder."""
    environment = {**os.environ, "PB_NOTE": str(machine / "note")}
    command = ["sh", str(HOST_SCRIPT), *words]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_a_machine_prepared_by_hand_is_told_before_and_put_back_to_what_was_found(machine: Path) -> None:
    before = state(machine)
    wanted = (
        f"governor {machine}/governor* performance\nthp {machine}/thp never\nturbo {machine}/nothing* 1\n"
        f"stuck {machine} x\n"
    )
    told = by_hand(machine, "check", wanted)
    assert "governor: powersave,schedutil -> performance (3 of 3 files)" in told
    assert "thp: madvise -> never (1 of 1 files)" in told
    assert "turbo: there is no such setting here" in told
    assert state(machine) == before and not (machine / "note").exists(), "--check changes nothing"

    told = by_hand(machine, "quiet", wanted)
    assert "stuck: not set: the kernel refuses x" in told
    assert state(machine)["governor2"] == "performance"
    (machine / "governor1").write_text("ondemand\n")
    by_hand(machine, "quiet", wanted)  # again, as after a kill: what was found at first is what counts
    told = by_hand(machine, "restore", "")
    assert "governor: back to powersave (2 files)" in told and "thp: back to madvise" in told
    files = {name: text for name, text in before.items() if name != "thp"}
    assert {name: state(machine)[name] for name in files} == files
    assert (machine / "thp").read_text() == "madvise", "a file of sysfs shows all values again"
    assert not (machine / "note").exists()
    assert "nothing is noted" in by_hand(machine, "restore", "")


def test_what_is_gone_needs_no_undo_and_other_failures_still_count(machine: Path) -> None:
    """An interrupt's files vanish with its device: 'restore' failed until the next reboot."""
    before = state(machine)
    by_hand(machine, "quiet", f"governor {machine}/governor* performance\n")
    (machine / "governor1").unlink()
    (machine / "governor2").unlink()
    (machine / "governor2").mkdir()  # it cannot be written
    with pytest.raises(subprocess.CalledProcessError) as error:
        by_hand(machine, "restore", "")
    assert "governor2: cannot be put back to schedutil" in error.value.stderr
    assert "governor1" not in error.value.stderr and (machine / "note").exists()
    (machine / "governor2").rmdir()
    told = by_hand(machine, "restore", "")
    assert f"governor: {machine}/governor1 is gone" in told
    assert (machine / "governor0").read_text().strip() == before["governor0"] and not (
        machine / "note"
    ).exists()

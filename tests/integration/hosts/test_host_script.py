"""The script that switches swap, timers and irqbalance, with tools that only note their calls."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bisector.adapters.agent.payload import HOST
from bisector.resources import resource

HOST_SCRIPT = resource("playbooks") / "roles" / "quiet" / "files" / "host.sh"


def test_the_host_script_names_what_it_can_switch_on_again(tmp_path: Path) -> None:
    for what in ("swap", "timers"):
        done = subprocess.run(["sh", HOST_SCRIPT, what, "get"], capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stderr
        assert done.returncode == 3 or len(done.stdout.split()) == 1
    done = subprocess.run(["sh", HOST_SCRIPT, "swap", "off"], capture_output=True, text=True, check=False)
    assert (done.returncode, HOST) == (2, "perfbisect-host")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with a machine's own tools, which only note their call; a unit runs if its file is there."""
    folder = tmp_path / "tools"
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    folder.mkdir()
    texts = {
        "swapon": 'case "$*" in *sdb*) exit 255 ;; esac',
        "systemctl": f'[ "$1" != --quiet ] || {{ [ -e {tmp_path}/$3 ]; exit; }}\n'
        f"[ $1 != list-units ] || sed 's/$/ loaded active/' {tmp_path}/timers\n"
        f"case $1 in start) touch {tmp_path}/$2 ;; stop) rm {tmp_path}/$2 ;; esac",
    }
    for name, text in texts.items():
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/calls\n{text}\n')
        (folder / name).chmod(0o755)
    return folder


def on_a_host(tools: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine in a folder."""
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "PB_ROOT": str(tools.parent)}
    command = ["sh", str(HOST_SCRIPT), *words]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def test_swap_comes_back_with_its_priorities_and_one_that_fails_keeps_no_other_off(tools: Path) -> None:
    (tools.parent / "proc/swaps").write_text(
        "Filename\tType\tSize\tUsed\tPriority\n/dev/sdb2   partition\t9\t0\t-2\n"
        "/dev/zram0    partition\t9\t0\t100\n/dev/sda2   partition\t9\t0\t-3\n"
    )
    (tools.parent / "dev").mkdir()
    for name in ("sdb2", "zram0", "sda2"):
        (tools.parent / "dev" / name).touch()
    told = on_a_host(tools, "swap", "get").stdout.strip()
    assert told == "/dev/sdb2,/dev/zram0:100,/dev/sda2"
    done = on_a_host(tools, "swap", "set", told)
    assert done.returncode == 1, "one of them is told"
    calls = (tools.parent / "calls").read_text().splitlines()
    assert calls == ["swapon /dev/sdb2", "swapon -p 100 /dev/zram0", "swapon /dev/sda2"]


def test_swap_that_is_gone_is_no_failure(tools: Path) -> None:
    (tools.parent / "proc/swaps").touch()
    (tools.parent / "dev").mkdir()
    (tools.parent / "dev/zram0").touch()
    assert on_a_host(tools, "swap", "set", "/dev/sdb2,/dev/zram0:100").returncode == 0
    assert (tools.parent / "calls").read_text() == "swapon -p 100 /dev/zram0\n"


def test_irqbalance_is_stopped_before_interrupts_are_moved_and_started_where_it_ran(tools: Path) -> None:
    unit = tools.parent / "irqbalance.service"
    assert on_a_host(tools, "irqs", "get").stdout.strip() == "no-irqbalance"
    assert on_a_host(tools, "irqs", "set", "0-3").returncode == 0
    on_a_host(tools, "irqs", "set", "no-irqbalance")
    assert not unit.exists() and "stop" not in (tools.parent / "calls").read_text()
    unit.touch()
    before = on_a_host(tools, "irqs", "get").stdout.strip()
    assert on_a_host(tools, "irqs", "set", "0-3").returncode == 0
    assert (before, unit.exists()) == ("irqbalance", False)
    assert on_a_host(tools, "irqs", "get").stdout.strip() == "no-irqbalance"
    assert on_a_host(tools, "irqs", "set", before).returncode == 0 and unit.exists()


def test_a_timer_that_nobody_could_start_again_is_not_stopped(tools: Path) -> None:
    """Those of systemd-run are gone once they are stopped, and with them what they were to start."""
    machine = tools.parent
    (machine / "timers").write_text("apt-daily.timer\nrun-r1f.timer\n")
    for unit in ("apt-daily.timer", "run-r1f.timer"):
        (machine / unit).touch()
    (machine / "run/systemd/transient").mkdir()
    (machine / "run/systemd/transient/run-r1f.timer").touch()
    before = on_a_host(tools, "timers", "get").stdout.strip()
    assert on_a_host(tools, "timers", "set", "off").returncode == 0
    assert (before, "run-r1f" in (machine / "calls").read_text()) == ("apt-daily.timer", False)
    assert (machine / "run-r1f.timer").exists() and not (machine / "apt-daily.timer").exists()
    assert (
        on_a_host(tools, "timers", "set", before).returncode == 0 and (machine / "apt-daily.timer").exists()
    )

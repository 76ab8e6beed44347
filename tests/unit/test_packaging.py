"""What packages carry: systemd's own programs read the units, and each setting that they give is one."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from bisector.app.artefacts.shared_files import FINISHING_SECONDS
from bisector.engine.executor import _SHUTDOWN_SECONDS
from bisector.errors import ExitCode
from bisector.model.leases import HEARTBEAT_TTL_SECONDS
from bisector.schemas.machine.testbed_variables import TestbedVariables
from bisector.schemas.settings import VARIABLE_PREFIX, Settings
from tests.support.command_line import parse

ROOT = Path(__file__).resolve().parents[2]
SYSTEMD = ROOT / "packaging" / "systemd"
WORKER, WEB = SYSTEMD / "perfbisect-worker@.service", SYSTEMD / "perfbisect-web.service"
CONTAINERFILE = ROOT / "packaging" / "container" / "Containerfile"
OPTIONS = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)


def options(unit: Path) -> dict[str, str]:
    return dict(OPTIONS.findall(unit.read_text()))


def verify(folder: Path, unit: Path, text: str) -> str:
    """Return what systemd says of a unit whose program is one that this machine has."""
    (folder / unit.name).write_text(text.replace("/opt/perfbisect/bin/perfbisect", "/bin/true"))
    named = folder / unit.name.replace("@.", "@rack1.")
    if named.name != unit.name:
        named.symlink_to(folder / unit.name)
    command = ["systemd-analyze", "verify", "--man=no", str(named)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    named.unlink()
    return done.stderr + ("" if done.returncode == 0 else f"exit code {done.returncode}")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", [WORKER, WEB], ids=["worker", "web"])
def test_systemd_accepts_the_units(tmp_path: Path, unit: Path) -> None:
    text = unit.read_text()
    assert verify(tmp_path, unit, text) == ""
    assert "Unknown key" in verify(tmp_path, unit, text.replace("KillMode=", "KilMode=")), "it looks"


@pytest.mark.parametrize("unit", [WORKER, WEB], ids=["worker", "web"])
def test_units_start_what_the_command_line_has(unit: Path) -> None:
    program, _, arguments = options(unit)["ExecStart"].replace("%i", "rack1").partition(" ")
    assert Path(program).name == "perfbisect"
    parse(f"perfbisect {arguments}")


def test_a_worker_that_is_stopped_has_time_and_a_restarted_one_a_free_name() -> None:
    unit = options(WORKER)
    # A machine boots its own kernel; where that does not come up, it is power-cycled, and waited for again.
    giving_back = 2 * TestbedVariables.model_fields["boot_timeout"].default
    assert int(unit["TimeoutStopSec"]) > _SHUTDOWN_SECONDS + FINISHING_SECONDS + giving_back
    for text in (CONTAINERFILE.read_text(), (ROOT / "docs/how-to/run-a-lab.md").read_text()):
        (seconds,) = re.findall(r"podman run .*--stop-timeout (\d+) ", text)
        assert seconds == unit["TimeoutStopSec"], "podman kills after 10 s"
    assert int(unit["RestartSec"]) > HEARTBEAT_TTL_SECONDS
    assert (unit["KillMode"], unit["KillSignal"]) == ("mixed", "SIGTERM")
    assert (unit["Restart"], int(unit["RestartPreventExitStatus"])) == ("on-failure", ExitCode.WRONG_REQUEST)


def test_builds_in_their_sandbox_are_not_shut_out() -> None:
    forbidden = {
        "RestrictNamespaces",
        "SystemCallFilter",
        "ProtectKernelTunables",
        "PrivateUsers",
        "PrivateTmp",
    }
    assert not forbidden & set(options(WORKER))


@pytest.mark.parametrize("unit", [WORKER, WEB], ids=["worker", "web"])
def test_temporary_files_can_be_made(unit: Path) -> None:
    """Python looks for a folder in /tmp and /var/tmp; with neither the first call of git fails."""
    given = options(unit)
    assert given["ProtectSystem"] == "strict"
    writable = given["ReadWritePaths"].split()
    assert given.get("PrivateTmp") == "yes" or {"/tmp", "/var/tmp"} <= set(writable)


@pytest.mark.parametrize("path", [*SYSTEMD.iterdir(), CONTAINERFILE], ids=lambda path: path.name)
def test_variables_are_settings(path: Path) -> None:
    known = {f"{VARIABLE_PREFIX}{name.upper()}" for name in Settings.model_fields} | {"PERFBISECT_TOKEN"}
    assert set(re.findall(r"\bPERFBISECT_[A-Z_]+", path.read_text())) <= known


def test_the_container_installs_packages_of_the_list_and_runs_as_nobody_of_power() -> None:
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    *_, packages = re.findall(r"apt-get install -y --no-install-recommends ([^&\n]+)", text)
    listed = {
        line.split()[0]
        for line in (ROOT / "packaging/debian/packages").read_text().splitlines()
        if line and not line.startswith("#")
    }
    # On a host, who has no BMC needs no ipmitool, and who has no such kernel no rpm; in the container nobody
    # could add them.
    assert set(packages.split()) - listed == {"python3", "tini", "ipmitool", "rpm", "zstd", "tzdata"}
    assert re.findall(r"^USER (.+)$", text, re.MULTILINE) == ["perfbisect"]
    for source in re.findall(r"^COPY ([^-.]\S*|\.\w\S*) ", text, re.MULTILINE):
        assert (ROOT / source).exists()


def test_the_wheel_carries_the_units() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert (ROOT / "packaging/systemd", shared["packaging/systemd"]) == (SYSTEMD, "share/perfbisect/systemd")

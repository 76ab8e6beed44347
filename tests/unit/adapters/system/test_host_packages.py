"""What is missing is installed by one script, as root or with sudo, and libvirt-python by pip."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from bisector.adapters.system import host_packages, host_requirements
from bisector.errors import InfrastructureError
from bisector.resources import resource

LIST = resource("packaging") / "debian" / "packages"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the programs that the script calls: gcc is missing, apt-get writes down what it is told."""
    for name in ("sh", "sed", "awk", "env"):
        (tmp_path / name).symlink_to(
            next(Path(p) / name for p in ("/bin", "/usr/bin") if (Path(p) / name).exists())
        )
    write(tmp_path, "dpkg-query", '[ "$4" = gcc ] && exit 1; echo installed')
    write(tmp_path, "id", "echo 0")
    write(tmp_path, "apt-get", f'echo "$*" >> {tmp_path}/done')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host_packages, "has_libvirt", lambda: True)
    return tmp_path


def write(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!{folder}/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_looking_runs_nothing_and_installing_takes_the_same_packages(programs: Path) -> None:
    update, install = host_packages.missing()
    assert update.endswith(" update")
    assert install.startswith("env DEBIAN_FRONTEND=noninteractive apt-get ")
    assert install.endswith(" install --no-install-recommends gcc")
    assert not (programs / "done").exists()
    host_packages.install_missing()
    done = (programs / "done").read_text(encoding="utf-8").splitlines()
    assert [line.split("=600 ")[1] for line in done] == ["update", "install --no-install-recommends gcc"]


def test_nothing_is_done_where_nothing_is_missing(programs: Path) -> None:
    write(programs, "dpkg-query", "echo installed")
    assert host_packages.missing() == []
    host_packages.install_missing()
    assert not (programs / "done").exists()


def test_another_user_takes_sudo_and_without_it_is_told_what_root_must_do(programs: Path) -> None:
    write(programs, "id", "echo 1000")
    with pytest.raises(InfrastructureError, match="neither root nor sudo") as caught:
        host_packages.missing()
    assert caught.value.cure == "As root: apt-get install --no-install-recommends gcc"
    with pytest.raises(InfrastructureError, match="not installed"):
        host_packages.install_missing()
    write(programs, "sudo", f'echo sudo >> {programs}/done; exec "$@"')
    assert all(line.startswith("sudo env ") for line in host_packages.missing())
    host_packages.install_missing()
    assert (programs / "done").read_text(encoding="utf-8").startswith("sudo\n")


def test_a_failure_of_apt_is_told(programs: Path) -> None:
    write(programs, "apt-get", "exit 100")
    with pytest.raises(InfrastructureError, match="code 100"):
        host_packages.install_missing()


def test_libvirt_python_comes_by_pip_in_the_versions_of_this_package(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_packages, "has_libvirt", lambda: False)
    write(programs, "python", f'echo "$*" >> {programs}/done')
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    assert re.search(r"python -m pip .*install --quiet 'libvirt-python\S+'", host_packages.missing()[-1])
    host_packages.install_missing()
    assert "libvirt-python" in (programs / "done").read_text(encoding="utf-8").splitlines()[-1]
    write(programs, "python", "exit 2")
    with pytest.raises(InfrastructureError, match="libvirt-python was not installed"):
        host_packages.install_missing()


def test_what_doctor_asks_for_is_in_the_list() -> None:
    listed = {line.split()[0] for line in LIST.read_text(encoding="utf-8").splitlines() if line.strip()}
    checked = {row[1] for row in (*host_requirements.PROGRAMS, *host_requirements.HEADERS)}
    assert checked <= listed
    assert os.access(LIST.parent / "install", os.X_OK), "make runs it"

"""Where the guest's packages come from: this machine's own archives, whatever else it has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bisector.adapters.guest import debian_packages
from bisector.adapters.guest.debian_packages import (
    PACKAGES,
    apt_options,
    apt_sources,
    bootstrap,
    check_packages,
    remove_made,
    root_namespace,
)
from bisector.adapters.system.command import CompletedCommand
from bisector.errors import InfrastructureError, RequestError

TARGETS = """\
Debian|oldstable|bookworm|http://archive.example/debian/|main|$(SIGNED_BY)
Debian|oldstable|bookworm|http://archive.example/debian/|contrib|$(SIGNED_BY)
Debian|oldstable-security|bookworm-security|http://archive.example/security/|main|/usr/share/keyrings/d.gpg
Debian Backports|oldstable-backports|bookworm-backports|http://archive.example/debian/|main|
Somebody|stable|stable|https://packages.example/|main|
broken line
"""


def test_only_the_distribution_is_taken() -> None:
    suite, lines = apt_sources(TARGETS)
    assert suite == "bookworm"
    assert lines == [
        "deb http://archive.example/debian/ bookworm main contrib",
        "deb [signed-by=/usr/share/keyrings/d.gpg] http://archive.example/security/ bookworm-security main",
    ]


def test_no_archive_is_said_with_its_cure() -> None:
    with pytest.raises(InfrastructureError) as caught:
        apt_sources("Somebody|stable|stable|https://packages.example/|main|\n")
    assert "apt-get update" in caught.value.cure


def test_only_how_archives_are_reached_is_inherited() -> None:
    dump = (
        'Acquire "";\nAcquire::http "";\nAcquire::http::Proxy "http://proxy.example:3142";\n'
        'Acquire::IndexTargets::deb::Packages::Optional "0";\nAcquire::Retries "3";\n'
    )
    assert apt_options(dump) == 'Acquire::http::Proxy "http://proxy.example:3142";\nAcquire::Retries "3";\n'


POLICY = "{}:\n  Installed: (none)\n  Candidate: {}\n  Version table:\n     1.0 500\n"


def test_a_package_that_no_archive_has_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """apt-cache leaves out what it never heard of, and says (none) of what cannot be installed."""
    known = "".join(POLICY.format(name, "1:2.0") for name in (*PACKAGES, "fio"))
    answer = known + POLICY.format("gone", "(none)")
    monkeypatch.setattr(
        "bisector.adapters.guest.debian_packages.shutil.which", lambda name: f"/usr/bin/{name}"
    )
    lists = TARGETS

    def run(command: list[str], **_: object) -> CompletedCommand:
        return CompletedCommand(tuple(command), 0, answer if command[0] == "apt-cache" else lists)

    monkeypatch.setattr("bisector.adapters.guest.debian_packages.run_command", run)
    check_packages(["fio"])
    check_packages([])
    for name in ("fioo", "gone"):
        with pytest.raises(RequestError, match=f"has the package '{name}'"):
            check_packages(["fio", name])
    lists = ""  # a fresh machine: apt knows what is installed, and nothing else
    check_packages(["fioo"])


class Commands:
    """A machine with these lists of apt; keeps what was run. tried: what 'unshare' says to a try."""

    def __init__(self, tried: CompletedCommand, lists: str = TARGETS) -> None:
        self.tried, self.lists, self.ran = tried, lists, list[tuple[str, ...]]()
        self.path = self.temporary = ""

    def __call__(
        self, command: list[str], env: dict[str, str] | None = None, **_: object
    ) -> CompletedCommand:
        self.ran.append(tuple(map(str, command)))
        self.path, self.temporary = (env or {}).get("PATH", ""), (env or {}).get("TMPDIR", "")
        if command[0] == "unshare" and command[-1] == "true":
            return self.tried
        return CompletedCommand(tuple(command), 0, self.lists if command[0] == "apt-get" else "")


def commands(
    monkeypatch: pytest.MonkeyPatch, uid: int, code: int = 0, said: str = "", lists: str = TARGETS
) -> Commands:
    ran = Commands(CompletedCommand(("unshare",), code, said), lists)
    monkeypatch.setattr(debian_packages, "run_command", ran)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    return ran


@pytest.mark.parametrize(("uid", "first"), [(0, "mmdebstrap"), (1000, "unshare")])
def test_a_debian_is_made_by_root_or_in_a_namespace_and_leaves_this_machines_lists_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, first: str
) -> None:
    """The hook empties the target, mmdebstrap's configuration of apt as well: 'apt-get update' without
    sources, which mmdebstrap ends with, emptied the lists of the host."""
    ran = commands(monkeypatch, uid)
    monkeypatch.setenv("PATH", "/usr/bin")
    bootstrap(tmp_path, ["python3"], tmp_path / "root.tar")
    made = ran.ran[-1]
    assert made[0] == first
    assert "mmdebstrap" in made and "--skip=cleanup/apt" in made
    assert ran.path == "/usr/bin:/usr/sbin:/sbin", "dpkg wants ldconfig, the hook mke2fs"
    assert ran.temporary == str(tmp_path), "/tmp may be small, or mounted noexec"
    remove_made(tmp_path / "left")
    assert ran.ran[-1][-4:] == ("rm", "-rf", "--one-file-system", str(tmp_path / "left"))
    assert ran.ran[-1][0] == ("rm" if uid == 0 else "unshare")


def test_lists_are_fetched_by_root_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = commands(monkeypatch, 1000, lists="")
    with pytest.raises(InfrastructureError) as caught:
        bootstrap(tmp_path, ["python3"], tmp_path / "root.tar")
    assert ("apt-get", "update") not in ran.ran
    assert "as root: 'apt-get update'" in caught.value.cure


@pytest.mark.parametrize(
    ("said", "found", "cure"),
    [
        ("unshare: failed to execute newuidmap: No such file or directory", None, "install uidmap"),
        ('unshare: no line matching user "carol" in /etc/subuid: Success', "/usr/bin/newuidmap", "usermod"),
        ("unshare: unshare failed: Operation not permitted", "/usr/bin/newuidmap", "user namespaces"),
    ],
)
def test_a_user_without_a_namespace_is_told_what_would_give_one(
    monkeypatch: pytest.MonkeyPatch, said: str, found: str | None, cure: str
) -> None:
    commands(monkeypatch, 1000, 1, said)
    monkeypatch.setattr(debian_packages, "find_program", lambda _: found)
    with pytest.raises(InfrastructureError, match="no user namespace") as caught:
        root_namespace()
    assert caught.value.details == said
    assert cure.replace("install ", "apt-get install --no-install-recommends ") in caught.value.cure

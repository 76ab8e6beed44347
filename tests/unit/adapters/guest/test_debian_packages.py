"""Where the guest's packages come from: this machine's own archives, whatever else it has."""

from __future__ import annotations

import pytest

from bisector.adapters.guest.debian_packages import PACKAGES, apt_options, apt_sources, check_packages
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

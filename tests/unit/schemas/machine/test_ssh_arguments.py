"""Options in arguments of `ssh`, as OpenSSH reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bisector.schemas.machine.ssh_arguments import all_options, known_hosts_of, ssh_options


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("-J gate", {"proxyjump": "gate"}),
        ("-Jgate:22", {"proxyjump": "gate:22"}),
        ("-o ProxyJump=me@gate -oproxyjump=other", {"proxyjump": "me@gate"}),
        ("-o 'UserKnownHostsFile /a b'", {"userknownhostsfile": "/a b"}),
        ("-o UserKnownHostsFile = /a", {"userknownhostsfile": ""}),
        ("-o 'ProxyCommand=ssh -o Port=9 -W %h:%p gate'", {"proxycommand": "ssh -o Port=9 -W %h:%p gate"}),
        ("-C -o ControlMaster=auto", {"controlmaster": "auto"}),
        ("-J", {"proxyjump": ""}),
        ("-o 'open", {}),
        ("", {}),
        (None, {}),
        (["-J", "gate"], {}),
    ],
)
def test_options(text: object, options: dict[str, str]) -> None:
    assert ssh_options(text) == options


@pytest.mark.parametrize(
    ("value", "file"),
    [
        ("/lab/known", Path("/lab/known")),
        ("~/known /lab/more", Path.home() / "known"),
        ('"/a b"', Path("/a b")),
        ("known", None),
        ("none", None),
        ("/lab/%h", None),
        ("${HOME}/known", None),
        ("~nobody-here/known", None),
    ],
)
def test_the_file_of_known_hosts(value: str, file: Path | None) -> None:
    assert known_hosts_of({"ansible_ssh_extra_args": f"-C -o 'UserKnownHostsFile={value}'"}) == file
    both = {"ansible_ssh_common_args": "-o UserKnownHostsFile=/first -J a", "ansible_ssh_extra_args": value}
    assert known_hosts_of(both) == Path("/first")


def test_each_of_ansibles_variables_counts() -> None:
    said = {"ansible_ssh_extra_args": "-J a", "ansible_ssh_common_args": "-o Port=1", "ansible_user": "-J b"}
    assert list(all_options(said)) == [
        ("ansible_ssh_common_args", "port", "1"),
        ("ansible_ssh_extra_args", "proxyjump", "a"),
    ]

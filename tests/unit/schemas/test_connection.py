"""How a host is reached: Ansible's variables, their types and ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.schemas.connection import Connection, connection_of

INVENTORY = Path("/lab.yml")


def test_what_is_not_said_has_sshs_own_defaults() -> None:
    assert connection_of("bed", {"other": 1}, INVENTORY) == Connection("bed", 22, "root", None, False)


def test_what_is_said_counts() -> None:
    said = {
        "ansible_host": "10.0.0.1",
        "ansible_port": "2222",
        "ansible_user": "me",
        "ansible_ssh_private_key_file": "~/key",
        "ansible_connection": "local",
    }
    expected = Connection("10.0.0.1", 2222, "me", Path.home() / "key", True)
    assert connection_of("bed", said, INVENTORY) == expected


def test_the_file_of_known_hosts_is_that_of_the_arguments_of_ssh() -> None:
    said = {"ansible_ssh_common_args": "-o IdentitiesOnly=yes -o UserKnownHostsFile=/lab/known"}
    assert connection_of("bed", said, INVENTORY).known_hosts == Path("/lab/known")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ansible_port": "x"}, "variable 'ansible_port': must be a whole number (got 'x')"),
        ({"ansible_port": 0}, "variable 'ansible_port': must be from 1 to 65,535 (got 0)"),
        ({"ansible_port": 65536}, "variable 'ansible_port': must be from 1 to 65,535"),
        ({"ansible_port": float("nan")}, "variable 'ansible_port': must be from 1 to 65,535 (got nan)"),
        ({"ansible_port": [22]}, "variable 'ansible_port': must be a whole number"),
        ({"ansible_host": 10.5}, "variable 'ansible_host': must be text (got 10.5)"),
        ({"ansible_host": "a\nb"}, "variable 'ansible_host': must be text of one line"),
        ({"ansible_user": None}, "variable 'ansible_user': must be text"),
        ({"ansible_ssh_private_key_file": "~nobody-here/k"}, "there is no such user's home"),
    ],
)
def test_what_cannot_be_is_refused(variables: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError) as caught:
        connection_of("bed", variables, INVENTORY)
    assert words in caught.value.message
    assert caught.value.cure

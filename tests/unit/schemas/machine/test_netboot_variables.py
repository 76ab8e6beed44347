"""What the inventory says of a machine that boots from the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.errors import RequestError
from bisector.schemas.lab import lab_from_inventory
from bisector.schemas.machine.netboot_variables import NetbootVariables

GOOD = {"folder": "/srv/tftp", "url": "tftp://192.0.2.1", "mac": "52:54:00:AB:CD:EF"}


def read(**variables: Any) -> NetbootVariables | None:
    own = {"perfbisect_boot_method": "pxe", **variables}
    listing = {"_meta": {"hostvars": {"box": own}}, "testbeds": {"hosts": ["box"]}}
    return lab_from_inventory(listing, Path("lab.yml")).testbed("box").variables.netboot


@pytest.mark.parametrize("mac", ["52:54:00:AB:CD:EF", "52-54-00-ab-cd-ef"])
def test_an_address_is_read_in_both_ways_of_writing_it(mac: str) -> None:
    netboot = read(perfbisect_netboot=GOOD | {"mac": mac, "url": "http://box:8080/boot/"})
    assert netboot is not None
    assert (netboot.mac, netboot.url) == ("52-54-00-ab-cd-ef", "http://box:8080/boot")


@pytest.mark.parametrize(
    ("netboot", "words"),
    [
        (None, "the boot method pxe needs"),
        (GOOD | {"mac": "52:54"}, "address of a network card"),
        (GOOD | {"url": "ftp://x"}, "tftp://HOST or http://HOST"),
        (GOOD | {"url": "http://x/${net0/mac}"}, "tftp://HOST or http://HOST"),
        ({"folder": "/srv/tftp"}, "url"),
    ],
)
def test_what_cannot_be_booted_from_is_refused(netboot: object, words: str) -> None:
    variables = {} if netboot is None else {"perfbisect_netboot": netboot}
    with pytest.raises(RequestError) as caught:
        read(**variables)
    assert words in f"{caught.value}{caught.value.details}"

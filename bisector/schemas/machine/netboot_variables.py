"""How a machine boots from the network: `perfbisect_netboot`, for the boot method pxe."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bisector.schemas.loading import HostPath, Spec, matching

Mac = Annotated[
    str,
    matching(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", "the address of a network card, as 52:54:00:12:34:56"),
    AfterValidator(lambda value: re.sub("[:-]", "-", value.lower())),
]

ServedUrl = Annotated[
    str,
    matching(
        r"(tftp|https?)://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~%/-]*)?", "tftp://HOST or http://HOST/FOLDER"
    ),
    AfterValidator(lambda value: value.rstrip("/")),
]


class NetbootVariables(Spec):
    """Where the files of a boot are put, and how the machine finds them. mac: in iPXE's form, with dashes."""

    folder: HostPath = Field(description="a folder of this host that is served over TFTP or HTTP")
    url: ServedUrl = Field(description="the folder's address, as the machine reaches it")
    mac: Mac = Field(description="of the network card that the machine boots from")

"""Settings of the web server (`[web]` of perfbisect.toml): what requests may name, and where a server is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bisector.schemas.loading import Argument, Distinct, Spec, matching

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
Name = Annotated[
    str, matching(NAME.pattern, "a name: letters, digits, '.', '_', '-', at most 100 characters")
]
"""By which requests name what the server's settings list. It is no path and no option."""

WorkloadName = Annotated[
    str,
    matching(
        rf"{NAME.pattern}(/{NAME.pattern})?",
        "a name of a workload, such as 'hackbench' or 'hackbench/small'",
    ),
]
"""Names have no '..', and none begins with '/': it is no path of the server's."""

REV = r"[A-Za-z0-9](?:[A-Za-z0-9_/+^~-]|\.(?!\.)){0,199}"
Rev = Annotated[
    str,
    matching(REV, "the name or the id of one commit, at most 200 characters: no option, range or path"),
]
"""A commit as requests name it. git gets nothing that it could take for an option or a path."""
TEXT = r"(?!\s+$)[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]{0,1000}"
TEXT_MEANING = "one line of text, at most 1,000 characters, without control characters, not of blanks alone"
Text = Annotated[str, matching(TEXT, TEXT_MEANING)]
"""A text that a person writes for others. JSON can hold half characters, which no database takes."""

ServerUrl = Annotated[
    str,
    matching(
        r"https?://(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]{0,200})?",
        "an address: https://perfbisect.example, or http://127.0.0.1:8470",
    ),
]
HostName = Annotated[
    str, matching(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9a-fA-F:.]{2,45}\]", "a host's name or address")
]


def _absolute(path: Path) -> Path:
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError("must be an absolute path")
    return path


HeaderName = Annotated[
    str, matching(r"[A-Za-z][A-Za-z0-9-]{0,63}", "the name of a header: letters, digits and '-'")
]
USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
UserName = Annotated[
    str, matching(USER.pattern, "a user's name: letters, digits, '.', '_', '@', '+', '-', at most 100")
]


class WebSettings(Spec):
    """Names that requests from elsewhere may use, host names of the server, and how people log in."""

    described_in = "docs/how-to/serve.md"

    repositories: dict[Name, Annotated[Path, AfterValidator(_absolute)]] = Field(
        default_factory=dict, description="name = path of each repository that may be bisected"
    )
    workloads: Distinct[Annotated[Argument, Field(min_length=1)]] = Field(
        default=(), description="shipped ones by name, others by the path of their folder; unset: all shipped"
    )
    testbeds: Distinct[Name] = Field(
        default=(), description="testbeds of the inventory that may be named; unset: all"
    )
    hosts: Distinct[HostName] = Field(
        default=(), description="names of this server that a reverse proxy hands on, beside localhost"
    )
    user_header: HeaderName | None = Field(
        default=None, description="in which a reverse proxy on this host names the user that it has logged in"
    )
    users: dict[UserName, Literal["read", "operate", "admin"]] = Field(
        default_factory=dict, description="name = role of the users that the header names; others may read"
    )

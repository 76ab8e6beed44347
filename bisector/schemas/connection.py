"""How a host of the lab is reached: what perfbisect reads of Ansible's own variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bisector.schemas.documents.document import expand_user, key_text, shown_path
from bisector.schemas.loading import Argument
from bisector.schemas.machine.ssh_arguments import known_hosts_of
from bisector.schemas.ranges import Port
from bisector.schemas.refusal import refusal


class ConnectionVariables(BaseModel):
    """Ansible's own variables of a host that perfbisect reads too; all others are Ansible's business."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    address: Argument = Field(default="", alias="ansible_host", description="its name or address")
    port: Port = Field(default=22, alias="ansible_port", description="of its SSH server")
    user: Argument = Field(default="root", alias="ansible_user", description="the account there")
    key: Argument = Field(default="", alias="ansible_ssh_private_key_file", description="the path of a key")
    connection: str = Field(default="", alias="ansible_connection", description="'local' or 'ssh'")


CONNECTION_VARIABLES = frozenset(str(field.alias) for field in ConnectionVariables.model_fields.values())
"""Their names in an inventory."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Connection:
    """How a host is reached, from Ansible's own variables.

    local: it is this machine; known_hosts: the file that arguments of `ssh` name, None where they name none.
    """

    address: str
    port: int
    user: str
    key: Path | None
    local: bool
    known_hosts: Path | None = None


def read_variables(
    model: type[M],
    variables: Mapping[str, Any],
    host: str,
    inventory: Path,
    *,
    prefix: str = "",
    described_in: str = "",
) -> M:
    """Return a host's variables. prefix: of their names in the inventory. Raises RequestError."""
    try:
        return model.model_validate(variables)
    except ValidationError as error:
        raise refusal(
            error,
            model,
            lambda key: f"{shown_path(inventory)}: host '{host}'",
            lambda key: f"variable '{prefix}{key_text(key)}'",
            described_in=described_in,
        ) from error


def connection_of(host: str, variables: Mapping[str, Any], inventory: Path) -> Connection:
    """Return how a host is reached. Raises RequestError naming host and variable."""
    found = read_variables(ConnectionVariables, variables, host, inventory)
    return Connection(
        address=found.address or host,
        port=found.port,
        user=found.user,
        key=expand_user(found.key) if found.key else None,
        local=found.connection == "local",
        known_hosts=known_hosts_of(variables),
    )

"""The operations that a command uses: on the database of this machine's settings, or at a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bisector.interfaces.cli import options, output

if TYPE_CHECKING:
    from bisector.app.operations.operations import Operations
    from bisector.app.operations.remote_operations import RemoteOperations
    from bisector.app.wiring import Wiring
    from bisector.ports import Progress
    from bisector.schemas.settings import Settings


def operations(lab: Path | None = None, progress: Progress = lambda text: None) -> Operations:
    """Return what commands ask: here, or at the server of the settings. lab: the inventory, only here.

    progress: is told what takes long.

    Raises RequestError: a server, and an inventory or no token.
    """
    from bisector.schemas.settings import load_settings

    given = {"server": options.global_options().server, "lab": lab}
    settings = load_settings(options.global_options().config, given)
    if settings.server is not None:
        options.refuse_lab(lab)
        return server(settings)
    from bisector.app.operations.local_operations import LocalOperations
    from bisector.app.wiring import Wiring

    return LocalOperations(Wiring(settings, output.print_note), progress=progress)


def operations_of(wiring: Wiring) -> Operations:
    """Return what commands ask whose wiring is made: here, or the server of its settings."""
    if wiring.settings.server is not None:
        return server(wiring.settings)
    from bisector.app.operations.local_operations import LocalOperations

    return LocalOperations(wiring)


def server(settings: Settings | None = None) -> RemoteOperations:
    """Return the operations at the server of the settings. Raises RequestError: there is no token."""
    from bisector.app.operations.remote_operations import connect
    from bisector.schemas.settings import load_settings

    if settings is None:
        settings = load_settings(options.global_options().config, {"server": options.global_options().server})
    assert settings.server is not None, "asked for where there is one"
    return connect(settings.server, settings.token_file, output.print_note)

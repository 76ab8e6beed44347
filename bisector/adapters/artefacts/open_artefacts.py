"""The artefact store that the settings name."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.schemas.settings import Settings
from bisector.store_ports import ArtefactStore


def open_artefacts(settings: Settings) -> ArtefactStore:
    """Return the store of the setting 'artefacts', which must be set; nothing is asked of it yet.

    Raises RequestError: it needs a token, and there is none.
    """
    assert settings.artefacts is not None
    if settings.artefacts.startswith("http"):
        from bisector.adapters.artefacts.http_artefacts import HttpArtefacts
        from bisector.adapters.system.bearer_token import read_token

        return HttpArtefacts(settings.artefacts, read_token(settings.token_file))
    return FolderArtefacts(Path(settings.artefacts))

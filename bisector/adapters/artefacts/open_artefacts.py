"""The artefact store that the settings name."""

from __future__ import annotations

from pathlib import Path

from bisector.adapters.artefacts.folder_artefacts import FolderArtefacts
from bisector.schemas.settings import Settings
from bisector.store_ports import ArtefactStore


def open_artefacts(settings: Settings) -> ArtefactStore:
    """Return the store of the setting 'artefacts', which must be set; nothing is asked of it yet."""
    assert settings.artefacts is not None
    return FolderArtefacts(Path(settings.artefacts))

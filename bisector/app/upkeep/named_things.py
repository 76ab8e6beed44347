"""Whether what the settings name is there: files, folders, a recipe, and what a web server lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bisector.app.wiring import Wiring
from bisector.errors import InfrastructureError, RequestError
from bisector.schemas.documents.document import Key, key_text
from bisector.schemas.kernel.recipe import load_recipe, with_default_recipe
from bisector.schemas.workload.workload import load_workload


def require_named(wiring: Wiring, place: Callable[[Key], str] = lambda key: "") -> None:
    """Look for each thing; raise for the first that is not there, with the key that names it.

    place: from a key to where it stands ('file:8'), or ''. Raises RequestError; InfrastructureError: a
    database or a shared folder is away.
    """
    for key, look in _looks(wiring):
        try:
            look()
        except (RequestError, InfrastructureError) as error:
            error.message = ": ".join(filter(None, (place(key), f"key '{key_text(key)}'", error.message)))
            raise


def _looks(wiring: Wiring) -> Iterator[tuple[Key, Callable[[], object]]]:
    """Yield each key that names something, with what raises where it is not there."""
    settings = wiring.settings
    if settings.lab is not None:
        yield ("lab",), lambda: wiring.lab
    if settings.repo is not None:
        yield ("repo",), wiring.source
    if settings.database is not None:
        yield ("database",), lambda: wiring.store
    if (workload := settings.workload) is not None:
        yield ("workload",), lambda: load_workload(workload)
    yield ("recipe",), lambda: load_recipe(with_default_recipe(settings.recipe))
    if (artefacts := settings.artefacts) is not None and not artefacts.startswith("http"):
        yield ("artefacts",), lambda: _require_folder(Path(artefacts))
    for key, file in _secrets(wiring):
        yield key, _reads(key_text(key), file)
    if settings.web is not None:
        for name, path in settings.web.repositories.items():
            yield ("web", "repositories", name), partial(wiring.source, path)
        for one in settings.web.workloads:
            yield ("web", "workloads"), partial(load_workload, one)
        for one in settings.web.testbeds:
            yield ("web", "testbeds"), partial(_require_testbed, wiring, one)


def _secrets(wiring: Wiring) -> Iterator[tuple[Key, Path]]:
    settings = wiring.settings
    if settings.token_file is not None:
        yield ("token_file",), settings.token_file
    if settings.mail is not None and settings.mail.password_file is not None:
        yield ("mail", "password_file"), settings.mail.password_file
    if settings.webhook is not None and settings.webhook.secret_file is not None:
        yield ("webhook", "secret_file"), settings.webhook.secret_file


def _reads(key: str, file: Path) -> Callable[[], object]:
    from bisector.adapters.system.secret_file import read_secret

    return lambda: read_secret("", file, key)


def _require_testbed(wiring: Wiring, name: str) -> None:
    wiring.lab.testbed(name)


def _require_folder(folder: Path) -> None:
    """Raise InfrastructureError: a folder that hosts share may not be mounted now."""
    if not folder.is_dir():
        raise InfrastructureError(f"there is no folder {folder}", cure="mount it, or name another one")

"""`perfbisect settings`: what is in force, and where each value comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bisector.interfaces.cli import options, output
from bisector.model.format import count
from bisector.schemas.database_url import DatabaseUrl
from bisector.schemas.loading import Spec
from bisector.schemas.settings import SETTINGS_FILE, Settings, load_with_sources, place_of


def show(as_json: options.Json = False) -> None:
    """Show every setting, its value, and where that comes from.

    Later ones override earlier ones: the default, the nearest perfbisect.toml in this folder or above it (or
    what --config names), the environment. Options of a command override all of them.

    Example:

      perfbisect settings show
    """
    settings, sources = load_with_sources(options.global_options().config)
    rows = [
        {
            "key": key,
            "value": _plain(getattr(settings, key)),
            "from": sources.get(key, "default"),
            "means": info.description,
        }
        for key, info in Settings.model_fields.items()
    ]
    if as_json:
        output.print_json(rows)
        return
    cells = [[row["key"], _text(row["value"]), row["from"], row["means"]] for row in rows]
    print(
        output.table(("KEY", "VALUE", "FROM", "MEANS"), cells, wrapped=["MEANS"], dropped=["MEANS", "FROM"])
    )


def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help=f"A settings file. [default: the nearest {SETTINGS_FILE}]"),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check a settings file: its keys and values, and whether what it names is there.

    Example:

      perfbisect settings check ./perfbisect.toml
    """
    settings, sources = load_with_sources(file or options.global_options().config)
    found = sorted(set(sources.values()))
    from bisector.app.upkeep.named_things import require_named
    from bisector.app.wiring import Wiring

    require_named(Wiring(settings), lambda key: place_of(key, sources))
    if as_json:
        output.print_json({"from": found, "keys": sorted(sources)})
    elif found:
        print(f"{', '.join(found)}: {count(len(sources), 'setting')}, valid")
    else:
        print("nothing is set, by a file or a variable: every setting has its default")


def _text(value: Any) -> str:  # noqa: ANN401 - the same
    if isinstance(value, dict):
        return ", ".join(
            f"{key}={one:g}" if isinstance(one, float) else f"{key}={one}" for key, one in value.items()
        )
    return "" if value is None else str(value)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a setting
    if isinstance(value, Spec):
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return str(value) if isinstance(value, Path | DatabaseUrl) else value

"""Style and scripts of the pages. Their names hold a hash of the content: browsers keep them for good."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from bisector.errors import NotFound
from bisector.report.html import page_assets

router = APIRouter(include_in_schema=False)

_HASH_DIGITS = 16
"""Of 64: two contents of one name differ in them."""
_A_YEAR = "public, max-age=31536000, immutable"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class StaticFile:
    """A file as it is served."""

    url: str
    content: bytes
    media_type: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Return the files by the names that templates call them."""
    plot, zoom = page_assets.chart_scripts()
    texts = {
        "style.css": page_assets.style(charts=True) + _own("pages.css"),
        "uplot.js": plot,
        "zoom.js": zoom,
        "changes.js": _own("changes.js"),
        "live.js": _own("live.js"),
        "nights.js": _own("nights.js"),
        "icon.svg": _own("icon.svg"),
    }
    found = {}
    for name, text in texts.items():
        content, (stem, _, kind) = text.encode(), name.partition(".")
        digest = hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]
        found[name] = StaticFile(f"/static/{stem}.{digest}.{kind}", content, _TYPES[kind])
    return found


@router.get("/static/{name}")
def give_static_file(name: str) -> Response:
    """Return a file; it needs no token, and says nothing that is not public."""
    for file in static_files().values():
        if file.url == f"/static/{name}":
            return Response(file.content, media_type=file.media_type, headers={"Cache-Control": _A_YEAR})
    raise NotFound(f"there is no file '{name[:100]}'", cure="load the page again")


def _own(name: str) -> str:
    return files("bisector.interfaces.web").joinpath("static", name).read_text(encoding="utf-8")

"""A page from a template: style, script and colours in it, and a policy that allows nothing else.

The policy names the hashes of the style and of the script, so that markup from elsewhere, had it slipped
in, would neither run nor load anything (Content Security Policy Level 3, 'hash-source').
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bisector.report.html import palette
from bisector.report.html.escaping import text

_PACKAGE = "bisector.report.html"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader(_PACKAGE, "assets"),
        autoescape=True,
        finalize=text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, *, title: str, data: dict[str, Any] | None = None, **context: object) -> str:
    """Return the page. data: what the script draws; without it the page has no script at all."""
    style = palette.css() + _asset("style.css")
    scripts: list[Markup] = []
    if data is not None:
        style += _asset("uplot", "uPlot.min.css")
        scripts = [_own(_asset("uplot", "uPlot.iife.min.js")), _own(_asset("zoom.js"))]
    sources = [f"style-src {_hash(style)}"]
    if scripts:
        sources.append("script-src " + " ".join(_hash(script) for script in scripts))
    policy = "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])
    return (
        _environment()
        .get_template(template)
        .render(title=title, policy=policy, style=_own(style), scripts=scripts, data=_json(data), **context)
    )


def _asset(*names: str) -> str:
    return files(_PACKAGE).joinpath("/".join(("assets", *names))).read_text(encoding="utf-8").strip()


def _own(asset: str) -> Markup:
    """Return an asset of ours as it is: the parser does not decode what is in <style> and <script>."""
    return Markup(asset)  # noqa: S704


def _hash(asset: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(asset.encode()).digest()).decode()}'"


def _json(data: dict[str, Any] | None) -> Markup | None:
    """Return data for a <script type="application/json">, where '<' must not stand for itself."""
    if data is None:
        return None
    content = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(content)  # noqa: S704

"""Shared by all pages, of reports and of the web server: templates that escape, style and scripts.

Templates of other packages lie in their folder `templates`, and see those of this one.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bisector.report import phrases
from bisector.report.html import palette
from bisector.report.html.escaping import labelled_cells, text

_PACKAGE = "bisector.report.html"


@cache
def environment(*others: str) -> Environment:
    """Return what renders templates. others: packages whose folder `templates` is looked at first."""
    found = Environment(
        loader=ChoiceLoader([*(PackageLoader(one) for one in others), PackageLoader(_PACKAGE, "assets")]),
        autoescape=True,
        finalize=text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["words"] = phrases
    found.filters["labelled"] = labelled_cells
    return found


def style(*, charts: bool) -> str:
    """Return the style of a page with its colours. charts: whether a script draws there."""
    return palette.css() + _asset("style.css") + (_asset("uplot", "uPlot.min.css") if charts else "")


def chart_scripts() -> tuple[str, str]:
    """Return the scripts that let the samples of a bisection be zoomed: uPlot, and ours that uses it."""
    return _asset("uplot", "uPlot.iife.min.js"), _asset("zoom.js")


def json_block(data: object) -> Markup:
    """Return data for a <script type="application/json">, where '<' must not stand for itself."""
    content = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(content)  # noqa: S704


def own(asset: str) -> Markup:
    """Return an asset of ours as it is: the parser does not decode what is in <style> and <script>."""
    return Markup(asset)  # noqa: S704


def render(template: str, *packages: str, **context: Any) -> Markup:  # noqa: ANN401 - whatever it shows
    """Return what a template makes of a context: markup, in which all foreign text is escaped."""
    return Markup(environment(*packages).get_template(template).render(context))  # noqa: S704


def _asset(*names: str) -> str:
    return files(_PACKAGE).joinpath("/".join(("assets", *names))).read_text(encoding="utf-8").strip()

"""A page from a template: style, script and colours in it, and a policy that allows nothing else.

The policy names the hashes of the style and of the script, so that markup from elsewhere, had it slipped
in, would neither run nor load anything (Content Security Policy Level 3, 'hash-source').
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from bisector.report.html import page_assets

WHEN_SERVED = "frame-ancestors 'none'; sandbox allow-scripts allow-modals"
"""The policy of a server's answer that is such a page, beside the page's own: what is in it has no origin, so
that it could not use the cookies of the server even if a script had slipped in. Modals: to print."""


def render(template: str, *, title: str, data: dict[str, Any] | None = None, **context: object) -> str:
    """Return the page. data: what the script draws; without it the page has no script at all."""
    style = page_assets.style(charts=data is not None)
    scripts = page_assets.chart_scripts() if data is not None else ()
    sources = [f"style-src {_hash(style)}"]
    if scripts:
        sources.append("script-src " + " ".join(_hash(script) for script in scripts))
    policy = "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])
    return page_assets.render(
        template,
        title=title,
        policy=policy,
        style=page_assets.own(style),
        scripts=[page_assets.own(script) for script in scripts],
        data=None if data is None else page_assets.json_block(data),
        **context,
    )


def _hash(asset: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(asset.encode()).digest()).decode()}'"

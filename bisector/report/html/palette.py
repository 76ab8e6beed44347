"""The colours of the pages, light and dark. `tests/unit/report/html/test_palette.py` computes their contrast.

Blue is the older side, vermilion the newer one: told apart with every common colour blindness (Okabe and Ito
2008), and marks differ in shape or place as well.
"""

from __future__ import annotations

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "page": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1b1f24",
    "quiet": "#545d68",
    "line": "#7c8590",
    "faint": "#d9dee3",
    "edge": "#7c8590",
    "link": "#0a58a6",
    "old": "#0b62b0",
    "new": "#b5400a",
    "proof": "#6a3fa0",
    "band": "#fbe3d6",
    "warn": "#7a4a00",
}
DARK: Mapping[str, str] = {
    "page": "#14171b",
    "panel": "#1d2228",
    "ink": "#e8ebee",
    "quiet": "#a5aeb8",
    "line": "#7b8794",
    "faint": "#343b43",
    "edge": "#48515b",
    "link": "#7ab8f5",
    "old": "#6db3f2",
    "new": "#ff9466",
    "proof": "#c3a0f0",
    "band": "#4a2a1b",
    "warn": "#f0c674",
}
READ = ("ink", "quiet", "link", "old", "new", "proof", "warn")
"""Colours of text: 4.5 to 1 on `page` and `panel` (WCAG 2.2, 1.4.3)."""
DRAWN = ("line", "old", "new", "proof")
"""Colours of marks that carry meaning: 3 to 1 on `page` and `panel` (WCAG 2.2, 1.4.11)."""


def css() -> str:
    """Return the style rules that define the colours."""
    light, dark = (";".join(f"--{name}:{value}" for name, value in p.items()) for p in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )

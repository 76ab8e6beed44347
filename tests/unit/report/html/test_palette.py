"""The contrast of the pages' colours, computed as WCAG 2.2 defines it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bisector.report.html import palette
from bisector.report.html.self_contained import render

PALETTES = [pytest.param(palette.LIGHT, id="light"), pytest.param(palette.DARK, id="dark")]


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    lighter, darker = sorted((luminance(a), luminance(b)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_computed_as_defined() -> None:
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48  # the example of the W3C


@pytest.mark.parametrize("colours", PALETTES)
@pytest.mark.parametrize("ground", ["page", "panel"])
def test_text_and_marks_stand_out(colours: Mapping[str, str], ground: str) -> None:
    for name in palette.READ:
        assert contrast(colours[name], colours[ground]) >= 4.5, name
    for name in palette.DRAWN:
        assert contrast(colours[name], colours[ground]) >= 3.0, name


@pytest.mark.parametrize("colours", PALETTES)
def test_marks_stand_out_from_the_band_of_the_culprit(colours: Mapping[str, str]) -> None:
    assert contrast(colours["new"], colours["band"]) >= 3.0
    assert contrast(colours["ink"], colours["band"]) >= 4.5


def test_both_have_the_same_names_and_the_page_defines_all_that_it_uses() -> None:
    assert palette.LIGHT.keys() == palette.DARK.keys()
    page = render("profile.html.j2", title="t", profile=_empty())
    used = {part.split(")")[0] for part in page.split("var(--")[1:]}
    assert used <= palette.LIGHT.keys()


def _empty() -> dict[str, object]:
    return {"sentences": (), "flame": None, "rows": (), "calls": (), "warnings": ()}

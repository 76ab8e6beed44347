"""What is asked of a page that a browser shows: does its text stand out, what is printed of it."""

from __future__ import annotations

from typing import Literal

from playwright.sync_api import Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CONTRAST = 4.5
"""Of text to its ground (WCAG 2.2, 1.4.3)."""
_LOW = """(least) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const parts = (colour) => {  // as the browser paints it, whatever the notation
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => {
    const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = parts(colour).map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    const box = one.closest("g")?.querySelector("rect");
    if (box && one.closest(".flame")) return getComputedStyle(box).fill;
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parts(colour)[3] === 255) return colour;
    }
    return getComputedStyle(document.documentElement).colorScheme.includes("dark")
      && matchMedia("(prefers-color-scheme: dark)").matches ? "#121212" : "#fff";
  };
  const low = [];
  for (const one of document.querySelectorAll("body *")) {
    const says = [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!says || !one.checkVisibility({visibilityProperty: true})) continue;
    if (one.closest("title, desc, script, option, noscript")) continue;
    const style = getComputedStyle(one);
    const colour = one.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(colour), light(ground(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) low.push(`${ratio.toFixed(2)}: ${one.outerHTML.slice(0, 120)}`);
  }
  return low;
}"""
_SHOWN = """(kinds) => [...document.querySelectorAll(kinds)]
  .filter((one) => one.checkVisibility()).map((one) => one.outerHTML.slice(0, 120))"""
_CUT = """() => [...document.querySelectorAll("pre, .wide")]
  .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.outerHTML.slice(0, 120))"""
_PAPER = 718
"""Pixels between the margins of A4 as Chromium prints it: 190 mm at 96 a 25.4 mm."""


def texts_that_do_not_stand_out(page: Page) -> list[str]:
    """Return the texts of low contrast in the light and the dark scheme, each with its ratio."""
    found = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found += [f"{scheme} {one}" for one in page.evaluate(_LOW, CONTRAST)]
    page.emulate_media(color_scheme="light")
    return found


def useless_on_paper(page: Page) -> list[str]:
    """Return what a printed page has and nobody can use: forms, and what is cut off at the edge."""
    before = page.viewport_size
    page.emulate_media(media="print")
    page.set_viewport_size({"width": _PAPER, "height": 1000})
    found = [*page.evaluate(_SHOWN, "form, button, input, select, nav, .skip"), *page.evaluate(_CUT)]
    page.emulate_media(media="screen")
    if before is not None:
        page.set_viewport_size(before)
    return found

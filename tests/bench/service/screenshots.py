"""Pictures of every page and report: python -m tests.bench.service.screenshots FOLDER [PART ...]

They are for people who changed a page or its style: to be looked at, not compared. Each page of a real
`perfbisect web` on a made-up lab, and each HTML report as a file, in a real Chromium: as wide as a telephone,
a laptop and a large screen, in both colour schemes, as PNG of the whole page; and three of them as a printer
gets them, as PDF. PART: only what has it in its name, such as 'alerts', '360' or 'dark'.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from bisector.app.upkeep import tokens
from bisector.engine.state_lock import lock
from bisector.schemas.web_settings import WebSettings
from tests.support.pages.chromium import CHROMIUM, chromium
from tests.support.pages.written_reports import reports
from tests.support.servers import served_lab
from tests.support.servers.web import serving

WIDTHS = (360, 1280, 1920)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
HEIGHT = 900
PAGES = (
    *served_lab.PAGES,
    "/bisections/running-1",
    "/alerts/0000000000",  # there is none: the page of an error
)
PRINTED = ("bisections-done-1", f"series-{served_lab.SERIES}", "report")
OPENED = (f"series-{served_lab.SERIES}", "bisections", "series")
"""Pages that are drawn a second time with what is folded opened: forms, tables."""


class Pictures:
    """What is taken, and where to."""

    def __init__(self, browser: Browser, folder: Path, parts: list[str]) -> None:
        """Note what is asked for: everything where `parts` is empty."""
        self.browser, self.folder, self.parts = browser, folder, parts

    def take(self, name: str, show: Callable[[Page], object], page: Page) -> None:
        """Take all pictures of what `show` opens."""
        for scheme in SCHEMES:
            for width in WIDTHS:
                self._one(f"{name}-{width}-{scheme}.png", show, page, width, scheme)
                if name in OPENED:
                    self._one(f"{name}-opened-{width}-{scheme}.png", show, page, width, scheme)
        target = f"{name}.pdf"
        if name in PRINTED and self._wanted(target):
            page.emulate_media(color_scheme="light")
            show(page)
            page.pdf(path=self.folder / target, format="A4")
            print(target)

    def _one(
        self,
        target: str,
        show: Callable[[Page], object],
        page: Page,
        width: int,
        scheme: Literal["light", "dark"],
    ) -> None:
        if not self._wanted(target):
            return
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": HEIGHT})
        show(page)
        if "-opened-" in target:
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        page.screenshot(path=self.folder / target, full_page=True)
        print(target)

    def _wanted(self, target: str) -> bool:
        return not self.parts or any(part in target for part in self.parts)


def name_of(path: str) -> str:
    """Return the beginning of the names of a page's pictures."""
    kept = "".join(c if c.isalnum() or c in "-._" else "-" for c in path.strip("/"))
    return kept or "overview"


@contextmanager
def visiting(browser: Browser, token: str = "") -> Iterator[Page]:
    """Give a page. token: of who is logged in."""
    context = browser.new_context()
    if token:
        context.set_extra_http_headers({"Authorization": f"Bearer {token}"})
    yield context.new_page()
    context.close()


def main(arguments: list[str]) -> int:
    """Take the pictures."""
    if not arguments:
        print(__doc__)
        return 2
    folder, parts = Path(arguments[0]), arguments[1:]
    folder.mkdir(parents=True, exist_ok=True)
    if CHROMIUM is None:
        print("needs Debian's package chromium", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as lab, chromium() as browser:
        web = WebSettings(repositories={"linux": Path("/not/here"), "stable": Path("/nor/here")})
        wiring = served_lab.make(Path(lab), web=web)
        token = tokens.add(wiring, "ann", "operate", None, "this program")[1]
        pictures = Pictures(browser, folder, parts)
        with serving(wiring) as url, lock(wiring.settings.state_dir, "running-1"):
            with visiting(browser) as page:
                pictures.take("login", lambda page: page.goto(f"{url}/login"), page)
                for name, file in reports(Path(lab)):
                    address = file.as_uri()
                    pictures.take(name, lambda page, address=address: page.goto(address), page)  # type: ignore[misc]
            with visiting(browser, token) as page:
                for path in PAGES:
                    pictures.take(name_of(path), lambda page, path=path: page.goto(url + path), page)  # type: ignore[misc]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

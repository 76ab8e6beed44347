"""Reports in a real Chromium: no error, no request, readable without JavaScript and on a telephone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from bisector.interfaces.cli import run
from bisector.report.html import bisection_page
from tests.support.command_line import START, Bench
from tests.support.pages import browser_checks
from tests.support.pages.chromium import NEEDS_CHROMIUM
from tests.support.pages.written_reports import reports
from tests.support.report_material import HOSTILE, sixty_boots

WIDTHS = (360, 1280, 1920)
pytestmark = NEEDS_CHROMIUM


def visit(browser: Browser, file: Path, *, script: bool = True) -> tuple[Page, list[str]]:
    """Open a file; return the page, and a list that grows by what goes wrong and by each request."""
    page = browser.new_context(java_script_enabled=script, viewport={"width": 1280, "height": 900}).new_page()
    seen: list[str] = []
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("dialog", lambda dialog: seen.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: seen.append(f"request: {request.url}"))
    page.on("requestfailed", lambda request: seen.append(f"failed: {request.failure}"))
    page.goto(file.as_uri())
    assert seen.pop(0) == f"request: {file.as_uri()}"
    return page, seen


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(bisection_page.render(sixty_boots()), encoding="utf-8")
    return path


def test_a_page_fits_every_screen(browser: Browser, file: Path) -> None:
    page, seen = visit(browser, file)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("svg:visible").count() == 6
    assert seen == []


def test_the_keyboard_zooms_the_samples(browser: Browser, file: Path) -> None:
    page, seen = visit(browser, file)
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "To the content"
    page.get_by_role("button", name="Zoom").focus()
    page.keyboard.press("Enter")
    assert page.locator(".uplot canvas").is_visible() and not page.locator("#samples-drawing").is_visible()
    page.get_by_role("button", name="Closer").press("Enter")
    page.get_by_role("button", name="Whole drawing").press("Enter")
    assert page.locator("#samples-drawing").is_visible() and page.locator(".uplot").count() == 0
    assert seen == []


def test_without_javascript_everything_is_there_and_no_button_that_does_nothing(
    browser: Browser, file: Path
) -> None:
    page, seen = visit(browser, file, script=False)
    assert page.locator("svg:visible").count() == 6
    assert page.get_by_role("button").count() == 0
    assert seen == []


def test_hostile_text_neither_runs_nor_loads(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    made = sixty_boots(HOSTILE.replace("{", "{{").replace("}", "}}") + "{}")
    path.write_text(bisection_page.render(made), encoding="utf-8")
    page, seen = visit(browser, path)
    assert page.locator("img").count() == 0
    assert seen == []


def test_the_policy_stops_what_would_slip_through(browser: Browser, file: Path, tmp_path: Path) -> None:
    path = tmp_path / "injected.html"
    injected = "<script>alert(1)</script><img src='https://example.org/x.png' onerror='alert(2)'>"
    path.write_text(file.read_text(encoding="utf-8").replace("<main", injected + "<main"), encoding="utf-8")
    _, seen = visit(browser, path)
    assert not [line for line in seen if line.startswith("dialog")]
    assert [line for line in seen if line.startswith("request")] == ["request: https://example.org/x.png"]
    assert "failed: csp" in seen  # Chromium tells of the request, and that it was never sent


def test_the_command_writes_a_page_that_opens(
    bench: Bench, browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(START) == 0
    assert run(["report", "--html", str(tmp_path / "report.html")]) == 0
    assert f"report written to {tmp_path / 'report.html'}" in capsys.readouterr().err
    page, seen = visit(browser, tmp_path / "report.html")
    assert page.locator("h1").inner_text() == "Culprit proven"
    assert page.locator("#posterior svg").is_visible()
    assert seen == []


def test_text_stands_out_in_both_schemes_and_paper_holds_the_page(browser: Browser, tmp_path: Path) -> None:
    """Of each kind of report: also the flame graph, whose frames bring colours of their own."""
    seen = {}
    for name, path in reports(tmp_path):
        page, _ = visit(browser, path)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        seen[name] = browser_checks.texts_that_do_not_stand_out(page) + browser_checks.useless_on_paper(page)
    assert seen == {"report": [], "comparison": [], "profile": []}

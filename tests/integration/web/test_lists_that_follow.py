"""Open pages of lists in a real Chromium: they show what changes, and leave alone what somebody uses.

Of `changed_lists` and `changes.js`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.execution.health_check import health_store
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.model.stored_bisection import Action
from tests.support.pages.chromium import NEEDS_CHROMIUM
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens

SOON = 30_000
"""Milliseconds until a change is shown: 3 s, many times that on a machine that is busy."""
pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def wiring(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    return served_lab.make(tmp_path_factory.mktemp("lab"), boots=12)


@pytest.fixture(scope="module")
def token(wiring: Wiring) -> str:
    return make_tokens(wiring)["operate"]


@pytest.fixture(scope="module")
def shown(browser: Browser, token: str) -> Iterator[Page]:
    with browser.new_context(extra_http_headers={"Authorization": f"Bearer {token}"}) as context:
        yield context.new_page()


@pytest.fixture
def page(shown: Page) -> Iterator[Page]:
    seen: list[str] = []
    note = lambda error: seen.append(str(error))  # noqa: E731 - it is taken away by its name
    shown.on("pageerror", note)
    yield shown
    shown.goto("about:blank")  # which ends its stream
    shown.remove_listener("pageerror", note)
    assert seen == []


def open_at(page: Page, address: str) -> None:
    """Open a page and mark it: what is loaded again has no mark."""
    page.goto(address)
    page.evaluate("window.isStill = true")


def test_lists_show_what_changes_without_being_loaded_again(page: Page, url: str, wiring: Wiring) -> None:
    open_at(page, url)
    tiles = page.locator(".tiles")
    expect(tiles).to_contain_text("1 open alerts")
    change = AlertChange(state="invalid", note="a new compiler")
    set_alert(open_alerts(wiring), served_lab.ALERT, change, "ann")
    expect(tiles).to_contain_text("0 open alerts", timeout=SOON)
    wiring.coordinator.set_testbed("machine-b", "maintenance", "a disk is changed", "bob")
    expect(page.locator("main")).to_contain_text("a disk is changed", timeout=SOON)
    assert page.evaluate("window.isStill")
    open_at(page, f"{url}/queue")
    expect(page.locator("main")).to_contain_text("normal")
    wiring.store.set_priority("queued-1", 2, Action("given priority 2", "ann", ""))
    expect(page.locator("main")).to_contain_text("high", timeout=SOON)
    assert page.evaluate("window.isStill")


def test_a_series_keeps_its_zoom_button_and_a_drawing_that_somebody_zooms(
    page: Page, url: str, wiring: Wiring
) -> None:
    open_at(page, f"{url}/series/{served_lab.SERIES}")
    page.get_by_role("button", name="Zoom").press("Enter")
    assert page.locator(".uplot canvas").is_visible()
    series_store(wiring).set_state(served_lab.SERIES, "paused", "holidays")
    expect(page.locator("body > header")).to_contain_text("paused", timeout=SOON)
    assert page.locator(".uplot canvas").is_visible()
    page.get_by_role("button", name="Whole drawing").press("Enter")
    assert page.get_by_role("button", name="Zoom").count() == 1
    assert page.evaluate("window.isStill")


def test_what_somebody_reads_or_writes_is_left_alone(page: Page, url: str, wiring: Wiring) -> None:
    open_at(page, f"{url}/testbeds/machine-a")
    page.get_by_text("The latest checks").click()
    page.locator("form[action$=state] [name=reason]").fill("half a senten")
    page.get_by_text("The latest checks").focus()
    health = health_store(wiring)
    kernel = health.points("machine-a")[-1].kernel
    health.add_point("machine-a", kernel, "sound", "it is well again", (1000.0, 1001.0))
    checks = page.locator("#reference-plot")
    expect(checks).to_contain_text("it is well again", timeout=SOON)
    assert checks.locator("details").evaluate("(one) => one.open")
    assert page.evaluate("document.activeElement.textContent") == "The latest checks"
    wiring.coordinator.set_testbed("machine-a", "maintenance", "new memory", "bob")
    expect(page.locator("body > header")).to_contain_text("new memory", timeout=SOON)
    assert page.locator("form[action$=state] [name=reason]").input_value() == "half a senten"
    assert page.evaluate("window.isStill")


def test_another_kind_of_page_is_loaded_again(page: Page, url: str, wiring: Wiring) -> None:
    open_at(page, f"{url}/series")
    series_store(wiring).remove(served_lab.SERIES)
    expect(page.locator("main")).to_contain_text("No series yet", timeout=SOON)


def test_a_page_that_nobody_sees_holds_no_connection(page: Page, url: str) -> None:
    hide = "(is) => { Object.defineProperty(document, 'hidden', {value: is, configurable: true});"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    with page.expect_request("**/changes?since=*") as opened:
        page.goto(f"{url}/queue")
    asked.clear()
    with page.expect_event("requestfailed", lambda one: one == opened.value):
        page.evaluate(hide, True)
    page.wait_for_timeout(200)
    assert not any("/changes" in address for address in asked)
    with page.expect_request("**/changes?since=*") as again:
        page.evaluate(hide, False)
    assert again.value.url == opened.value.url

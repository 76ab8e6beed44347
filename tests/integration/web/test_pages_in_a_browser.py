"""The server's pages in a real Chromium, with hostile text wherever text comes from elsewhere.

Of `listed_choices`, `overview_page`, `queue_page`, `bisection_list`, `live_bisection`, `testbed_pages`,
`compare_page`, `costs_page`, `series_pages`, `alert_pages` and `outbox_page`.
One browser and one server serve all tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from bisector.app import find_culprit
from bisector.app.alerts.alert_changes import AlertChange, set_alert
from bisector.app.alerts.alert_context import open_alerts
from bisector.app.mail.delivery import outbox_of
from bisector.app.series import manage_series
from bisector.app.series.series_store import series_store
from bisector.app.wiring import Wiring
from bisector.engine.state_lock import lock
from bisector.interfaces.web.pages import drawn_bisections
from bisector.model.access import Role
from bisector.model.records import Ran
from bisector.model.series import Night
from bisector.model.stored_bisection import Stored
from bisector.schemas.request import Request
from bisector.schemas.web_settings import WebSettings
from tests.support.pages import browser_checks
from tests.support.pages.chromium import NEEDS_CHROMIUM
from tests.support.report_material import HOSTILE, METRIC
from tests.support.servers import served_lab
from tests.support.servers.web import make_tokens
from tests.support.small_git import SmallGit

WIDTHS = (360, 1280, 1920)
SAID = HOSTILE.replace("{", "{{").replace("}", "}}") + " {}"
REPOSITORIES = ("linux", "stable")
FOCUSABLE = "a[href], button, input:not([type=hidden]):not([hidden]), select, summary, [tabindex='0']"
pytestmark = NEEDS_CHROMIUM


@pytest.fixture(scope="module")
def wiring(tmp_path_factory: pytest.TempPathFactory) -> Wiring:
    folder = tmp_path_factory.mktemp("repositories")
    listed = {name: SmallGit(folder / name).make("a").path for name in REPOSITORIES}
    return served_lab.make(tmp_path_factory.mktemp("lab"), SAID, web=WebSettings(repositories=listed))


@pytest.fixture(scope="module")
def secrets(wiring: Wiring) -> dict[Role, str]:
    return make_tokens(wiring)


@contextmanager
def log_in(browser: Browser, url: str, token: str, *, script: bool = True) -> Iterator[BrowserContext]:
    """Give a browser's context with a session that was begun in the form."""
    with browser.new_context(java_script_enabled=script) as context:
        page = context.new_page()
        page.goto(f"{url}/queue")
        assert page.url == f"{url}/login?next=%2Fqueue"
        page.fill("#token", token)
        page.get_by_role("button", name="Log in", exact=True).click()
        assert page.url == f"{url}/queue"
        yield context
        page.goto("about:blank")  # ends its stream: while the machine is busy, Chromium may not close one


@pytest.fixture(scope="module")
def operator(browser: Browser, url: str, secrets: dict[Role, str]) -> Iterator[BrowserContext]:
    with log_in(browser, url, secrets["operate"]) as context:
        yield context


@pytest.fixture(scope="module")
def plain(browser: Browser, url: str, secrets: dict[Role, str]) -> Iterator[Page]:
    """A page without JavaScript."""
    with log_in(browser, url, secrets["operate"], script=False) as context:
        yield context.pages[0]


@pytest.fixture(scope="module")
def noticed(operator: BrowserContext, url: str) -> list[str]:
    """Every message, dialog, error, or request to elsewhere of the page."""
    page, seen = operator.pages[0], list[str]()
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("dialog", lambda dialog: seen.append(f"dialog: {dialog.message}"))
    page.on(
        "request",
        lambda request: None if request.url.startswith(url) else seen.append(f"request: {request.url}"),
    )
    return seen


@pytest.fixture
def page(operator: BrowserContext, noticed: list[str]) -> Iterator[Page]:
    """The one page that all tests open in turn: closing one hangs at times while the machine is busy."""
    page = operator.pages[0]
    page.set_viewport_size({"width": 1280, "height": 720})  # Playwright's own: a test may have changed it
    page.goto("about:blank")
    noticed.clear()
    yield page
    assert noticed == []


FITS = """() => ({
    page: document.documentElement.scrollWidth,
    actions: [...document.querySelectorAll(".actions, .actions *")].filter((one) => one.scrollWidth &&
        one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML),
    cells: [...document.querySelectorAll(".wide:has(.list)")].filter((one) =>
        one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)})"""


@pytest.mark.parametrize("path", served_lab.PAGES)
def test_a_page_serves_every_reader(page: Page, plain: Page, url: str, path: str) -> None:
    """One visit with JavaScript and one without: to load a page takes longer than to look at it."""
    plain.goto(url + path)
    answer = page.goto(url + path)
    assert answer is not None and answer.status == 200
    says_the_same_without_javascript(plain, page)
    is_reached_by_the_keyboard(page)
    has_one_heading_and_nothing_foreign(page)
    fits_every_screen(page)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    fits_every_screen(page)
    assert browser_checks.texts_that_do_not_stand_out(page) == []
    assert browser_checks.useless_on_paper(page) == []


def says_the_same_without_javascript(plain: Page, page: Page) -> None:
    without_buttons = "main section:not(#samples, #nights)"  # to zoom
    texts = [one.locator(without_buttons).all_inner_texts() for one in (plain, page)]
    assert texts[0] == texts[1]
    assert plain.locator("svg").count() == page.locator("svg").count()


def is_reached_by_the_keyboard(page: Page) -> None:
    wanted = page.locator(f":is({FOCUSABLE}):visible").count()
    page.evaluate(
        "document.addEventListener('focusin', (event) => event.target.setAttribute('data-reached', ''))"
    )
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "To the content"
    for _ in range(wanted - 1):
        page.keyboard.press("Tab")
    assert page.locator("[data-reached]").count() == wanted
    assert page.locator(f"[data-reached]:is({FOCUSABLE})").count() == wanted
    page.keyboard.press("Tab")  # which leaves the page, or begins again: nothing catches it
    assert page.evaluate("document.activeElement.matches('body, .skip')")
    for label in page.locator(".wide").all():
        assert label.get_attribute("aria-label")
    tables = page.locator("table").count()
    assert page.locator("table:has(thead th[scope=col])").count() == tables
    fields = "input:not([type=hidden]):not([hidden]), select"
    assert page.locator(f"label :is({fields}), #token").count() == page.locator(f":is({fields})").count()


def has_one_heading_and_nothing_foreign(page: Page) -> None:
    assert page.locator("h1").count() == page.locator("main").count() == 1
    assert page.locator("img, iframe, object").count() == 0
    assert page.locator("[style], style, script:not([src]):not([type='application/json'])").count() == 0


def fits_every_screen(page: Page) -> None:
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found = page.evaluate(FITS)
        assert found["page"] <= width, width
        assert found["actions"] == [], width
        assert found["cells"] == [] or width != min(WIDTHS), "cells beyond the edge"


@pytest.mark.parametrize("path", ["/testbeds/machine-a", "/bisections/done-1"])
def test_what_a_console_printed_is_shown_as_text(page: Page, url: str, path: str) -> None:
    page.goto(url + path)
    printed = page.locator("main td", has_text="<script>alert(1)</script>").filter(
        has_text="{{ 7*7 }} console"
    )
    assert printed.count() > 0 and page.locator("img").count() == 0


@pytest.mark.parametrize(("path", "drawn"), [("/bisections/done-1", 3), (f"/alerts/{served_lab.ALERT}", 1)])
def test_a_telephone_shows_the_part_of_a_drawing_that_is_looked_for(
    page: Page, url: str, path: str, drawn: int
) -> None:
    page.set_viewport_size({"width": min(WIDTHS), "height": 900})
    page.goto(url + path)
    page.wait_for_load_state()
    places = "[...document.querySelectorAll('.wide')].filter((one) => one.querySelector('text.culprit')).map("
    places += (
        "(one) => one.querySelector('text.culprit').getBoundingClientRect()).map((r) => [r.left, r.right])"
    )
    found = page.evaluate(places)
    assert len(found) == drawn
    assert all(left >= 0 and right <= min(WIDTHS) for left, right in found), found


def test_what_happens_is_told_as_it_happens(
    page: Page, url: str, wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_bisections, "_SHARE", float("inf"))
    boot = next(one.boot for _, one in reversed(wiring.store.records("running-1")) if isinstance(one, Ran))
    with lock(wiring.settings.state_dir, "running-1"):
        page.goto(f"{url}/bisections/running-1")
        page.wait_for_selector("#happened li")  # the last decision
        samples = page.locator("#samples svg desc")
        before = samples.inner_html()
        wiring.store.append("running-1", Ran(boot, 40, {METRIC.name: 61.5}, 2.0, 1.8e9))
        page.wait_for_selector("text=real 61.5")
        expect(samples).not_to_have_text(before, timeout=30_000)
        wiring.store.set_status("running-1", "paused")
        page.wait_for_selector("text=stopped without a conclusion (paused)")
    wiring.store.set_status("running-1", "running")


def test_a_page_that_was_opened_while_it_waited_says_that_it_runs(
    page: Page, url: str, wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_bisections, "_SHARE", float("inf"))
    boot = next(one.boot for _, one in reversed(wiring.store.records("queued-1")) if isinstance(one, Ran))
    with lock(wiring.settings.state_dir, "queued-1"):
        page.goto(f"{url}/bisections/queued-1")
        expect(page.locator("#doing")).to_contain_text("It waits in the queue.")
        wiring.store.set_status("queued-1", "running")
        wiring.store.append("queued-1", Ran(boot, 41, {METRIC.name: 61.5}, 2.0, 1.8e9))
        expect(page.locator("body > header .kind")).to_contain_text("running", timeout=30_000)
        expect(page.locator("#doing")).not_to_contain_text("It waits in the queue.")
    wiring.store.set_status("queued-1", "queued")


def test_the_report_keeps_its_style_and_cannot_use_the_session(page: Page, url: str) -> None:
    answer = page.goto(f"{url}/bisections/done-1/report.html")
    assert answer is not None and "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert page.evaluate("getComputedStyle(document.querySelector('.skip')).position") == "absolute"
    page.get_by_role("button", name="Zoom").press("Enter")
    assert page.locator(".uplot canvas").is_visible()
    assert page.evaluate("origin") == "null"


def test_forms_do_what_they_say(page: Page, url: str, wiring: Wiring) -> None:
    page.goto(f"{url}/bisections/paused-1")
    page.select_option("[name=priority]", "high")
    page.get_by_role("button", name="Set", exact=True).click()
    page.fill("form[action$=resume] [name=reason]", HOSTILE.replace("\x1b", "").replace("\u202e", ""))
    page.get_by_role("button", name="Resume", exact=True).click()
    assert page.url == f"{url}/bisections/paused-1"
    (found,) = wiring.store.list(beginning="paused-1")
    assert (found.status, found.priority) == ("queued", 2)
    assert found.action is not None and found.action.by == "operate" and "<script>" in found.action.why
    page.get_by_role("button", name="Pause", exact=True).click()
    assert wiring.store.status("paused-1") == "paused"


def test_a_testbed_is_taken_and_given_back(page: Page, url: str, wiring: Wiring) -> None:
    name = served_lab.TESTBEDS[2]
    page.goto(f"{url}/testbeds/{name}")
    page.select_option("[name=state]", "maintenance")
    page.locator("form[action$=state] [name=reason]").fill("new memory")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("text=new memory")
    page.fill("[name=hours]", "1.5")
    page.get_by_role("button", name="Reserve").click()
    page.wait_for_selector("th:has-text('operate')")
    (state,) = [one for one in wiring.coordinator.testbeds() if one.name == name]
    assert (state.state, state.reason, state.by) == ("maintenance", "new memory", "operate")
    (held,) = [one for one in wiring.coordinator.reservations() if one.testbed == name]
    assert held.who == "operate" and round((held.end - held.start) / 360) == 15
    page.select_option("[name=state]", "good")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("text=Nobody has reserved it.")


def test_a_message_goes_out_at_a_word(page: Page, url: str, wiring: Wiring) -> None:
    page.goto(f"{url}/outbox/2")
    page.get_by_role("button", name="Approve: send it").click()
    page.wait_for_selector("text=approved")
    page.fill("[name=reason]", "not yet")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("text=not yet")
    entry = outbox_of(wiring).entry(2)
    assert (entry.state, entry.by, entry.note) == ("stopped", "operate", "not yet")


def test_nights_can_be_zoomed_and_lead_to_their_alert(page: Page, url: str) -> None:
    page.goto(f"{url}/series/{served_lab.SERIES}")
    page.get_by_role("button", name="Zoom").press("Enter")
    assert page.locator(".uplot canvas").is_visible() and not page.locator("#nights-drawing").is_visible()
    page.get_by_role("button", name="Whole drawing").press("Enter")
    assert page.locator("#nights-drawing").is_visible() and page.locator(".uplot").count() == 0
    page.locator("#nights-drawing a").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{url}/alerts/{served_lab.ALERT}")


def test_a_bisection_is_started_in_a_form(
    page: Page, url: str, wiring: Wiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def queue(_: Wiring, request: Request, *rest: object) -> Stored:
        asked.append(request)
        return wiring.store.load("queued-1")

    monkeypatch.setattr(find_culprit, "queue", queue)
    page.goto(f"{url}/bisections")
    page.get_by_text("Start a bisection").click()
    page.select_option("form[action='/bisections'][method=post] [name=repo]", "stable")
    page.fill("[name=good]", "v6.1")
    page.fill("[name=bad]", "v6.2")
    page.select_option("form[method=post] [name=workload]", "pipe-test")
    page.select_option("[name=testbed]", "machine-b")
    page.fill("[name=threshold]", "2%")
    page.fill("[name=max_hours]", "2.5")
    page.get_by_role("button", name="Start", exact=True).click()
    assert page.url == f"{url}/bisections/queued-1"
    (one,) = asked
    assert wiring.settings.web is not None
    stable = str(wiring.settings.web.repositories["stable"])
    assert (one.repo, one.good, one.bad, one.workload) == (stable, "v6.1", "v6.2", "pipe-test")
    assert (one.testbeds, one.threshold, one.max_hours) == (("machine-b",), "2%", 2.5)
    form: dict[str, str | float | bool] = {"repo": "linux", "good": "--exec=sh", "bad": "b"}
    for origin, status, words in (
        (url, 400, "ood: must be the name"),
        ("https://evil.example", 403, "another origin"),
    ):
        headers = {"Origin": origin, "Accept": "text/html"}
        answer = page.request.post(f"{url}/bisections", form=form, headers=headers)
        assert answer.status == status and words in answer.text(), answer.text()
    assert len(asked) == 1


def test_a_series_is_added_measured_and_paused_in_forms(
    page: Page,
    browser: Browser,
    url: str,
    secrets: dict[Role, str],
    wiring: Wiring,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        manage_series, "plan_series", lambda _, asked: manage_series.PlannedSeries(asked, (), "c")
    )
    page.goto(f"{url}/series")
    page.get_by_text("Add a series").click()
    page.fill("[name=name]", "stable-pipe")
    page.fill("[name=branch]", "origin/linux-6.1.y")
    page.select_option("[name=testbed]", "machine-a")
    page.fill("[name=budget]", "7.5")
    page.get_by_role("button", name="Add", exact=True).click()
    assert page.url == f"{url}/series/stable-pipe"
    added = series_store(wiring).load("stable-pipe")
    assert (added.branch, added.budget, added.created_by) == ("origin/linux-6.1.y", 7.5, "operate")
    page.get_by_role("button", name="Measure a night now").click()
    assert [night.state for night in series_store(wiring).nights("stable-pipe")] == ["due"]
    page.fill("[name=reason]", "new memory")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector("text=new memory")
    page.get_by_role("button", name="Resume").click()
    assert series_store(wiring).load("stable-pipe").state == "active"
    assert page.get_by_role("button", name="Remove the series").count() == 0
    answer = page.request.post(f"{url}/series/stable-pipe/removal", headers={"Origin": url})
    assert answer.status == 403
    with log_in(browser, url, secrets["admin"]) as context:
        admin = context.pages[0]
        admin.goto(f"{url}/series/stable-pipe")
        admin.get_by_text("Remove for good").click()
        admin.get_by_role("button", name="Remove the series").click()
        assert admin.url == f"{url}/series"
    assert "stable-pipe" not in [series.name for series in series_store(wiring).all()]


def test_older_commits_are_asked_for_in_a_form(page: Page, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def backfill(_: Wiring, *said: object) -> list[Night]:
        asked.append(said)
        return []

    monkeypatch.setattr(manage_series, "backfill", backfill)
    page.goto(f"{url}/series/{served_lab.SERIES}")
    page.get_by_text("Measure older commits").click()
    page.fill("[name=since]", "v6.0")
    page.fill("[name=every]", "5")
    page.get_by_role("button", name="Measure them").click()
    assert page.url == f"{url}/series/{served_lab.SERIES}"
    assert asked == [(served_lab.SERIES, "v6.0", 5)]


def test_an_alert_is_said_to_be_something_by_who_saw_it_as_it_is(
    page: Page, url: str, wiring: Wiring
) -> None:
    page.goto(f"{url}/alerts/{served_lab.ALERT}")
    assert page.locator("#nights-drawing .band").count() == 1
    page.select_option("[name=state]", "acknowledged")
    page.fill("[name=assignee]", "ann")
    page.fill("[name=note]", "looks real")
    page.get_by_role("button", name="Say so").click()
    page.wait_for_selector("td:has-text('looks real')")
    alert = open_alerts(wiring).load(served_lab.ALERT)
    assert (alert.state, alert.assignee) == ("acknowledged", "ann")
    set_alert(open_alerts(wiring), alert.id, AlertChange(note="somebody was faster"), "bob")
    answer = page.request.post(
        f"{url}/alerts/{alert.id}",
        form={"state": "invalid", "revision": str(alert.revision)},
        headers={"Origin": url, "Accept": "text/html"},
    )
    assert answer.status == 400 and "was changed meanwhile" in answer.text()
    assert open_alerts(wiring).load(alert.id).state == "acknowledged"


def test_a_reader_sees_no_forms_and_whoever_logs_out_nothing(
    browser: Browser, url: str, secrets: dict[Role, str]
) -> None:
    with log_in(browser, url, secrets["read"]) as context:
        page = context.pages[0]
        page.goto(f"{url}/bisections/paused-1")
        assert page.locator("form").count() == 1  # log out
        for path in ("/bisections", "/series", f"/series/{served_lab.SERIES}"):
            page.goto(url + path)
            assert page.locator("form[method=post]").count() == 1, path
        page.goto(f"{url}/bisections/paused-1")
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Strict", False)
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Log out", exact=True).click()
        assert page.url == f"{url}/login" and not context.cookies()
        context.add_cookies([{"name": cookie["name"], "value": cookie["value"], "url": url}])
        page.goto(f"{url}/bisections")
        assert page.url == f"{url}/login?next=%2Fbisections"


def test_a_link_from_elsewhere_finds_the_session(operator: BrowserContext, url: str, tmp_path: Path) -> None:
    mail = tmp_path / "mail.html"
    mail.write_text(f"<a href='{url}/bisections/done-1?from=mail'>a mail that is read in the browser</a>")
    page = operator.pages[0]
    page.goto(mail.as_uri())
    page.click("a")
    page.wait_for_selector("#sections")
    assert page.url == f"{url}/bisections/done-1?from=mail"

"""Every page: it draws, has contrast and labels, and is never wider than a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.sessions import open_session
from tests.browser.watched_page import ColorScheme, WatchedPage
from tests.integration.server_process import ServerProcess

SESSION = "a session"
PAGES = {
    "overview": "Overview",
    "models": "Models",
    "models/digits": "digits",
    "sessions": "Sessions",
    SESSION: "counting",
    "timeline": "Step timeline",
    "pools": "Thread pools",
}


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_page_is_legible_and_labelled(
    browser: Browser, server: ServerProcess, width: int, color_scheme: ColorScheme
) -> None:
    id = open_session(server, model="counter", name="counting")
    found = {}
    with WatchedPage(
        browser, server.http_address, width=width, color_scheme=color_scheme
    ) as watched:
        for route, heading in PAGES.items():
            page = watched.open(f"sessions/{id}" if route == SESSION else route)
            page.get_by_role("heading", level=1, name=heading).wait_for()
            page.locator("main .panel").first.wait_for()
            assert page.get_by_role("alert").count() == 0
            found[route] = watched.violations()
            assert not watched.is_too_wide(), route
    assert found == {route: [] for route in PAGES}


def test_an_address_without_a_page_says_so(page: WatchedPage) -> None:
    page.page.goto(f"{page.address}/console/#/nowhere")
    page.page.get_by_text("There is no such page.").wait_for()


def test_the_navigation_leads_to_every_page_by_keyboard(page: WatchedPage) -> None:
    opened = page.open("overview")
    links = opened.get_by_role("navigation", name="Pages").get_by_role("link")
    for name in links.all_inner_texts():
        links.get_by_text(name, exact=True).focus()
        opened.keyboard.press("Enter")
        opened.get_by_role("heading", level=1, name=name).wait_for()


def test_a_chosen_theme_is_kept(page: WatchedPage) -> None:
    opened = page.open("sessions")
    opened.get_by_role("button", name="Theme: system").click()
    opened.get_by_role("button", name="Theme: light").click()
    opened.reload()
    opened.get_by_role("button", name="Theme: dark").wait_for()
    assert opened.evaluate("document.documentElement.dataset.theme") == "dark"

"""The console below a path prefix of a proxy: no request leaves the prefix."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.browser.prefix_proxy import PREFIX, PrefixProxy
from tests.browser.watched_page import WatchedPage
from tests.integration.server_process import ServerProcess


def test_the_console_works_below_a_prefix(browser: Browser, server: ServerProcess) -> None:
    with (
        PrefixProxy(server.http_address) as proxy,
        WatchedPage(browser, proxy.address) as watched,
    ):
        opened = watched.page
        opened.goto(f"{proxy.address}/console")  # redirected to the folder, prefix and all
        opened.get_by_role("heading", level=1, name="Overview").wait_for()
        assert opened.url.startswith(f"{proxy.address}/console/")
        assert PREFIX in opened.url
        opened.get_by_text("Live", exact=True).wait_for()
        watched.open("sessions")
        opened.get_by_label("Name").fill("behind a proxy")
        opened.get_by_role("option", name="half_plus_two").wait_for(state="attached")
        opened.get_by_role("button", name="Open a session").click()
        opened.get_by_role("heading", level=1, name="behind a proxy").wait_for()
        opened.get_by_role("button", name="Run the step").click()
        opened.get_by_text("Done in").wait_for()
        opened.get_by_role("button", name="Close session").click()
        opened.get_by_role("dialog").get_by_role("button", name="Close the session").click()
        opened.get_by_role("heading", level=1, name="Sessions").wait_for()

"""Logging in with a key: the cookie, wrong keys, roles, the way out; no key in an address."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.watched_page import WatchedPage
from tests.integration.access import bearer, key_of
from tests.integration.server_process import ServerProcess

COOKIE = "runstep_console"


def log_in(page: WatchedPage, key: str) -> Page:
    """Enter a key on the login form of the sessions page."""
    page.may_answer = {401, 403}
    opened = page.page
    opened.goto(f"{page.address}/console/#/sessions")
    opened.get_by_label("Key or token").fill(key)
    opened.get_by_role("button", name="Log in").click()
    return opened


def test_a_key_logs_in_and_out(guarded_page: WatchedPage) -> None:
    opened = log_in(guarded_page, key_of("alice"))
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    expect(opened.get_by_text("alice", exact=True)).to_be_visible()
    (cookie,) = opened.context.cookies()
    assert cookie["name"] == COOKIE
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert key_of("alice") not in cookie["value"]
    assert opened.evaluate("document.cookie") == ""
    opened.reload()
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    opened.get_by_role("button", name="Log out").click()
    opened.get_by_label("Key or token").wait_for()
    opened.reload()
    opened.get_by_label("Key or token").wait_for()


def test_the_key_is_in_no_address_and_in_no_storage(guarded_page: WatchedPage) -> None:
    addresses: list[str] = []
    guarded_page.page.on("request", lambda request: addresses.append(request.url))
    opened = log_in(guarded_page, key_of("alice"))
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    assert addresses
    assert not any(key_of("alice") in address for address in addresses)
    stored = opened.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert key_of("alice") not in stored


def test_a_refusal_that_comes_after_the_login_does_not_ask_for_the_key_again(
    guarded_page: WatchedPage,
) -> None:
    refused: list[Route] = []
    path = "/console/api/me"

    def hold_the_first(route: Route) -> None:
        if refused:
            route.fallback()
        else:
            refused.append(route)

    guarded_page.page.route(f"**{path}", hold_the_first)
    opened = log_in(guarded_page, key_of("alice"))
    heading = opened.get_by_role("heading", level=1, name="Sessions")
    heading.wait_for()
    with opened.expect_response(lambda each: each.url.endswith(path) and each.status == 401):
        refused[0].fulfill(status=401, json={"error": "No key.", "code": "UNAUTHENTICATED"})
    opened.wait_for_timeout(200)  # the page has read the answer by then
    expect(heading).to_be_visible()
    assert opened.get_by_label("Key or token").count() == 0


def test_a_wrong_key_is_refused_in_a_sentence(guarded_page: WatchedPage) -> None:
    opened = log_in(guarded_page, "wrong")
    opened.get_by_role("alert").wait_for()
    expect(opened.get_by_label("Key or token")).to_be_visible()
    assert opened.context.cookies() == []
    assert guarded_page.violations() == []


def test_a_session_belongs_to_whoever_opened_it(
    guarded_page: WatchedPage, guarded_server: ServerProcess
) -> None:
    of_bob = guarded_server.client.post(
        "/v1/sessions", json={"name": "of bob"}, headers=bearer("bob")
    ).json()["session"]
    opened = log_in(guarded_page, key_of("alice"))
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    opened.get_by_label("Name").fill("of alice")
    opened.get_by_label("Model", exact=True).select_option("")
    opened.get_by_role("button", name="Open a session").click()
    opened.get_by_role("heading", level=1, name="of alice").wait_for()
    opened.goto(f"{guarded_page.address}/console/#/sessions")
    own = opened.get_by_role("row", name="of alice")
    own.get_by_role("link").wait_for()  # an owner sees the whole ids of its own sessions
    assert of_bob not in opened.content()
    own.get_by_role("button", name="Close session of alice").click()
    opened.get_by_role("dialog").get_by_role("button", name="Close the session").click()
    own.wait_for(state="detached")


@pytest.mark.parametrize(("owner", "refusal"), [("alice", "needs the role admin"), ("root", "")])
def test_what_a_role_lacks_stands_on_its_button(
    guarded_page: WatchedPage, owner: str, refusal: str
) -> None:
    opened = log_in(guarded_page, key_of(owner))
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    opened.goto(f"{guarded_page.address}/console/#/overview")
    drain = opened.get_by_role("button", name="Drain")
    drain.wait_for()
    if refusal:
        expect(drain).to_contain_text(refusal)
        drain.click(force=True)  # it says that it is disabled, but can be reached
        assert opened.get_by_role("dialog").count() == 0
    else:
        expect(drain).not_to_contain_text("needs")


def test_a_caller_without_the_role_of_sessions_is_told_so(guarded_page: WatchedPage) -> None:
    opened = log_in(guarded_page, key_of("reader"))
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    opened.get_by_role("button", name="Open a session").click()
    expect(opened.get_by_role("alert").first).to_contain_text("PERMISSION_DENIED")

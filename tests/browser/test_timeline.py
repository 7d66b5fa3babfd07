"""The page of step timelines: drawn, zoomed and moved by mouse and keyboard, saved as a file."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.browser.sessions import open_session
from tests.browser.watched_page import WatchedPage
from tests.integration.server_process import ServerProcess


def traced(page: WatchedPage) -> Page:
    """The page after a step of the digits was traced."""
    opened = page.open("timeline")
    opened.get_by_text("No step has been traced on this page yet.").wait_for()
    opened.get_by_label("Model", exact=True).select_option("digits")
    expect(opened.get_by_label("Tensor")).to_have_value(re.compile("image"))
    opened.get_by_role("button", name="Run and trace").click()
    opened.locator(".timeline .span").first.wait_for()
    return opened


def shown(page: Page) -> str:
    """The times at both ends of what the lanes show."""
    return page.locator(".panel [role=status]", has_text=" to ").first.inner_text()


def test_a_signature_is_traced(page: WatchedPage, server: ServerProcess) -> None:
    opened = traced(page)
    expect(opened.locator(".lane-name").first).to_have_text("online · thread 1 · numpy")
    rows = opened.get_by_role("table", name="The ten slowest ops").get_by_role("row")
    assert rows.count() == 11
    assert "Conv2D" in opened.get_by_role("table").inner_text()
    assert page.violations() == []
    with opened.expect_download() as download:
        opened.get_by_role("button", name="Download for Perfetto").click()
    trace = json.loads(download.value.path().read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {"Conv2D", "MatMul", "Softmax"} <= {event["name"] for event in spans}
    assert all(event["dur"] >= 0 for event in spans)
    # The session of the trace was its own, and is closed.
    names = [one["name"] for one in server.client.get("/v1/sessions").json()["sessions"]]
    assert "timeline" not in names


def test_lanes_move_and_zoom_by_keyboard(page: WatchedPage) -> None:
    opened = traced(page)
    whole = shown(opened)
    opened.get_by_role("group", name="Timeline").focus()
    states = [whole]
    for key in ("+", "ArrowRight", "ArrowLeft", "End", "Home", "-", "+"):
        opened.keyboard.press(key)
        states.append(shown(opened))
    opened.keyboard.press("0")
    assert shown(opened) == whole
    zoomed_in, right, left, end, home, out, _ = states[1:]
    assert len({whole, zoomed_in, right, end}) == 4
    assert left == zoomed_in
    assert home.startswith("0 s to ")
    assert out == whole


def test_lanes_move_and_zoom_by_mouse(page: WatchedPage) -> None:
    opened = traced(page)
    whole = shown(opened)
    lanes = opened.locator(".timeline")
    lanes.scroll_into_view_if_needed()
    lanes.click(position={"x": 400, "y": 8})
    opened.mouse.wheel(0, -300)
    opened.mouse.wheel(0, -300)
    expect(opened.locator(".panel [role=status]", has_text=" to ").first).not_to_have_text(whole)
    before = shown(opened)
    box = lanes.bounding_box()
    assert box is not None
    opened.mouse.move(box["x"] + 500, box["y"] + 10)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 300, box["y"] + 10, steps=4)
    opened.mouse.up()
    assert shown(opened) != before
    opened.get_by_role("button", name="Show the whole step").click()
    assert shown(opened) == whole


def test_a_slow_op_is_shown_in_the_lanes(page: WatchedPage) -> None:
    opened = traced(page)
    row = opened.get_by_role("table", name="The ten slowest ops").get_by_role("row").nth(1)
    node = row.get_by_role("rowheader").inner_text()
    row.get_by_role("button", name="Show").click()
    expect(opened.locator(".span.chosen")).to_have_count(1)
    expect(opened.locator("p[role=status]", has_text=node)).to_be_visible()


def test_a_step_of_a_session_is_traced(page: WatchedPage, server: ServerProcess) -> None:
    id = open_session(server, model="half_plus_two")
    opened = page.open(f"sessions/{id}")
    opened.get_by_label("Trace it").check()
    opened.get_by_role("button", name="Run the step").click()
    opened.get_by_role("heading", level=1, name="Step timeline").wait_for()
    opened.locator(".timeline .span").first.wait_for()

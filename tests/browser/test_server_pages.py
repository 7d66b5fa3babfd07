"""The overview, the pools and the models: live figures, examples that are sent, models steered."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.watched_page import WatchedPage
from tests.integration.server_process import ServerProcess

HALF_PLUS_TWO = "/v1/models/half_plus_two:predict"


@pytest.fixture
def load(server: ServerProcess) -> Iterator[None]:
    """Predictions of half_plus_two, one after the other, while a test runs."""
    ended = threading.Event()

    def call() -> None:
        while not ended.wait(0.01):
            server.client.post(HALF_PLUS_TWO, json={"instances": [1.0]}).raise_for_status()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join()


def row(page: Page, table: str, name: str) -> str:
    """The text of a row, once it is there."""
    found = page.get_by_role("table", name=table).get_by_role("row", name=name).first
    found.wait_for()
    return found.inner_text()


def label(page: Page, name: str, version: str) -> None:
    """Move a label of half_plus_two by the dialog."""
    page.get_by_role("button", name="Move a label of half_plus_two").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Label").fill(name)
    dialog.get_by_label("Version").select_option(version)
    dialog.get_by_role("button", name="Move", exact=True).click()


@pytest.mark.usefixtures("load")
def test_the_figures_change_until_they_are_held(page: WatchedPage) -> None:
    opened = page.open("overview")
    rows = opened.get_by_role("table", name="Requests by model")
    total = rows.get_by_role("row", name="half_plus_two").get_by_role("cell").nth(4)
    first = total.inner_text()
    expect(total).not_to_have_text(first)
    opened.get_by_role("button", name="Hold figures").click()
    held = opened.locator("main").inner_text()
    opened.evaluate("new Promise((done) => setTimeout(done, 2500))")  # two messages
    assert opened.locator("main").inner_text() == held


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(
    ("group", "name"), [("Model", "half_plus_two"), ("Front", "REST"), ("Priority", "normal")]
)
def test_requests_are_grouped(page: WatchedPage, group: str, name: str) -> None:
    opened = page.open("overview")
    opened.get_by_role("button", name=group, exact=True).click()
    assert name in row(opened, f"Requests by {group.lower()}", name)
    chart = opened.get_by_role("img", name=f"Requests per second by {group.lower()}")
    expect(chart.locator("canvas")).to_be_visible()


def test_normal_pools_stand_beside_low_ones(page: WatchedPage) -> None:
    opened = page.open("pools")
    for title, pool in (("Normal priority", "online"), ("Low priority", "background")):
        panel = opened.get_by_role("region", name=title)
        expect(panel.get_by_role("img", name="Queue")).to_have_accessible_name(re.compile(pool))
    assert "normal" in row(opened, "Thread pools", "online")
    assert "low" in row(opened, "Thread pools", "background")


def test_an_example_is_edited_and_sent(page: WatchedPage) -> None:
    opened = page.open("models/half_plus_two")
    panel = opened.get_by_role("region", name="serving_default", exact=True)
    panel.get_by_role("button", name="Send the request").click()
    answer = panel.get_by_role("region", name="Answer of serving_default")
    answer.wait_for()
    panel.get_by_role("textbox").fill(json.dumps({"instances": [6.0]}))
    panel.get_by_role("button", name="Send the request").click()
    expect(answer).to_contain_text("[5.0]")
    page.may_answer = {400}
    panel.get_by_role("textbox").fill('{"instances": ')
    panel.get_by_role("button", name="Send the request").click()
    expect(panel.get_by_role("alert")).to_contain_text("JSON")
    panel.get_by_role("button", name="Restore the example").click()
    panel.get_by_role("button", name="Send the request").click()
    answer.wait_for()


def test_a_model_is_described(page: WatchedPage) -> None:
    opened = page.open("models/digits")
    assert "Conv2D" in row(opened, "Operations by kind", "Conv2D")
    assert "float32" in row(opened, "Inputs", "image")
    opened.get_by_role("heading", name="Clusters", exact=True).wait_for()


def test_a_label_is_moved(page: WatchedPage, server: ServerProcess) -> None:
    version = server.client.get("/v1/models/half_plus_two").json()["model_version_status"][0]
    opened = page.open("models/half_plus_two")
    label(opened, "stable", version["version"])
    opened.get_by_text(f"Label stable leads to version {version['version']}.").wait_for()
    path = "/v1/models/half_plus_two/labels/stable:predict"
    answer = server.client.post(path, json={"instances": [1.0]}).raise_for_status()
    assert answer.json() == {"predictions": [2.5]}


def test_a_model_is_unloaded_and_loaded_by_keyboard(
    page: WatchedPage, server: ServerProcess
) -> None:
    opened = page.open("models")
    # Its name is longer, and it can't be used, until the page knows what the reader may do.
    opened.get_by_role("button", name="Unload counter", exact=True).focus()
    opened.keyboard.press("Enter")
    dialog = opened.get_by_role("dialog", name="Unload counter?")
    dialog.wait_for()
    opened.keyboard.press("Tab")  # from Cancel, which has the focus, to the verb
    opened.keyboard.press("Enter")
    opened.get_by_text("Model counter is unloaded.").wait_for()
    assert server.client.get("/v1/models/counter/metadata").status_code == 404
    opened.get_by_role("button", name="Load a model").focus()
    opened.keyboard.press("Enter")
    opened.get_by_role("dialog", name="Load a model").wait_for()
    opened.keyboard.type("counter")
    opened.keyboard.press("Enter")
    opened.get_by_text("Model counter serves.").wait_for()
    server.client.get("/v1/models/counter/metadata").raise_for_status()


def test_a_confirmation_can_be_refused(page: WatchedPage, server: ServerProcess) -> None:
    opened = page.open("overview")
    button = opened.get_by_role("button", name="Drain")
    button.click()
    opened.get_by_role("dialog", name="Drain this server?").wait_for()
    opened.keyboard.press("Escape")
    expect(opened.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()
    assert server.client.get("/readyz").status_code == 200


def test_an_error_of_a_change_stands_in_its_dialog(page: WatchedPage) -> None:
    page.may_answer = {404}
    opened = page.open("models")
    opened.get_by_role("button", name="Load a model").click()
    dialog = opened.get_by_role("dialog")
    dialog.get_by_label("Name").fill("no_such_model")
    dialog.get_by_role("button", name="Load", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("no_such_model")

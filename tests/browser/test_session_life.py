"""The life of a session in the console: opened, run, extended, cancelled, closed."""

from __future__ import annotations

import pathlib
import re
import threading

from playwright.sync_api import Page, expect

from tests.browser.sessions import base64_of, open_session, sum_graph, waiting_graph
from tests.browser.watched_page import WatchedPage
from tests.integration.server_process import ServerProcess

ID = re.compile(r"#/sessions/([A-Za-z0-9_-]{22,})")


def session_of(page: Page) -> str:
    """The id of the session that the page shows."""
    page.wait_for_url(ID)
    found = ID.search(page.url)
    assert found is not None
    page.get_by_role("button", name="Keep alive").wait_for()
    return found[1]


def run_free_step(
    page: Page, feed: tuple[str, str] | None, fetches: str, targets: str = ""
) -> None:
    if feed is not None:
        page.get_by_role("button", name="Add a feed").click()
        page.get_by_label("Tensor").last.fill(feed[0])
        page.get_by_label("Value (JSON)").last.fill(feed[1])
    page.get_by_label("Fetches").fill(fetches)
    page.get_by_label("Targets").fill(targets)
    page.get_by_role("button", name="Run the step").click()


def test_a_session_by_mouse(
    page: WatchedPage, server: ServerProcess, tmp_path: pathlib.Path
) -> None:
    opened = page.open("sessions")
    opened.get_by_label("Model", exact=True).select_option("half_plus_two")
    opened.get_by_label("Name").fill("by mouse")
    opened.get_by_role("button", name="Open a session").click()
    id = session_of(opened)
    opened.get_by_role("heading", level=1, name="by mouse").wait_for()

    # The feed is prefilled from the signature.
    expect(opened.get_by_label("Tensor")).to_have_value("serving_default_x:0")
    opened.get_by_label("Value (JSON)").fill("[1.0, 2.0, 5.0]")
    opened.get_by_role("button", name="Run the step").click()
    value = opened.get_by_role("region", name=re.compile("Value of"))
    expect(value).to_have_text("[2.5, 3, 4.5]")

    graph = tmp_path / "graph.pb"
    graph.write_bytes(sum_graph())
    opened.get_by_label("GraphDef file").set_input_files(graph)
    opened.get_by_role("button", name="Extend the graph").click()
    opened.get_by_text("The graph has version 1 now.").wait_for()
    opened.get_by_label("Signature").select_option("")
    run_free_step(opened, ("left", "2"), "total")
    expect(opened.get_by_role("region", name="Value of total")).to_have_text("42")

    opened.get_by_role("button", name="Close session").click()
    dialog = opened.get_by_role("dialog")
    expect(dialog).to_contain_text("Its running steps are cancelled")
    dialog.get_by_role("button", name="Cancel").click()
    assert server.client.get(f"/v1/sessions/{id}").status_code == 200
    opened.get_by_role("button", name="Close session").click()
    dialog.get_by_role("button", name="Close the session").click()
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    assert server.client.get(f"/v1/sessions/{id}").status_code == 410


def test_a_session_by_keyboard_alone(page: WatchedPage, server: ServerProcess) -> None:
    opened = page.open("sessions")
    keyboard = opened.keyboard

    def go_to(role: str, name: str) -> None:
        """Press Tab until the control has the focus."""
        wanted = opened.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type] # any role
        wanted.wait_for()
        for _ in range(80):
            if wanted.evaluate("element => element === document.activeElement"):
                return
            keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach the {role} {name!r}")

    opened.get_by_role("option", name="counter").wait_for(state="attached")
    go_to("combobox", "Model")
    keyboard.type("counter")
    go_to("textbox", "Name")
    keyboard.type("by keyboard")
    keyboard.press("Enter")
    id = session_of(opened)
    go_to("combobox", "Signature")
    keyboard.type("incr_counter_by")
    go_to("textbox", "Value (JSON)")
    keyboard.press("Control+A")
    keyboard.type("7")
    go_to("button", "Run the step")
    keyboard.press("Enter")
    expect(opened.get_by_role("region", name="Value of incr_counter_by:0")).to_have_text("7")
    opened.get_by_role("heading", level=1, name="by keyboard").focus()
    go_to("button", "Close session by keyboard")
    keyboard.press("Enter")
    opened.get_by_role("dialog").wait_for()
    go_to("button", "Close the session")
    keyboard.press("Enter")
    opened.get_by_role("heading", level=1, name="Sessions").wait_for()
    assert server.client.get(f"/v1/sessions/{id}").status_code == 410


def test_ids_are_masked_and_a_session_opens_by_its_id(
    page: WatchedPage, server: ServerProcess
) -> None:
    id = open_session(server, name="hidden away")
    opened = page.open("sessions")
    row = opened.get_by_role("row", name="hidden away")
    expect(row).to_contain_text("…")
    assert id not in opened.content()
    assert row.get_by_role("link").count() == 0
    opened.get_by_label("Id of an open session").fill(id)
    opened.get_by_role("button", name="Show the session").click()
    opened.get_by_role("heading", level=1, name="hidden away").wait_for()


def test_a_step_that_waits_is_cancelled_from_the_form(
    page: WatchedPage, server: ServerProcess
) -> None:
    page.may_answer = {499}
    id = open_session(server, graph_def=base64_of(waiting_graph()), name="waiting")
    opened = page.open(f"sessions/{id}")
    run_free_step(opened, None, "taken")
    opened.get_by_role("button", name="Cancel the step").click()
    opened.get_by_text("The step failed.").wait_for()
    opened.get_by_text("CANCELLED").first.wait_for()
    run_free_step(opened, None, "", "put")  # the session lives on
    opened.get_by_text("Done in").wait_for()


def test_a_wrong_step_says_what_is_wrong(page: WatchedPage, server: ServerProcess) -> None:
    page.may_answer = {400}
    id = open_session(server, graph_def=base64_of(sum_graph()))
    opened = page.open(f"sessions/{id}")
    run_free_step(opened, ("left", "not JSON"), "total")
    opened.get_by_text("The value of left is not JSON.").wait_for()
    opened.get_by_label("Value (JSON)").fill('"text"')
    opened.get_by_role("button", name="Run the step").click()
    expect(opened.get_by_role("alert")).to_contain_text("INVALID_ARGUMENT")


def test_a_closed_session_says_so(page: WatchedPage, server: ServerProcess) -> None:
    page.may_answer = {404, 410}
    id = open_session(server)
    server.client.delete(f"/v1/sessions/{id}")
    opened = page.open(f"sessions/{id}")
    opened.get_by_text("This session is not open.").wait_for()
    opened.get_by_text("Session has been closed.").wait_for()


def test_the_lease_is_renewed(page: WatchedPage, server: ServerProcess) -> None:
    id = open_session(server, lease_seconds=86400)
    opened = page.open(f"sessions/{id}")
    opened.get_by_role("button", name="Keep alive").click()
    opened.get_by_text("The lease is renewed.").wait_for()
    expect(opened.locator(".lease")).to_contain_text(re.compile("23 h 59 min|1 d 0 h"))


def test_an_extension_of_an_older_graph_is_refused(
    page: WatchedPage, server: ServerProcess
) -> None:
    page.may_answer = {409}
    id = open_session(server, model="half_plus_two")
    opened = page.open(f"sessions/{id}")
    opened.get_by_role("button", name="Extend the graph").click()
    opened.get_by_text("Choose a file or paste a GraphDef first.").wait_for()
    form = opened.get_by_role("form", name="Extend the graph")
    form.get_by_label("or base64").fill(base64_of(sum_graph()))
    # A page that is not visible does not look at the session again.
    opened.evaluate("Object.defineProperty(document, 'hidden', {get: () => true})")
    body = {"graph_def": base64_of(waiting_graph())}
    assert server.client.post(f"/v1/sessions/{id}:extend", json=body).status_code == 200
    form.get_by_role("button", name="Extend the graph").click()
    expect(form.get_by_role("alert")).to_contain_text("caller expected 0")


def test_a_session_shows_what_it_holds_and_did(page: WatchedPage, server: ServerProcess) -> None:
    id = open_session(server, graph_def=base64_of(waiting_graph()), name="holding")
    for _ in range(3):
        assert server.client.post(f"/v1/sessions/{id}:run", json={"targets": ["put"]}).is_success
    opened = page.open(f"sessions/{id}")
    queues = opened.get_by_role("table", name="Queues and other resources")
    expect(queues.get_by_role("row", name="mail")).to_contain_text("3 of 8")
    steps = opened.get_by_role("table", name="Last steps")
    expect(steps.get_by_role("row", name="run put")).to_have_count(3)
    expect(opened.get_by_role("table", name="Functions")).to_contain_text("Main graph")


def test_the_histogram_of_a_variable_is_shown(page: WatchedPage, server: ServerProcess) -> None:
    id = open_session(server, model="digits")
    opened = page.open(f"sessions/{id}")
    table = opened.get_by_role("table", name="Variables")
    table.get_by_role("button", name="Histogram of").first.click()
    image = opened.get_by_role("img", name="Histogram:")
    image.wait_for()
    assert image.locator("rect").count() > 10
    assert page.violations() == []


def test_a_running_step_is_cancelled_from_its_row(page: WatchedPage, server: ServerProcess) -> None:
    id = open_session(server, graph_def=base64_of(waiting_graph()))
    answers: list[int] = []

    def wait() -> None:
        answers.append(
            server.client.post(f"/v1/sessions/{id}:run", json={"fetches": ["taken"]}).status_code
        )

    caller = threading.Thread(target=wait)
    caller.start()
    opened = page.open(f"sessions/{id}")
    row = opened.get_by_role("table", name="Running steps").get_by_role("row", name="taken")
    row.get_by_role("button", name="Cancel step").click()
    opened.get_by_role("dialog").get_by_role("button", name="Cancel the step").click()
    row.wait_for(state="detached")
    caller.join(30)
    assert answers == [499]

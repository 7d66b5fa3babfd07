"""Names and values from graphs are text: none of them becomes markup or runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import protos as pb
from runtime.framework.dtypes import DataType
from tests.browser.sessions import base64_of, open_session
from tests.browser.watched_page import WatchedPage
from tests.integration.server_process import ServerProcess
from tests.node_builder import build_node_def

MARKUP = '<img src=x onerror="window.struck=1"><script>window.struck=1</script>'
TEXTS = (
    MARKUP,
    "javascript:window.struck=1",
    "${window.struck=1}",
    '"><svg onload=window.struck=1>',
)
# What a graph's names may have: letters, digits and _.\-/ — but a shared name is any text.
FUNCTION = "onerror.struck_1"


def hostile_graph() -> bytes:
    """A variable and a queue with markup as their names, and a string with it as its value."""
    variable = build_node_def(
        "VarHandleOp",
        "variable",
        attrs={"dtype": DataType.FLOAT, "shape": (2,), "shared_name": MARKUP},
    )
    value = build_node_def(
        "Const", "value", attrs={"dtype": DataType.FLOAT, "value": np.ones(2, np.float32)}
    )
    assign = build_node_def(
        "AssignVariableOp",
        "assign",
        [("variable:0", DataType.RESOURCE), ("value:0", DataType.FLOAT)],
    )
    queue = build_node_def(
        "FIFOQueueV2",
        "queue",
        attrs={"component_types": (DataType.FLOAT,), "capacity": 4, "shared_name": MARKUP},
    )
    put = build_node_def(
        "QueueEnqueueV2", "put", [("queue:0", DataType.RESOURCE), [("value:0", DataType.FLOAT)]]
    )
    texts = np.array([text.encode() for text in TEXTS], object)
    say = build_node_def("Const", "say", attrs={"dtype": DataType.STRING, "value": texts})
    return pb.GraphDef(node=[variable, value, assign, queue, put, say]).SerializeToString()


def is_struck(page: Page) -> bool:
    """Whether anything ran, or became an element."""
    made = "document.querySelector('main :is(img, script, svg[onload])') !== null"
    return bool(page.evaluate(f"'struck' in window || {made}"))


@pytest.fixture
def hostile(server: ServerProcess) -> str:
    """A session with hostile names and values of every kind."""
    id = open_session(server, name=MARKUP, graph_def=base64_of(hostile_graph()))
    run = f"/v1/sessions/{id}:run"
    answer = server.client.post(run, json={"targets": ["assign", "put"]})
    assert answer.status_code == 200, answer.text
    return id


def test_a_listing_shows_a_hostile_name_as_text(page: WatchedPage, hostile: str) -> None:
    opened = page.open("sessions")
    expect(opened.get_by_role("table", name="Open sessions")).to_contain_text(MARKUP)
    assert not is_struck(opened)


def test_a_session_shows_hostile_names_and_values_as_text(page: WatchedPage, hostile: str) -> None:
    opened = page.open(f"sessions/{hostile}")
    opened.get_by_role("heading", level=1, name=MARKUP).wait_for()
    for table in ("Variables", "Queues and other resources"):
        expect(opened.get_by_role("table", name=table)).to_contain_text(MARKUP)
    opened.get_by_role("button", name=f"Histogram of {MARKUP}").click()
    opened.get_by_role("img", name="Histogram:").wait_for()
    opened.get_by_label("Fetches").fill("say")
    opened.get_by_role("button", name="Run the step").click()
    shown = opened.get_by_role("region", name="Value of say").inner_text()
    assert json.loads(shown) == list(TEXTS)
    opened.get_by_role("button", name="Close session").click()
    expect(opened.get_by_role("dialog")).to_contain_text(MARKUP)
    assert not is_struck(opened)


def test_an_error_that_quotes_a_hostile_name_is_text(page: WatchedPage, hostile: str) -> None:
    page.may_answer = {400, 404}
    opened = page.open(f"sessions/{hostile}")
    opened.get_by_label("Fetches").fill(MARKUP)
    opened.get_by_label("Targets").fill(MARKUP)
    opened.get_by_role("button", name="Run the step").click()
    expect(opened.get_by_role("alert")).to_contain_text("<img src=x")
    assert not is_struck(opened)


def test_hostile_nodes_of_a_trace_are_text(page: WatchedPage, server: ServerProcess) -> None:
    node = build_node_def(
        "Const", "a", attrs={"dtype": DataType.STRING, "value": np.array(MARKUP.encode(), object)}
    )
    copy = build_node_def("Identity", "constructor.__proto__", [("a:0", DataType.STRING)])
    graph = pb.GraphDef(node=[node, copy]).SerializeToString()
    id = open_session(server, name=MARKUP, graph_def=base64_of(graph))
    opened = page.open(f"sessions/{id}")
    opened.get_by_label("Fetches").fill("constructor.__proto__")
    opened.get_by_label("Trace it").check()
    opened.get_by_role("button", name="Run the step").click()
    opened.get_by_role("heading", level=1, name="Step timeline").wait_for()
    assert not is_struck(opened)


@pytest.mark.parametrize("route", ["sessions/{}", "models/{}", "{}", "timeline?model={}"])
def test_a_hostile_address_is_text(page: WatchedPage, route: str) -> None:
    page.may_answer = {400, 404}
    opened = page.page
    quoted = opened.evaluate("encodeURIComponent", MARKUP)
    opened.goto(f"{page.address}/console/#/{route.format(quoted)}")
    opened.locator("main .panel, main .note, main .empty").first.wait_for()
    assert not is_struck(opened)

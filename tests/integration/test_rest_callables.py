"""Partial runs and callables over REST."""

from __future__ import annotations

import pytest

from tests.integration.rest_server import RestServer, check_error, with_server


def floats(*data: float) -> dict[str, object]:
    return {"dtype": "float32", "shape": [len(data)], "data": list(data)}


def test_a_step_may_be_fed_and_fetched_in_parts():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        names = {"feeds": ["x:0"], "fetches": ["half_x:0", "y:0"]}
        answer = await server.post(f"{session}:partialRunSetup", names)
        part = {"partial_run_handle": answer.json()["partial_run_handle"]}
        first = part | {"feeds": {"x:0": [1.0]}, "fetches": ["half_x:0"]}
        answer = await server.post(f"{session}:partialRun", first)
        assert answer.json() == {"outputs": {"half_x:0": floats(0.5)}}
        answer = await server.post(f"{session}:partialRun", part | {"fetches": ["y:0"]})
        assert answer.json() == {"outputs": {"y:0": floats(2.5)}}
        answer = await server.post(f"{session}:partialRun", {"fetches": ["y:0"]})
        check_error(answer, 400, "INVALID_ARGUMENT", "partial_run_handle must be a string")
        answer = await server.post(f"{session}:partialRun", part | {"targets": ["y"]})
        check_error(answer, 400, "INVALID_ARGUMENT", "Unknown keys: targets")

    with_server(scenario)


def test_a_callable_is_made_run_and_released():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        options = {"feed": ["x:0"], "fetch": ["y:0", "half_x:0", "y:0"]}
        answer = await server.post(f"{session}:makeCallable", {"options": options})
        call = {"handle": answer.json()["handle"], "feeds": [[1, 2]]}
        answer = await server.post(f"{session}:runCallable", call)
        y = floats(2.5, 3.0)
        assert answer.json() == {"outputs": [y, floats(0.5, 1.0), y]}
        answer = await server.post(f"{session}:runCallable", call | {"feeds": []})
        check_error(answer, 400, "INVALID_ARGUMENT", "Expected 1 feed tensors, but got 0")
        handle = {"handle": call["handle"]}
        assert (await server.post(f"{session}:releaseCallable", handle)).json() == {}
        answer = await server.post(f"{session}:runCallable", call)
        check_error(answer, 400, "INVALID_ARGUMENT", "No such callable handle")

    with_server(scenario)


@pytest.mark.parametrize(
    ("verb", "body", "text"),
    [
        ("makeCallable", {"options": {"feeds": []}}, "options is not a CallableOptions"),
        ("makeCallable", {}, "options: Field required"),
        ("runCallable", {"handle": "1"}, "Expected an integer handle and a list of feeds"),
        ("runCallable", {"handle": 1, "feeds": {}}, "got an integer and an object"),
        ("releaseCallable", {"handle": True}, "handle: Input should be a valid integer"),
        ("partialRunSetup", {"feeds": "x"}, "feeds: Input should be a valid list"),
        ("keepAlive", {"lease": 1}, "Unknown key: lease; known keys are lease_seconds"),
        ("keepAlive", {"lease_seconds": -1}, "lease_seconds must be more than 0"),
        ("cancel", {}, "request_id: Field required"),
        ("extend", {"graph_def": "", "graph_version": 0.5}, "graph_version: Input should be"),
    ],
)
def test_bodies_are_checked(verb, body, text):
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        answer = await server.post(f"{session}:{verb}", body)
        check_error(answer, 400, "INVALID_ARGUMENT", text)

    with_server(scenario)

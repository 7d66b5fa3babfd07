"""Partial runs and callables over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_from_proto, tensor_to_proto
from tests.integration.rest_server import (
    RestServer,
    check_error,
    encoded,
    endless_graph,
    with_server,
)

pytestmark = pytest.mark.usefixtures("both_ways")

PROTOBUF = {"Content-Type": "application/x-protobuf"}


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


def test_a_part_whose_deadline_passes_ends_its_run():
    """Its loop occupied a thread until the session was closed."""

    async def scenario(server: RestServer) -> None:
        session = await server.create({"graph_def": encoded(endless_graph())})
        names = {"feeds": ["start"], "fetches": ["loop"]}
        answer = await server.post(f"{session}:partialRunSetup", names)
        part = {"partial_run_handle": answer.json()["partial_run_handle"]}
        first = part | {"feeds": {"start": 1.0}, "fetches": ["loop"]}
        answer = await server.post(f"{session}:partialRun", first, headers={"X-Timeout-Ms": "50"})
        check_error(answer, 504, "DEADLINE_EXCEEDED", "Timed out waiting for notification")
        while any(pool["running"] for pool in (await server.pools()).values()):
            await asyncio.sleep(0)
        answer = await server.post(f"{session}:partialRun", part)
        check_error(answer, 400, "INVALID_ARGUMENT", "Must run 'setup'")

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
        check_error(answer, 400, "INVALID_ARGUMENT", "callable after handle was released")

    with_server(scenario)


async def post_proto(server: RestServer, path: str, message: Any, kind: Any) -> Any:
    """Send a message; the answer as a message of that kind."""
    content = message.SerializeToString()
    answer = await server.client.post(path, content=content, headers=PROTOBUF)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == PROTOBUF["Content-Type"]
    return kind.FromString(answer.content)


def fetched(response: pb.RunStepResponse) -> dict[str, list[float]]:
    return {each.name: tensor_from_proto(each.tensor).tolist() for each in response.tensor}


def test_partial_runs_take_protobuf():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        setup = pb.PartialRunSetupRequest(feed=["x:0"], fetch=["half_x:0", "y:0"])
        made = await post_proto(
            server, f"{session}:partialRunSetup", setup, pb.PartialRunSetupResponse
        )
        x = pb.NamedTensorProto(name="x:0", tensor=tensor_to_proto(np.float32([1])))
        first = pb.RunStepRequest(
            partial_run_handle=made.partial_run_handle, feed=[x], fetch=["half_x:0"]
        )
        path = f"{session}:partialRun"
        assert fetched(await post_proto(server, path, first, pb.RunStepResponse)) == {
            "half_x:0": [0.5]
        }
        with_target = pb.RunStepRequest(
            partial_run_handle=made.partial_run_handle, fetch=["y:0"], target=["y"]
        )
        answer = await server.client.post(
            path, content=with_target.SerializeToString(), headers=PROTOBUF
        )
        check_error(answer, 400, "INVALID_ARGUMENT", "Targets belong to :partialRunSetup")
        second = pb.RunStepRequest(partial_run_handle=made.partial_run_handle, fetch=["y:0"])
        assert fetched(await post_proto(server, path, second, pb.RunStepResponse)) == {"y:0": [2.5]}
        answer = await server.client.post(
            f"{session}:run", content=second.SerializeToString(), headers=PROTOBUF
        )
        check_error(answer, 400, "INVALID_ARGUMENT", "goes to :partialRun")

    with_server(scenario)


def test_callables_take_protobuf():
    async def scenario(server: RestServer) -> None:
        session = await server.create()
        options = pb.CallableOptions(feed=["x:0"], fetch=["y:0", "half_x:0"])
        options.run_options.trace_level = pb.RunOptions.FULL_TRACE
        asked = pb.MakeCallableRequest(options=options)
        made = await post_proto(server, f"{session}:makeCallable", asked, pb.MakeCallableResponse)
        run = pb.RunCallableRequest(handle=made.handle, feed=[tensor_to_proto(np.float32([1, 2]))])
        path = f"{session}:runCallable"
        answered = await post_proto(server, path, run, pb.RunCallableResponse)
        values = [tensor_from_proto(tensor).tolist() for tensor in answered.fetch]
        assert values == [[2.5, 3.0], [0.5, 1.0]]
        assert answered.metadata.step_stats.dev_stats
        del run.feed[:]
        answer = await server.client.post(path, content=run.SerializeToString(), headers=PROTOBUF)
        check_error(answer, 400, "INVALID_ARGUMENT", "Expected 1 feed tensors, but got 0")
        release = pb.ReleaseCallableRequest(handle=made.handle)
        await post_proto(server, f"{session}:releaseCallable", release, pb.ReleaseCallableResponse)
        answer = await server.client.post(path, content=run.SerializeToString(), headers=PROTOBUF)
        check_error(answer, 400, "INVALID_ARGUMENT", "callable after handle was released")

    with_server(scenario)


def test_an_empty_session_may_be_made_with_protobuf():
    async def scenario(server: RestServer) -> None:
        content = pb.CreateSessionRequest().SerializeToString()
        answer = await server.client.post("/v1/sessions", content=content, headers=PROTOBUF)
        assert answer.status_code == 201
        made = pb.CreateSessionResponse.FromString(answer.content)
        assert made.session_handle and made.graph_version == 0

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

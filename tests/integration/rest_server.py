"""A server's ASGI application with real services, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import httpx

import protos as pb
from runtime.framework.dtypes import DataType
from server.app import Services, create_app, lifespan, make_services
from server.rest.session_docs import half_plus_two_graph
from server.sessions.clock import Clock
from server.settings import Settings
from tests.integration.connections import on_a_port


def encoded(graph: pb.GraphDef) -> str:
    """A graph as bodies carry it."""
    return base64.b64encode(graph.SerializeToString()).decode()


HALF_PLUS_TWO = {"graph_def": encoded(half_plus_two_graph())}
RUN_Y = {"feeds": {"x:0": [1.0, 2.0, 5.0]}, "fetches": ["y:0"]}


def endless_graph() -> pb.GraphDef:
    """`loop`: a while loop that never ends by itself."""
    graph = pb.GraphDef()
    start = graph.node.add(name="start", op="Placeholder")
    start.attr["dtype"].type = DataType.FLOAT
    loop = graph.node.add(name="loop", op="StatelessWhile", input=["start"])
    loop.attr["T"].list.type.append(DataType.FLOAT)
    loop.attr["cond"].func.name = "for_ever"
    loop.attr["body"].func.name = "unchanged"
    loop.attr["output_shapes"].list.SetInParent()
    loop.attr["parallel_iterations"].i = 1

    for_ever = graph.library.function.add()
    for_ever.signature.name = "for_ever"
    for_ever.signature.input_arg.add(name="value", type=DataType.FLOAT)
    for_ever.signature.output_arg.add(name="goes_on", type=DataType.BOOL)
    positive = for_ever.node_def.add(name="goes_on", op="Equal", input=["value", "value"])
    positive.attr["T"].type = DataType.FLOAT
    positive.attr["incompatible_shape_error"].b = True
    for_ever.ret["goes_on"] = "goes_on:z:0"

    unchanged = graph.library.function.add()
    unchanged.signature.name = "unchanged"
    unchanged.signature.input_arg.add(name="value", type=DataType.FLOAT)
    unchanged.signature.output_arg.add(name="same", type=DataType.FLOAT)
    same = unchanged.node_def.add(name="same", op="Identity", input=["value"])
    same.attr["T"].type = DataType.FLOAT
    unchanged.ret["same"] = "same:output:0"
    return graph


class RestServer:
    """The application of one server; `client` speaks to it in this process."""

    def __init__(self, services: Services, client: httpx.AsyncClient) -> None:
        self.services = services
        self.client = client

    async def post(self, path: str, body: Any = None, **kwargs: Any) -> httpx.Response:
        return await self.client.post(path, json=body if body is not None else {}, **kwargs)

    async def create(self, body: Any = HALF_PLUS_TWO) -> str:
        """Open a session; its path."""
        answer = await self.post("/v1/sessions", body)
        assert answer.status_code == 201, answer.text
        return answer.headers["location"]

    async def pools(self) -> dict[str, dict[str, Any]]:
        """The thread pools by name."""
        answer = await self.client.get("/v1/threadpools")
        return {pool["name"]: pool for pool in answer.json()["thread_pools"]}

    async def until_running(self, session: str) -> None:
        """Wait until the session runs a step."""
        while (await self.client.get(session)).json()["state"] != "RUNNING":
            await asyncio.sleep(0)


class Ways:
    """How `rest_server` is reached: its application is called, or it is on a port.

    Only on a port are requests answered at once, without the application.
    """

    on_a_port = False


@contextlib.asynccontextmanager
async def rest_server(clock: Clock | None = None, **settings: Any) -> AsyncIterator[RestServer]:
    """A started server with these settings."""
    services = make_services(Settings(**settings), clock)
    app = create_app(services)
    async with lifespan(services), contextlib.AsyncExitStack() as stack:
        if Ways.on_a_port:
            client = httpx.AsyncClient(base_url=await stack.enter_async_context(on_a_port(app)))
        else:
            transport = httpx.ASGITransport(app)
            client = httpx.AsyncClient(transport=transport, base_url="http://localhost")
        await stack.enter_async_context(client)
        yield RestServer(services, client)


def with_server(
    scenario: Callable[[RestServer], Coroutine[Any, Any, None]], **settings: Any
) -> None:
    """Run a scenario against a server of its own."""

    async def run() -> None:
        async with rest_server(**settings) as server:
            await scenario(server)

    asyncio.run(run())


def check_error(answer: httpx.Response, status: int, code: str, text: str) -> None:
    """The answer is an error of that status and code whose message has that text."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["code"] == code and text in body["error"], body
    assert body["request_id"] == answer.headers["x-request-id"]

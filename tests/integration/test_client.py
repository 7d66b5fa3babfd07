"""Both clients against the real process, and the page about them as it is printed."""

from __future__ import annotations

import asyncio
import inspect
import pathlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import yaml

from runstep import AsyncClient, Client
from runtime.client.framework.graph import Graph
from runtime.client.ops.construction import constant, placeholder
from runtime.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from runtime.framework.dtypes import DataType
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

BLOCK = re.compile(r"```python\n([^`]*)```\n```text\n([^`]*)```")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    names = ("digits", "half_plus_two", "counter")
    settings = {
        "models": [{"name": n, "base_path": f"{ROOT}/examples/models/{n}"} for n in names],
        "admin": {"enabled": True},
    }
    file = tmp_path_factory.mktemp("client") / "server.yaml"
    file.write_text(yaml.safe_dump(settings))
    process = ServerProcess(f"--config={file}")
    try:
        for name in names:
            process.wait_for(f"Loaded version 1 of model {name} ")
        while process.client.get("/readyz").status_code == 503:
            pass
        yield process
    finally:
        process.end()


class Blocking:
    """A client whose methods are called from a coroutine, so that one test serves both."""

    def __init__(self, wrapped: Any) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._wrapped, name)
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(found, *args, **kwargs)

        if name == "session":
            return lambda *args, **kwargs: Blocking(found(*args, **kwargs))
        return call

    async def __aenter__(self) -> Blocking:
        await asyncio.to_thread(self._wrapped.__enter__)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self._wrapped.__exit__, *raised)


def make_blocking(url: str) -> Blocking:
    return Blocking(Client(url))


@pytest.fixture(params=[make_blocking, AsyncClient], ids=["blocking", "asyncio"])
def make(request: pytest.FixtureRequest, server: ServerProcess) -> Callable[[], Any]:
    return lambda: request.param(server.http_address)


def test_models(make: Callable[[], Any]) -> None:
    async def run() -> None:
        async with make() as client:
            assert await client.is_alive()
            assert await client.is_ready()
            assert [each["name"] for each in await client.models()][:2] == [
                "digits", "half_plus_two",
            ]  # fmt: skip
            assert (await client.status("counter"))[0]["state"] == "AVAILABLE"
            assert "signature_def" in (await client.metadata("half_plus_two"))["metadata"]
            assert {"online", "background"} <= {p["name"] for p in await client.thread_pools()}
            answer = await client.predict("half_plus_two", {"x": np.float32([1, 2])}, version=1)
            np.testing.assert_array_equal(answer["y"], np.float32([2.5, 3]))
            answer = await client.predict("half_plus_two", np.float64([3]).astype(np.float32))
            assert answer["y"].tolist() == [3.5]
            found = await client.predict_json("half_plus_two", {"instances": [1.0]})
            assert found == {"predictions": [2.5]}
            with pytest.raises(NotFoundError, match="nothing"):
                await client.predict("nothing", {"x": np.float32([1])})
            with pytest.raises(InvalidArgumentError, match="version label: best"):
                await client.predict("half_plus_two", [1.0], label="best")

    asyncio.run(run())


async def state_of(client: Any, model: str) -> str:
    """Return the state of a model in the repository's index."""
    states: dict[str, str] = {each["name"]: each["state"] for each in await client.repository()}
    return states[model]


def test_administration(make: Callable[[], Any]) -> None:
    async def run() -> None:
        async with make() as client:
            await client.unload_model("digits")
            end = time.monotonic() + SECONDS
            while await state_of(client, "digits") != "UNAVAILABLE":  # requests end first
                assert time.monotonic() < end
            await client.load_model("digits")
            assert (await client.status("digits"))[0]["state"] == "AVAILABLE"

    asyncio.run(run())


def test_a_session_s_life(make: Callable[[], Any]) -> None:
    with Graph().as_default() as graph:
        x = placeholder(DataType.FLOAT, [None], "x")
        first = graph.as_graph_def()
        _ = x * constant(np.float32(3), name="three")
        more = graph.as_graph_def()
    del more.node[: len(first.node)]
    product = more.node[-1].name

    async def run() -> None:
        async with make() as client:
            async with client.session(graph_def=first.SerializeToString(), name="mine") as session:
                assert await session.extend(more.SerializeToString(), 0) == 1
                value = await session.run(f"{product}:0", {"x:0": np.float32([1, 2])})
                np.testing.assert_array_equal(value, np.float32([3, 6]))
                assert await session.run([], targets=[product], feeds={"x": [1]}) == []
                assert (await session.information())["name"] == "mine"
                assert (await session.keep_alive(30)).endswith("Z")
            with pytest.raises(CancelledError, match="closed"):
                await session.run("x:0", {"x": [1]})

    asyncio.run(run())


def test_strings_and_trees_of_types_come_back(make: Callable[[], Any]) -> None:
    with Graph().as_default() as graph:
        for dtype in (DataType.STRING, DataType.BFLOAT16, DataType.COMPLEX64, DataType.INT8):
            placeholder(dtype, None, dtype.tf_name)
    values = {
        "string": np.array([b"\xff", b""], object),
        "complex64": np.complex64([1 + 2j]),
        "int8": np.int8([[-1]]),
    }

    async def run() -> None:
        content = graph.as_graph_def().SerializeToString()
        async with make() as client, client.session(graph_def=content) as session:
            for name, value in values.items():
                fetch = f"{name}_copy"
                await session.extend(identity(fetch, name))
                back = await session.run(f"{fetch}:0", {name: value})
                np.testing.assert_array_equal(back, value)
                assert back.dtype == value.dtype

    asyncio.run(run())


def identity(name: str, of: str) -> bytes:
    """Return a graph with one Identity of a placeholder whose name is that of its type."""
    import protos as pb

    node = pb.NodeDef(name=name, op="Identity", input=[of])
    dtype = {"string": pb.DT_STRING, "complex64": pb.DT_COMPLEX64, "int8": pb.DT_INT8}[of]
    node.attr["T"].type = dtype
    return pb.GraphDef(node=[node]).SerializeToString()


def test_a_step_past_its_deadline(make: Callable[[], Any]) -> None:
    async def run() -> None:
        async with make() as client, client.session(graph_def=waiting_graph()) as session:
            with pytest.raises(DeadlineExceededError):
                await session.run("wait", timeout=0.05)

    asyncio.run(run())


def test_an_error_of_a_step_that_began_names_its_node(make: Callable[[], Any]) -> None:
    """By it, the clients know a prediction that began from one that was refused."""
    import protos as pb

    graph = pb.GraphDef()
    shape = graph.node.add(name="shape", op="Placeholder")
    shape.attr["dtype"].type = pb.DT_INT64
    fill = graph.node.add(name="huge", op="Fill", input=["shape", "value"])
    fill.attr["T"].type, fill.attr["index_type"].type = pb.DT_FLOAT, pb.DT_INT64
    graph.node.add(name="value", op="Placeholder").attr["dtype"].type = pb.DT_FLOAT

    async def run() -> None:
        content = graph.SerializeToString()
        async with make() as client, client.session(graph_def=content) as session:
            with pytest.raises(
                ResourceExhaustedError, match=r"\[\[\{\{node huge\}\}\]\]"
            ) as caught:
                await session.run("huge", {"shape": np.int64([1 << 40]), "value": 1.0})
            assert caught.value.status == 429

    asyncio.run(run())


def test_a_step_that_another_thread_cancels(server: ServerProcess) -> None:
    with (
        Client(server.http_address) as client,
        client.session(graph_def=waiting_graph()) as session,
    ):
        raised: list[BaseException] = []

        def wait() -> None:
            try:
                session.run("wait", request_id="mine-1")
            except CancelledError as error:
                raised.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        while thread.is_alive():
            try:
                session.cancel("mine-1")
            except NotFoundError:  # it has not arrived yet, or has ended
                thread.join(0.01)
        thread.join()
        assert [type(each) for each in raised] == [CancelledError]


def waiting_graph() -> bytes:
    """Return a graph whose step `wait` takes from an empty queue."""
    import protos as pb

    graph = pb.GraphDef()
    queue = graph.node.add(name="queue", op="FIFOQueueV2")
    queue.attr["component_types"].list.type.append(pb.DT_FLOAT)
    wait = graph.node.add(name="wait", op="QueueDequeueV2", input=["queue"])
    wait.attr["component_types"].list.type.append(pb.DT_FLOAT)
    return graph.SerializeToString()


def test_a_server_that_is_not_there() -> None:
    with (
        Client("http://127.0.0.1:1") as client,
        pytest.raises(UnavailableError, match=r"^http://127.0.0.1:1 can't be reached: "),
    ):
        client.models()


def test_both_clients_have_the_same_methods() -> None:
    def public(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
    assert Client.predict.__doc__ == AsyncClient.predict.__doc__ != None  # noqa: E711


@pytest.mark.parametrize("number", range(3))
def test_the_page_prints_what_it_says(server: ServerProcess, number: int) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "client.md").read_text())
    assert len(blocks) == 3
    code, printed = blocks[number]
    ended = subprocess.run(
        [sys.executable, "-c", code.replace("http://localhost:8501", server.http_address)],
        cwd=pathlib.Path("/"), capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split()) == sorted(printed.split())

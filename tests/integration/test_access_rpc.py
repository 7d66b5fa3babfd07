"""Who may do what, over gRPC: TensorFlow's master service of a whole server."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, tensor_to_proto
from runtime.sessions.remote.grpc_session import RESPONSES
from server.rest.session_docs import half_plus_two_graph, square_of_y_graph
from server.rpc.grpc_server import GrpcServer
from tests.integration.access import OWNERS, bearer, key_of, write_keys
from tests.integration.rest_server import HALF_PLUS_TWO, RestServer, rest_server

_STATES = {  # requests that have a handle
    "ExtendSession": pb.ExtendSessionRequest,
    "PartialRunSetup": pb.PartialRunSetupRequest,
    "RunStep": pb.RunStepRequest,
    "CloseSession": pb.CloseSessionRequest,
    "ListDevices": pb.ListDevicesRequest,
    "MakeCallable": pb.MakeCallableRequest,
    "RunCallable": pb.RunCallableRequest,
    "ReleaseCallable": pb.ReleaseCallableRequest,
}


class Master:
    """A channel to a port of a server."""

    def __init__(self, port: int, rest: RestServer, tensorflow: Master | None = None) -> None:
        self.rest = rest
        self.tensorflow = tensorflow
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")

    async def call(self, name: str, request: Any, headers: dict[str, str] | None = None) -> Any:
        method = self.channel.unary_unary(
            f"/tensorflow.MasterService/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=RESPONSES[name].FromString,
        )
        return await method(request, metadata=tuple((headers or {}).items()))

    async def refused(self, code: grpc.StatusCode, *call: Any) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await self.call(*call)
        assert error.value.code() is code, error.value.details()
        return error.value

    async def create(self, owner: str | None = None, graph: pb.GraphDef | None = None) -> str:
        request = pb.CreateSessionRequest(graph_def=graph or half_plus_two_graph())
        answer = await self.call("CreateSession", request, owner and bearer(owner))
        return str(answer.session_handle)


Scenario = Callable[[Master], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def masters(**settings: Any) -> AsyncIterator[Master]:
    settings["grpc"] = {"port": "free"} | settings.get("grpc", {})
    async with rest_server(**settings) as rest:
        services = rest.services
        server = GrpcServer(services)
        await server.start()
        second = server.tensorflow_port and Master(server.tensorflow_port, rest)
        master = Master(server.port, rest, second or None)
        try:
            yield master
        finally:
            await master.channel.close()
            if second:
                await second.channel.close()
            await server.stop(0)


def with_master(scenario: Scenario, **settings: Any) -> None:
    async def run() -> None:
        async with masters(**settings) as master:
            await scenario(master)

    asyncio.run(run())


def with_keys(
    scenario: Scenario,
    folder: pathlib.Path,
    owners: dict[str, dict[str, Any]] | None = None,
    **settings: Any,
) -> None:
    access = {"keys_file": write_keys(folder / "keys.yaml", owners)}
    with_master(scenario, access=access, **settings)


def shared_variable() -> pb.GraphDef:
    """`v`, a variable by name, which sessions of one owner share; `set` and `get`."""
    graph = pb.GraphDef()
    variable = graph.node.add(name="v", op="VariableV2")
    variable.attr["dtype"].type = DataType.FLOAT
    variable.attr["shape"].shape.SetInParent()
    variable.attr["shared_name"].s = b"shared"
    value = graph.node.add(name="seven", op="Const")
    value.attr["dtype"].type = DataType.FLOAT
    value.attr["value"].tensor.CopyFrom(tensor_to_proto(np.float32(7)))
    assign = graph.node.add(name="set", op="Assign", input=["v", "seven"])
    assign.attr["T"].type = DataType.FLOAT
    read = graph.node.add(name="get", op="Identity", input=["v"])
    read.attr["T"].type = DataType.FLOAT
    return graph


UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED
DENIED = grpc.StatusCode.PERMISSION_DENIED
ABORTED = grpc.StatusCode.ABORTED
FAILED = grpc.StatusCode.FAILED_PRECONDITION
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


def test_without_a_key_no_method_answers(tmp_path: pathlib.Path) -> None:
    async def scenario(master: Master) -> None:
        for name in RESPONSES:
            request = _STATES.get(name, pb.CreateSessionRequest)()
            error = await master.refused(UNAUTHENTICATED, name, request)
            assert "requires an API key" in error.details()
            await master.refused(UNAUTHENTICATED, name, request, {"x-api-key": "wrong"})
            await master.refused(DENIED, name, request, bearer("reader"))
        assert await master.create("alice")
        key = {"x-api-key": key_of("alice")}
        await master.call("Reset", pb.ResetRequest(), key)

    with_keys(scenario, tmp_path)


def test_the_messages_of_unknown_callers_are_not_received(tmp_path: pathlib.Path) -> None:
    """A message that is received is found too large first."""

    async def scenario(master: Master) -> None:
        method = master.channel.unary_unary("/tensorflow.MasterService/RunStep")

        async def code(metadata: tuple[tuple[str, str], ...]) -> grpc.StatusCode:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await method(b"x" * 100_000, metadata=metadata)
            return error.value.code()

        assert await code(()) is UNAUTHENTICATED
        assert await code((("x-api-key", "wrong"),)) is UNAUTHENTICATED
        assert await code((("x-api-key", key_of("alice")),)) is EXHAUSTED

    with_keys(scenario, tmp_path, grpc={"max_message_bytes": 1000})


def test_another_owner_s_session_is_not_found_by_any_method(tmp_path: pathlib.Path) -> None:
    async def scenario(master: Master) -> None:
        handle = await master.create("alice")
        for name, request in _STATES.items():
            message = request(session_handle=handle)
            error = await master.refused(ABORTED, name, message, bearer("bob"))
            assert f"Session {handle} is not found." in error.details()
        message = pb.RunStepRequest(session_handle=handle, store_errors_in_response_body=True)
        answer = await master.call("RunStep", message, bearer("bob"))
        assert answer.status_code == int(ABORTED.value[0])
        extend = pb.ExtendSessionRequest(session_handle=handle, graph_def=square_of_y_graph())
        assert (await master.call("ExtendSession", extend, bearer("alice"))).new_graph_version == 1
        listed = await master.rest.client.get("/v1/sessions", headers=bearer("bob"))
        assert listed.json() == {"sessions": []}

    with_keys(scenario, tmp_path)


def test_a_session_is_its_owner_s_over_both_fronts(tmp_path: pathlib.Path) -> None:
    async def scenario(master: Master) -> None:
        client = master.rest.client
        handle = await master.create("alice")
        path = f"/v1/sessions/{handle}"
        assert (await client.get(path, headers=bearer("bob"))).status_code == 404
        assert (await client.get(path, headers=bearer("alice"))).status_code == 200
        made = await client.post("/v1/sessions", json=HALF_PLUS_TWO, headers=bearer("bob"))
        message = pb.ListDevicesRequest(session_handle=made.json()["session"])
        await master.refused(ABORTED, "ListDevices", message, bearer("alice"))
        assert (await master.call("ListDevices", message, bearer("bob"))).local_device

    with_keys(scenario, tmp_path)


def test_each_owner_s_sessions_share_variables_with_no_other_s(tmp_path: pathlib.Path) -> None:
    async def run(master: Master, handle: str, owner: str, fetch: str) -> Any:
        message = pb.RunStepRequest(session_handle=handle, fetch=[fetch])
        return await master.call("RunStep", message, bearer(owner))

    async def scenario(master: Master) -> None:
        first = await master.create("alice", shared_variable())
        await run(master, first, "alice", "set")
        second = await master.create("alice", shared_variable())
        assert (await run(master, second, "alice", "get")).tensor
        other = await master.create("bob", shared_variable())
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await run(master, other, "bob", "get")
        assert error.value.code() is FAILED
        await run(master, other, "bob", "set")
        await master.call("Reset", pb.ResetRequest(), bearer("alice"))
        for handle in (first, second):
            message = pb.ListDevicesRequest(session_handle=handle)
            await master.refused(ABORTED, "ListDevices", message, bearer("alice"))
        assert (await run(master, other, "bob", "get")).tensor

    with_keys(scenario, tmp_path)


def test_reset_never_closes_sessions_of_rest() -> None:
    async def scenario(master: Master) -> None:
        path = await master.rest.create()
        handle = await master.create()
        await master.call("Reset", pb.ResetRequest())
        assert (await master.rest.client.get(path)).status_code == 200
        message = pb.ListDevicesRequest(session_handle=handle)
        await master.refused(ABORTED, "ListDevices", message)

    with_master(scenario)


def test_without_graphs_there_is_no_master_service() -> None:
    async def scenario(master: Master) -> None:
        for name in RESPONSES:
            request = _STATES.get(name, pb.CreateSessionRequest)()
            error = await master.refused(DENIED, name, request)
            assert "sessions.graphs" in error.details()

    with_master(scenario, sessions={"graphs": "none"})


def test_tensorflow_s_clients_have_a_port_of_their_own(tmp_path: pathlib.Path) -> None:
    async def scenario(master: Master) -> None:
        assert master.tensorflow is not None
        handle = await master.tensorflow.create()
        message = pb.ListDevicesRequest(session_handle=handle)
        assert (await master.tensorflow.call("ListDevices", message)).local_device
        await master.refused(UNAUTHENTICATED, "ListDevices", message)
        await master.refused(ABORTED, "ListDevices", message, bearer("alice"))
        alice = pb.ListDevicesRequest(session_handle=await master.create("alice"))
        await master.tensorflow.refused(ABORTED, "ListDevices", alice)
        listed = await master.rest.client.get("/v1/sessions", headers=bearer("root"))
        assert len(listed.json()["sessions"]) == 2

    with_keys(scenario, tmp_path, grpc={"tensorflow_port": 0})


def test_too_many_sessions_answer_with_the_time_to_wait() -> None:
    async def scenario(master: Master) -> None:
        await master.create()
        error = await master.refused(EXHAUSTED, "CreateSession", pb.CreateSessionRequest())
        assert "1 sessions are open" in error.details()
        trailers = dict(error.trailing_metadata() or ())
        assert 1 <= int(trailers["retry-after"]) <= 7

    limits = {"max_open": 1, "default_lease_seconds": 7, "max_lease_seconds": 7}
    with_master(scenario, sessions=limits)


def test_limits_answer_with_the_time_to_wait(tmp_path: pathlib.Path) -> None:
    async def scenario(master: Master) -> None:
        await master.create("alice")
        request = pb.CreateSessionRequest()
        error = await master.refused(EXHAUSTED, "CreateSession", request, bearer("alice"))
        assert "requests_per_second is 0.001" in error.details()
        trailers = dict(error.trailing_metadata() or ())
        assert 900 < int(trailers["retry-after"]) <= 1000
        await master.create("bob")
        error = await master.refused(EXHAUSTED, "CreateSession", request, bearer("bob"))
        assert "sessions is 1" in error.details()

    limits = {
        "alice": OWNERS["alice"] | {"limits": {"requests_per_second": 0.001}},
        "bob": OWNERS["bob"] | {"limits": {"sessions": 1}},
    }
    with_keys(scenario, tmp_path, limits)


def test_priorities_are_limited(tmp_path: pathlib.Path) -> None:
    async def scenario(master: Master) -> None:
        handle = await master.create("alice")
        x = pb.NamedTensorProto(name="x:0", tensor=tensor_to_proto(np.float32([2])))
        message = pb.RunStepRequest(session_handle=handle, feed=[x], fetch=["y:0"])
        assert (await master.call("RunStep", message, bearer("alice"))).tensor
        chosen = bearer("alice") | {"x-priority": "normal"}
        error = await master.refused(DENIED, "RunStep", message, chosen)
        assert "alice may not use priority 'normal'" in error.details()
        message.options.inter_op_thread_pool = -1
        await master.refused(DENIED, "RunStep", message, bearer("alice"))

    alice = OWNERS["alice"] | {"limits": {"priorities": ["low"]}}
    with_keys(scenario, tmp_path, {"alice": alice})


def test_errors_do_not_name_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "secret-node-7")

    async def scenario(master: Master) -> None:
        graph = pb.GraphDef(node=[pb.NodeDef(name="n", op="NoSuchOp")])
        request = pb.CreateSessionRequest(graph_def=graph)
        error = await master.refused(grpc.StatusCode.NOT_FOUND, "CreateSession", request)
        assert "in binary running on [host]." in error.details()

    with_master(scenario)

"""The master service without a wire: what it promises beyond the tests of targets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    AbortedError,
    Code,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
    global_thread_pools,
    tensor_from_proto,
    tensor_to_proto,
)
from runtime.framework.dtypes import DataType
from server.app import make_services
from server.rest.session_docs import half_plus_two_graph, square_of_y_graph
from server.rpc.call import CallContext, Reply
from server.rpc.master_service import MasterService
from server.sessions import open_session
from server.sessions.requests import CreateRequest
from server.settings import Settings
from tests.conformance.case import Graph
from tests.unit.runtime.sessions.graphs import queue_graph

PLAIN = CallContext(None, {})
Scenario = Callable[[MasterService], Coroutine[Any, Any, None]]


def with_master(scenario: Scenario, **settings: Any) -> None:
    """Run a scenario against a master service of its own."""

    async def run() -> None:
        # On loopback steps have no longest time: PLAIN is as old as the run.
        local = {"rest": {"host": "127.0.0.1"}}
        services = make_services(Settings(models=(), **local | settings))
        try:
            await scenario(MasterService(services.sessions, services.settings))
        finally:
            await services.sessions.close_all()

    asyncio.run(run())


async def create(master: MasterService, **config: Any) -> str:
    request = pb.CreateSessionRequest(
        graph_def=half_plus_two_graph(), config=pb.ConfigProto(**config)
    )
    return (await master.create_session(request, PLAIN)).session_handle


def run_y(handle: str, **fields: Any) -> pb.RunStepRequest:
    x = pb.NamedTensorProto(name="x:0", tensor=tensor_to_proto(np.float32([2])))
    return pb.RunStepRequest(session_handle=handle, feed=[x], fetch=["y:0"], **fields)


async def run_step(
    master: MasterService, message: pb.RunStepRequest, context: CallContext
) -> pb.RunStepResponse:
    """As the server calls the method."""
    method = master.methods()["RunStep"]
    reply = await method.answer(method.read(message.SerializeToString()), context)
    if not isinstance(reply, Reply):
        assert isinstance(reply, pb.RunStepResponse)
        return reply
    return pb.RunStepResponse.FromString(reply.write(*reply.arguments))


async def run_callable(
    master: MasterService, message: pb.RunCallableRequest, context: CallContext
) -> pb.RunCallableResponse:
    """As the server calls the method."""
    method = master.methods()["RunCallable"]
    reply = await method.answer(method.read(message.SerializeToString()), context)
    assert isinstance(reply, Reply)
    return pb.RunCallableResponse.FromString(reply.write(*reply.arguments))


def completed() -> dict[str, int]:
    return {pool.name: pool.stats().completed for pool in global_thread_pools.all()}


def test_metadata_chooses_the_priority() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        before = completed()
        low = CallContext(None, {"x-priority": "low"})
        response = await run_step(master, run_y(handle), low)
        assert tensor_from_proto(response.tensor[0].tensor).tolist() == [3.0]
        after = completed()
        assert after["background"] == before["background"] + 1
        assert after["online"] == before["online"]
        with pytest.raises(InvalidArgumentError, match="Unknown priority 'urgent'"):
            await run_step(master, run_y(handle), CallContext(None, {"x-priority": "urgent"}))

    with_master(scenario)


def test_metadata_chooses_the_priority_of_a_callable_too() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        options = pb.CallableOptions(feed=["x:0"], fetch=["y:0"])
        made = await master.make_callable(
            pb.MakeCallableRequest(session_handle=handle, options=options), PLAIN
        )
        before = completed()["background"]
        call = pb.RunCallableRequest(
            session_handle=handle, handle=made.handle, feed=[tensor_to_proto(np.float32([2]))]
        )
        response = await run_callable(master, call, CallContext(None, {"x-priority": "low"}))
        assert tensor_from_proto(response.fetch[0]).tolist() == [3.0]
        assert completed()["background"] == before + 1

    with_master(scenario)


def test_a_callable_that_is_cancelled_ends() -> None:
    async def scenario(master: MasterService) -> None:
        request = pb.CreateSessionRequest(graph_def=queue_graph())
        handle = (await master.create_session(request, PLAIN)).session_handle
        made = await master.make_callable(
            pb.MakeCallableRequest(
                session_handle=handle, options=pb.CallableOptions(fetch=["deq:0"])
            ),
            PLAIN,
        )
        call = pb.RunCallableRequest(session_handle=handle, handle=made.handle)
        waiting = asyncio.ensure_future(run_callable(master, call, PLAIN))
        await asyncio.sleep(0)
        waiting.cancel()  # as grpc.aio does when the client cancels the call
        with pytest.raises(asyncio.CancelledError):
            await waiting
        # Its dequeue is gone: it takes nothing from the queue.
        one = pb.NamedTensorProto(name="value:0", tensor=tensor_to_proto(np.float32(1)))
        enqueue = pb.RunStepRequest(session_handle=handle, feed=[one], target=["enq"])
        await run_step(master, enqueue, PLAIN)
        size = pb.RunStepRequest(session_handle=handle, fetch=["size:0"])
        response = await run_step(master, size, PLAIN)
        assert tensor_from_proto(response.tensor[0].tensor) == 1

    with_master(scenario)


def test_an_index_of_the_session_chooses_the_pool() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        before = completed()["background"]
        options = pb.RunOptions(inter_op_thread_pool=1)
        await run_step(master, run_y(handle, options=options), PLAIN)
        assert completed()["background"] == before + 1

    with_master(scenario)


def test_errors_go_into_the_body_when_asked() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        request = run_y(handle, store_errors_in_response_body=True)
        request.fetch[:] = ["nowhere:0"]
        response = await run_step(master, request, PLAIN)
        assert response.status_code == Code.NOT_FOUND
        assert response.status_error_message == "FetchOutputs node nowhere:0: not found"
        request.store_errors_in_response_body = False
        with pytest.raises(NotFoundError, match="FetchOutputs node nowhere:0: not found"):
            await run_step(master, request, PLAIN)

    with_master(scenario)


def test_a_value_without_a_form_goes_into_the_body_when_asked() -> None:
    async def scenario(master: MasterService) -> None:
        request = pb.CreateSessionRequest(graph_def=queue_graph())
        handle = (await master.create_session(request, PLAIN)).session_handle
        message = pb.RunStepRequest(session_handle=handle, fetch=["q"])
        with pytest.raises(UnimplementedError, match="has no value on the wire"):
            await run_step(master, message, PLAIN)
        message.store_errors_in_response_body = True
        response = await run_step(master, message, PLAIN)
        assert response.status_code == Code.UNIMPLEMENTED
        assert "has no value on the wire" in response.status_error_message

    with_master(scenario)


def test_a_session_that_is_not_there_is_aborted() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        await master.close_session(pb.CloseSessionRequest(session_handle=handle), PLAIN)
        text = f"Session {handle} is not found. Possibly, this master has restarted."
        calls = (
            master.close_session(pb.CloseSessionRequest(session_handle=handle), PLAIN),
            run_step(master, run_y(handle), PLAIN),
            master.extend_session(pb.ExtendSessionRequest(session_handle=handle), PLAIN),
            master.list_devices(pb.ListDevicesRequest(session_handle=handle), PLAIN),
            master.make_callable(pb.MakeCallableRequest(session_handle=handle), PLAIN),
        )
        for call in calls:
            with pytest.raises(AbortedError) as caught:
                await call
            assert caught.value.message == text

    with_master(scenario)


def test_an_extend_needs_the_newest_version() -> None:
    async def scenario(master: MasterService) -> None:
        request = pb.ExtendSessionRequest(
            session_handle=await create(master),
            graph_def=square_of_y_graph(),
            current_graph_version=99,
        )
        with pytest.raises(AbortedError) as caught:
            await master.extend_session(request, PLAIN)
        assert caught.value.message == "Current version is 0 but caller expected 99."
        request.current_graph_version = 0
        assert (await master.extend_session(request, PLAIN)).new_graph_version == 1

    with_master(scenario)


def test_leases_are_the_longest_that_there_are() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        assert master._sessions.get(handle).lease.seconds == 77

    with_master(scenario, sessions={"max_lease_seconds": 77, "default_lease_seconds": 7})


def test_sessions_and_tensors_are_limited() -> None:
    async def scenario(master: MasterService) -> None:
        handle = await create(master)
        with pytest.raises(ResourceExhaustedError, match=r"sessions\.max_open"):
            await create(master)
        request = run_y(handle)
        request.feed[0].tensor.CopyFrom(tensor_to_proto(np.zeros(2000, np.float32)))
        with pytest.raises(ResourceExhaustedError, match="the limit is 4000"):
            await run_step(master, request, PLAIN)

    with_master(scenario, sessions={"max_open": 1, "max_tensor_bytes": 4000})


def test_devices_may_be_listed_without_a_session() -> None:
    async def scenario(master: MasterService) -> None:
        listed = await master.list_devices(pb.ListDevicesRequest(), PLAIN)
        assert [device.device_type for device in listed.local_device] == ["CPU"]
        assert not master._sessions.open_sessions()

    with_master(scenario)


def test_reset_closes_the_sessions_that_share() -> None:
    async def scenario(master: MasterService) -> None:
        sharing, isolated = await create(master), await create(master, isolate_session_state=True)
        await master.reset(pb.ResetRequest(), PLAIN)
        with pytest.raises(AbortedError):
            await run_step(master, run_y(sharing), PLAIN)
        assert (await run_step(master, run_y(isolated), PLAIN)).tensor

    with_master(scenario)


def test_the_master_keeps_nothing_of_sessions_that_ended_elsewhere() -> None:
    """Over REST, by their lease, or on their own: the registry alone knows what is open."""

    async def scenario(master: MasterService) -> None:
        sizes = []
        for _ in range(3):
            await master._sessions.close(await create(master))
            sizes.append(_ids_held(master))
        assert sizes == [1, 1, 1]  # what all sessions of the owner share, until Reset

    with_master(scenario)


def _ids_held(master: MasterService) -> int:
    """How many entries the service's own collections have."""
    return sum(len(value) for value in vars(master).values() if isinstance(value, set | dict))


def test_reset_leaves_the_sessions_of_rest() -> None:
    async def scenario(master: MasterService) -> None:
        other = await master._sessions.create(CreateRequest(graph_def=half_plus_two_graph()))
        sharing = await create(master)
        await master.reset(pb.ResetRequest(), PLAIN)
        assert [each.id for each in master._sessions.open_sessions()] == [other.id]
        with pytest.raises(AbortedError):
            await run_step(master, run_y(sharing), PLAIN)

    with_master(scenario)


def test_shared_variables_are_charged_until_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_session, "CHECK_SECONDS", 0.0)
    graph = Graph()
    value = graph.placeholder("float32", "value")
    for name in ("first", "second"):
        variable = graph.add(
            "VarHandleOp", name=name, shared_name=name, dtype=DataType.FLOAT, shape=()
        )
        graph.add("AssignVariableOp", variable[0], value, name=f"assign_{name}")
    large = tensor_to_proto(np.zeros(1 << 18, np.float32))

    async def scenario(master: MasterService) -> None:
        async def opened() -> str:
            request = pb.CreateSessionRequest(graph_def=graph.graph_def)
            return (await master.create_session(request, PLAIN)).session_handle

        async def assign(handle: str, name: str) -> None:
            fed = pb.NamedTensorProto(name="value:0", tensor=large)
            message = pb.RunStepRequest(
                session_handle=handle, feed=[fed], target=[f"assign_{name}"]
            )
            await run_step(master, message, PLAIN)

        one = await opened()
        other = await opened()
        await assign(one, "first")
        await master.close_session(pb.CloseSessionRequest(session_handle=one), PLAIN)
        with pytest.raises(ResourceExhaustedError, match=r"max_session_bytes is 1000000"):
            await assign(other, "second")
        with pytest.raises(ResourceExhaustedError, match="the session has 0 left"):
            await opened()
        assert 1 << 20 <= master._shared.bytes_held < (1 << 20) + 1000
        await master.reset(pb.ResetRequest(), PLAIN)
        assert master._shared.bytes_held == 0
        await assign(await opened(), "second")

    with_master(scenario, sessions={"max_session_bytes": 1_000_000})

"""The sessions of a host: opened, found, closed, and the clients that fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    RunRequest,
)
from runtime.session_host.hosted_session import HostedSession, deadline_in
from runtime.session_host.session_host import CLIENT_SECONDS, SessionHost
from runtime.sessions.ray_cluster.actor_values import SessionLimits
from tests.integration.targets.graphs import chain, queue, square_of_n

LIMITS = SessionLimits(1000, None, None, "auto")
MODEL = "examples/models/half_plus_two/1"
X = {"x:0": np.float32(3)}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def hosted(test: Callable[[SessionHost, Clock], Any]) -> None:
    """Run a test on a host's event loop."""

    async def run() -> None:
        clock = Clock()
        await test(SessionHost(100, clock), clock)

    asyncio.run(run())


async def opened(host: SessionHost, graph: pb.GraphDef | None = None, **config: Any) -> str:
    request = pb.CreateSessionRequest(graph_def=graph or chain(), config=pb.ConfigProto(**config))
    return await host.open("client", request, LIMITS)


async def value(session: HostedSession, number: int, **options: Any) -> Any:
    request = RunRequest(X, ["n:0"], options=pb.RunOptions(**options) if options else None)
    return (await session.run(number, request))[0]


def test_a_session_runs_and_is_extended_until_it_is_closed() -> None:
    async def test(host: SessionHost, _: Clock) -> None:
        handle = await opened(host)
        session = host.get(handle)
        assert await value(session, 1) == -6
        assert await session.extend(square_of_n(), 0) == 1
        with pytest.raises(AbortedError, match="Current version is 1 but caller expected 0"):
            await session.extend(square_of_n("late"), 0)
        await host.close(handle)
        await host.close(handle)
        assert host.num_sessions == 0
        with pytest.raises(AbortedError, match=f"Session {handle} is not found"):
            host.get(handle)
        with pytest.raises(CancelledError):
            await value(session, 2)

    hosted(test)


def test_steps_without_a_pool_do_not_hold_up_the_loop() -> None:
    async def test(host: SessionHost, _: Clock) -> None:
        plain = host.get(await opened(host))
        assert await value(plain, 1, inter_op_thread_pool=-1) == -6
        without_pools = host.get(await opened(host, queue("q"), inter_op_parallelism_threads=-1))
        waiting = asyncio.ensure_future(without_pools.run(1, RunRequest({}, ["dequeue:0"])))
        fed = RunRequest({"value:0": np.float32(7)}, [], ["enqueue"])
        assert await without_pools.run(2, fed) == []
        assert await waiting == [7]

    hosted(test)


def test_a_step_is_cancelled_by_its_number_also_before_it_comes() -> None:
    async def test(host: SessionHost, _: Clock) -> None:
        session = host.get(await opened(host, queue("q")))
        waiting = asyncio.ensure_future(session.run(1, RunRequest({}, ["dequeue:0"])))
        await asyncio.sleep(0)
        session.cancel(1)
        with pytest.raises(CancelledError):
            await waiting
        session.cancel(2)
        with pytest.raises(CancelledError, match="The step was cancelled"):
            await session.run(2, RunRequest({}, ["size:0"]))
        assert await session.run(3, RunRequest({}, ["size:0"], deadline=deadline_in(30))) == [0]

    hosted(test)


def test_a_graph_that_is_wrong_leaves_no_session() -> None:
    async def test(host: SessionHost, _: Clock) -> None:
        graph = pb.GraphDef()
        graph.node.add(name="n", op="NoSuchOp")
        with pytest.raises(NotFoundError, match="NoSuchOp"):
            await opened(host, graph)
        with pytest.raises(InvalidArgumentError, match="has no name"):
            await host.open("", pb.CreateSessionRequest(graph_def=chain()), LIMITS)
        assert host.num_sessions == 0

    hosted(test)


def test_silent_clients_are_closed_and_an_idle_host_says_so() -> None:
    async def test(host: SessionHost, clock: Clock) -> None:
        handle = await opened(host)
        clock.now = CLIENT_SECONDS - 1
        host.get(handle)  # heard of
        clock.now = 2 * CLIENT_SECONDS - 2
        await host.close_silent_clients()
        assert host.num_sessions == 1
        host.heard_of("client")
        clock.now += CLIENT_SECONDS + 1
        await host.close_silent_clients()
        assert host.num_sessions == 0
        assert not host.is_idle
        clock.now += 101
        assert host.is_idle

    hosted(test)


def test_a_model_is_loaded_once_and_its_sessions_share_its_weights() -> None:
    async def test(host: SessionHost, _: Clock) -> None:
        config, folder = pb.ConfigProto(), MODEL
        handles = await asyncio.gather(
            *(host.open_saved_model("client", config, LIMITS, folder, ["serve"]) for _ in range(4))
        )
        assert len(set(handles)) == 4
        assert len(host.models) == 1
        first, second, *_ = (host.get(handle).session for handle in handles)
        arrays = [
            next(resource.peek() for _, _, resource in session.resources)
            for session in (first, second)
        ]
        assert arrays[0] is arrays[1]
        with pytest.raises(NotFoundError):
            await host.open_saved_model("client", config, LIMITS, folder, ["other"])
        assert len(host.models) == 1

    hosted(test)

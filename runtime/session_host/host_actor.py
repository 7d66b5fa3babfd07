"""HostActor: the calls to a SessionHost, as an actor that many programs call at the same time.

Its methods are coroutines, so a step that waits holds up no other call. Each takes one tuple,
because Ray serializes every argument by itself, and gives an Answer (`actor_values.py`).

| call | argument | content of the answer |
| --- | --- | --- |
| `open` | client, CreateSessionRequest, limits | CreateSessionResponse |
| `open_saved_model` | client, ConfigProto, limits, folder, tags | CreateSessionResponse |
| `extend`, `partial_run_setup`, `make_callable`, `release_callable` | the request | the response |
| `run` | handle, step, feeds, fetches, targets, RunOptions, seconds, reports | values, metadata |
| `run_callable` | handle, step, callable, values, seconds, reports | the same |
| `partial_run` | handle, step, partial run, feeds, fetches | the same |
| `cancel` | handle, step | None |
| `list_devices` | handle | DeviceAttributes of each |
| `close`; `close_client`, `keep_alive` | handle; client | None |
| `describe` | | what the host has |

Messages are serialized. `seconds` is the time that a step has left, or None.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import protos as pb
from runtime.clusters.running.run_width import share_processors_among_runs
from runtime.foundation.global_thread_pools import global_thread_pools
from runtime.session_host.hosted_session import deadline_in
from runtime.session_host.session_host import SessionHost
from runtime.sessions.ray_cluster.actor_values import (
    Answer,
    answer_of,
    from_sent,
    received_feeds,
    refusal,
)
from runtime.sessions.ray_cluster.this_actor import exit_actor, own_node_id
from runtime.sessions.runtime_session import RunRequest

WATCH_SECONDS = 2.0  # how often silent clients and the host's own idle time are looked at
_Call = Callable[["HostActor", Any], Awaitable[Answer]]


def _answered(call: _Call) -> _Call:
    """Turn what a call raises into an answer, and watch the host from the first call on."""

    @functools.wraps(call)
    async def answered(self: HostActor, argument: Any = None) -> Answer:
        self.watch()
        try:
            return await call(self, argument)
        except Exception as error:
            return refusal(error)

    return answered


class HostActor:
    """The sessions of a node, which is one of those whose addresses by id are given."""

    def __init__(self, addresses: Mapping[str, str], idle_seconds: float) -> None:
        self._node_id = own_node_id()
        self._node = f"{addresses.get(self._node_id, '')} {self._node_id}".lstrip()
        share_processors_among_runs()
        self._host = SessionHost(idle_seconds)
        self._watching: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Begin to look after clients; a host that ends is found no more by its name."""
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while not self._host.is_idle:
            await asyncio.sleep(WATCH_SECONDS)
            await self._host.close_silent_clients()
        exit_actor()

    # Sessions.

    @_answered
    async def open(self, argument: Any) -> Answer:
        """Open a session with a graph."""
        client, message, limits = argument
        request = pb.CreateSessionRequest.FromString(message)
        handle = await self._host.open(client, request, limits)
        return self._opened(handle)

    @_answered
    async def open_saved_model(self, argument: Any) -> Answer:
        """Open a session of a SavedModel that this node reads."""
        client, config, limits, export_dir, tags = argument
        handle = await self._host.open_saved_model(
            client, pb.ConfigProto.FromString(config), limits, export_dir, tags
        )
        return self._opened(handle)

    def _opened(self, handle: str) -> Answer:
        version = self._host.get(handle).session.graph_version
        response = pb.CreateSessionResponse(session_handle=handle, graph_version=version)
        return (0, response.SerializeToString())

    @_answered
    async def extend(self, argument: Any) -> Answer:
        """Add nodes to a graph."""
        request = pb.ExtendSessionRequest.FromString(argument)
        hosted = self._host.get(request.session_handle)
        version = await hosted.extend(request.graph_def, request.current_graph_version)
        return (0, pb.ExtendSessionResponse(new_graph_version=version).SerializeToString())

    @_answered
    async def list_devices(self, argument: Any) -> Answer:
        """Return the devices of a session; their descriptions name the node."""
        devices = self._host.get(argument).session.list_devices()
        for device in devices:
            device.physical_device_desc = f"{self._node} {device.physical_device_desc}".rstrip()
        return (0, [device.SerializeToString() for device in devices])

    @_answered
    async def close(self, argument: Any) -> Answer:
        """Close a session."""
        await self._host.close(argument)
        return (0, None)

    # Steps.

    @_answered
    async def run(self, argument: Any) -> Answer:
        """Run a step."""
        handle, number, feeds, fetches, targets, options, seconds, reports = argument
        request = RunRequest(
            received_feeds(feeds),
            fetches,
            targets,
            None if options is None else pb.RunOptions.FromString(options),
            pb.RunMetadata() if reports else None,
            deadline=deadline_in(seconds),
        )
        values = await self._host.get(handle).run(number, request)
        return answer_of(values, request.metadata)

    @_answered
    async def cancel(self, argument: Any) -> Answer:
        """Cancel a step."""
        handle, number = argument
        self._host.get(handle).cancel(number)
        return (0, None)

    @_answered
    async def partial_run_setup(self, argument: Any) -> Answer:
        """Start a partial run."""
        request = pb.PartialRunSetupRequest.FromString(argument)
        handle = await self._host.get(request.session_handle).partial_run_setup(request)
        return (0, pb.PartialRunSetupResponse(partial_run_handle=handle).SerializeToString())

    @_answered
    async def partial_run(self, argument: Any) -> Answer:
        """Feed and fetch a part of a partial run."""
        handle, number, partial, feeds, fetches = argument
        hosted = self._host.get(handle)
        request = RunRequest(fetches=fetches)
        values = await hosted.partial_run(number, partial, received_feeds(feeds), request)
        return answer_of(values, None)

    @_answered
    async def make_callable(self, argument: Any) -> Answer:
        """Prepare a step."""
        request = pb.MakeCallableRequest.FromString(argument)
        hosted = self._host.get(request.session_handle)
        handle = await hosted.call(lambda: hosted.session.make_callable(request.options))
        return (0, pb.MakeCallableResponse(handle=handle).SerializeToString())

    @_answered
    async def run_callable(self, argument: Any) -> Answer:
        """Run a prepared step."""
        handle, number, prepared, values, seconds, reports = argument
        request = RunRequest(
            metadata=pb.RunMetadata() if reports else None, deadline=deadline_in(seconds)
        )
        fetched = await self._host.get(handle).run_callable(
            number, prepared, [from_sent(value) for value in values], request
        )
        return answer_of(fetched, request.metadata)

    @_answered
    async def release_callable(self, argument: Any) -> Answer:
        """Release a prepared step."""
        request = pb.ReleaseCallableRequest.FromString(argument)
        self._host.get(request.session_handle).session.release_callable(request.handle)
        return (0, pb.ReleaseCallableResponse().SerializeToString())

    # Clients.

    @_answered
    async def keep_alive(self, argument: Any) -> Answer:
        """Note that a client lives."""
        self._host.heard_of(argument)
        return (0, None)

    @_answered
    async def close_client(self, argument: Any) -> Answer:
        """Close all sessions of a client."""
        await self._host.close_client(argument)
        return (0, None)

    @_answered
    async def describe(self, _: Any) -> Answer:
        """Return how many sessions and models there are, the named pools, and where it runs."""
        return (
            0,
            {
                "sessions": self._host.num_sessions,
                "models": len(self._host.models),
                "thread_pools": [pool.name for pool in global_thread_pools.all()],
                "pid": os.getpid(),
                "node": self._node_id,
            },
        )

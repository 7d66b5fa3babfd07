"""TensorFlow's master service on the session service: `/tensorflow.MasterService/…`.

What differs from REST is what TensorFlow's own server of one task does: sessions share one
resource manager unless `isolate_session_state`, Reset clears it and closes those sessions, a
session that is not there is ABORTED, an unknown fetch NOT_FOUND. Leases are as long as the
configuration allows, because TensorFlow's clients know none.

Guarantees: used from one event loop; messages over LARGE_BYTES are parsed and built on threads.

TF: tensorflow/core/distributed_runtime/master.cc, rpc/grpc_master_service.cc
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import protos as pb
from runtime.api import (
    CancellationManager,
    ResourceManager,
    parse_tensor_name,
    tensor_from_proto,
    tensor_to_proto,
)
from runtime.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from server.sessions.open_session import OpenSession
from server.sessions.requests import CreateRequest, StepRequest
from server.sessions.service import SessionService
from server.sessions.session_errors import SessionGoneError
from server.settings import Settings

LARGE_BYTES = 1 << 18  # messages above are handled off the event loop
PRIORITY_METADATA = "x-priority"
# TF: tensorflow/core/distributed_runtime/master_session.cc
STEP_CLOSED = "Step was cancelled by an explicit call to `Session::Close()`."


class CallContext:
    """What a call brings besides its message. `seconds_left` is None without a deadline."""

    def __init__(self, seconds_left: float | None, metadata: Mapping[str, str]) -> None:
        self.received_at = time.monotonic()
        self.seconds_left = seconds_left
        self.metadata = metadata
        self.cancellation = CancellationManager()

    def step(
        self,
        feeds: Mapping[str, Any],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        *,
        options: pb.RunOptions | None = None,
        pool_is_chosen: bool = False,
    ) -> StepRequest:
        """The step that this call asks for."""
        timeout_ms = None if self.seconds_left is None else max(1, int(self.seconds_left * 1000))
        return StepRequest(
            feeds=feeds,
            fetches=fetches,
            targets=targets,
            received_at=self.received_at,
            request_id=secrets.token_hex(8),
            cancellation=self.cancellation,
            options=options,
            pool_is_chosen=pool_is_chosen,
            priority=None if pool_is_chosen else self.metadata.get(PRIORITY_METADATA),
            timeout_ms=timeout_ms,
            metadata=pb.RunMetadata(),
        )


class MasterService:
    """The ten methods; each takes its request message and gives its response message."""

    def __init__(self, sessions: SessionService, settings: Settings) -> None:
        self._sessions = sessions
        self._settings = settings
        # Shared by every session whose config does not isolate its state; cleared by Reset.
        self._shared = ResourceManager()

    def methods(self) -> dict[str, tuple[Any, Callable[[Any, CallContext], Any]]]:
        """Method name → (request message, handler)."""
        return {
            "CreateSession": (pb.CreateSessionRequest, self.create_session),
            "ExtendSession": (pb.ExtendSessionRequest, self.extend_session),
            "PartialRunSetup": (pb.PartialRunSetupRequest, self.partial_run_setup),
            "RunStep": (pb.RunStepRequest, self.run_step),
            "CloseSession": (pb.CloseSessionRequest, self.close_session),
            "ListDevices": (pb.ListDevicesRequest, self.list_devices),
            "Reset": (pb.ResetRequest, self.reset),
            "MakeCallable": (pb.MakeCallableRequest, self.make_callable),
            "RunCallable": (pb.RunCallableRequest, self.run_callable),
            "ReleaseCallable": (pb.ReleaseCallableRequest, self.release_callable),
        }

    async def create_session(
        self, request: pb.CreateSessionRequest, _: CallContext
    ) -> pb.CreateSessionResponse:
        """Open a session on the graph of the request."""
        opened = await self._sessions.create(
            CreateRequest(
                graph_def=request.graph_def,
                config=request.config,
                lease_seconds=self._settings.sessions.max_lease_seconds,
                resources=None if request.config.isolate_session_state else self._shared,
            )
        )
        return pb.CreateSessionResponse(
            session_handle=opened.id, graph_version=opened.graph_version
        )

    async def extend_session(
        self, request: pb.ExtendSessionRequest, _: CallContext
    ) -> pb.ExtendSessionResponse:
        """Add nodes; ABORTED when the caller has not seen the newest version."""
        opened = self._find(request.session_handle)
        version = await self._sessions.extend(
            opened.id, request.graph_def, request.current_graph_version
        )
        return pb.ExtendSessionResponse(new_graph_version=version)

    async def partial_run_setup(
        self, request: pb.PartialRunSetupRequest, _: CallContext
    ) -> pb.PartialRunSetupResponse:
        """Begin a step in parts."""
        opened = self._find(request.session_handle)
        self._check_names(opened, request.feed, request.fetch)
        handle = await self._sessions.partial_run_setup(
            opened.id, list(request.feed), list(request.fetch), list(request.target)
        )
        return pb.PartialRunSetupResponse(partial_run_handle=handle)

    async def run_step(
        self, request: pb.RunStepRequest, context: CallContext
    ) -> pb.RunStepResponse:
        """Run a step, or a part of one; errors go into the body when the client asks for that."""
        try:
            return await self._run_step(request, context)
        except OpError as error:
            if not request.store_errors_in_response_body:
                raise
            return pb.RunStepResponse(
                status_code=int(error.code),  # type: ignore[arg-type] # the canonical number
                status_error_message=error.message,
            )

    async def _run_step(
        self, request: pb.RunStepRequest, context: CallContext
    ) -> pb.RunStepResponse:
        opened = self._find(request.session_handle)
        feeds = await self._feeds(request)
        fetches = list(request.fetch)
        self._check_names(opened, [] if request.partial_run_handle else feeds, fetches)
        step = context.step(
            feeds,
            fetches,
            list(request.target),
            options=request.options,
            pool_is_chosen=_is_pool(request.options.inter_op_thread_pool, opened),
        )
        if request.partial_run_handle:
            values = await self._sessions.partial_run(opened.id, request.partial_run_handle, step)
        else:
            values = await self._sessions.run(opened.id, step)
        response = pb.RunStepResponse(metadata=step.metadata)
        tensors = await _encode(values)
        for name, tensor in zip(fetches, tensors, strict=True):
            response.tensor.append(pb.NamedTensorProto(name=name, tensor=tensor))
        return response

    async def _feeds(self, request: pb.RunStepRequest) -> dict[str, Any]:
        limit = self._settings.sessions.max_tensor_bytes
        feeds: dict[str, Any] = {}
        for named in request.feed:
            if named.name in feeds:
                raise InvalidArgumentError(f'Endpoint "{named.name}" fed more than once.')
            feeds[named.name] = tensor_from_proto(named.tensor, limit)
        return feeds

    async def close_session(
        self, request: pb.CloseSessionRequest, _: CallContext
    ) -> pb.CloseSessionResponse:
        """Close a session; closing it again is ABORTED, as everything else on it."""
        opened = self._find(request.session_handle)
        await self._sessions.close(opened.id, STEP_CLOSED)
        return pb.CloseSessionResponse()

    async def list_devices(
        self, request: pb.ListDevicesRequest, context: CallContext
    ) -> pb.ListDevicesResponse:
        """The devices of a session; without a handle those that a plain session would have."""
        if request.session_handle:
            opened = self._find(request.session_handle)
            return pb.ListDevicesResponse(local_device=opened.session.list_devices())
        opened = await self._sessions.create(CreateRequest())
        try:
            return pb.ListDevicesResponse(local_device=opened.session.list_devices())
        finally:
            await self._sessions.close(opened.id)

    async def reset(self, request: pb.ResetRequest, _: CallContext) -> pb.ResetResponse:
        """Clear the shared containers and close the sessions that share them."""
        if request.container:
            for container in request.container:
                self._shared.clear(container)
        else:
            self._shared.clear()
        for opened in self._sessions.open_sessions():
            if opened.session.options.resources is not self._shared:
                continue
            try:
                await self._sessions.close(opened.id, STEP_CLOSED)
            except NotFoundError:  # closed and forgotten meanwhile
                continue
        return pb.ResetResponse()

    async def make_callable(
        self, request: pb.MakeCallableRequest, _: CallContext
    ) -> pb.MakeCallableResponse:
        """Prepare a step."""
        opened = self._find(request.session_handle)
        self._check_names(opened, request.options.feed, request.options.fetch)
        handle = await self._sessions.make_callable(opened.id, request.options)
        return pb.MakeCallableResponse(handle=handle)

    async def run_callable(
        self, request: pb.RunCallableRequest, context: CallContext
    ) -> pb.RunCallableResponse:
        """Run a prepared step."""
        opened = self._find(request.session_handle)
        feeds = [
            tensor_from_proto(tensor, self._settings.sessions.max_tensor_bytes)
            for tensor in request.feed
        ]
        options = opened.callable_options(request.handle).run_options
        step = context.step(
            {}, options=options, pool_is_chosen=_is_pool(options.inter_op_thread_pool, opened)
        )
        values = await self._sessions.run_callable(opened.id, request.handle, feeds, step)
        return pb.RunCallableResponse(fetch=await _encode(values), metadata=step.metadata)

    async def release_callable(
        self, request: pb.ReleaseCallableRequest, _: CallContext
    ) -> pb.ReleaseCallableResponse:
        """Forget a prepared step."""
        opened = self._find(request.session_handle)
        await self._sessions.release_callable(opened.id, request.handle)
        return pb.ReleaseCallableResponse()

    def _find(self, handle: str) -> OpenSession:
        try:
            return self._sessions.get(handle)
        except (NotFoundError, SessionGoneError):
            raise AbortedError(
                f"Session {handle} is not found. Possibly, this master has restarted."
            ) from None

    @staticmethod
    def _check_names(opened: OpenSession, feeds: Iterable[str], fetches: Iterable[str]) -> None:
        """Unknown names in the words of TensorFlow's master."""
        for name in feeds:
            _check_name(
                opened,
                name,
                f"FeedInputs: unable to find feed output {name}",
                f"FeedInputs: {name} should have output index <",
            )
        for name in fetches:
            _check_name(
                opened,
                name,
                f"FetchOutputs node {name}: not found",
                f"FetchOutputs {name}: output index too large, must be <",
            )


def _is_pool(index: int, opened: OpenSession) -> bool:
    """Whether a step names a pool; TensorFlow's master ignores an index that no pool has."""
    return index != 0 and -1 <= index < len(opened.session.thread_pools)


def _check_name(opened: OpenSession, name: str, unknown: str, too_large: str) -> None:
    """TF: tensorflow/core/graph/subgraph.cc (FeedInputs, FetchOutputs)."""
    try:
        opened.tensor_info(name)
    except CancelledError:
        raise
    except InvalidArgumentError:
        raise NotFoundError(unknown) from None
    except OutOfRangeError:
        raise InvalidArgumentError(f"{too_large} {_output_count(opened, name)}") from None


def _output_count(opened: OpenSession, name: str) -> int:
    node, _ = parse_tensor_name(name)
    for count in itertools.count():
        try:
            opened.tensor_info(f"{node}:{count}")
        except OutOfRangeError:
            break
    return count


async def _encode(values: Sequence[Any]) -> list[pb.TensorProto]:
    if sum(getattr(value, "nbytes", 0) for value in values) > LARGE_BYTES:
        return await asyncio.to_thread(lambda: [tensor_to_proto(value) for value in values])
    return [tensor_to_proto(value) for value in values]

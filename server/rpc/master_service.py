"""TensorFlow's master service, `/tensorflow.MasterService/…`, by means of the session service.

It behaves as a TensorFlow server with one task, which differs from REST in four points. Sessions of
one owner share one resource manager unless `isolate_session_state` is set. Reset clears this
resource manager and closes the sessions that share it. An unknown session is ABORTED, and an
unknown fetch is NOT_FOUND. Leases have the maximal length, because TensorFlow's clients do not
renew them.

Guarantees: used from one event loop.

TF: tensorflow/core/distributed_runtime/master.cc, rpc/grpc_master_service.cc
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import protos as pb
from runtime.api import ResourceManager, parse_tensor_name
from runtime.errors import (
    AbortedError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from server.access.caller import Caller
from server.codec.session.proto_steps import (
    ReceivedRunCallable,
    ReceivedRunStep,
    receive_run_callable,
    receive_run_step,
    write_run_callable,
    write_run_step,
)
from server.rpc.call import CallContext, Method, Reply
from server.sessions.open_session import OpenSession
from server.sessions.requests import CreateRequest
from server.sessions.service import SessionService
from server.sessions.session_errors import SessionGoneError
from server.settings import Settings
from server.steps.step_request import StepRequest

# TF: tensorflow/core/distributed_runtime/master_session.cc
STEP_CLOSED = "Step was cancelled by an explicit call to `Session::Close()`."


class MasterService:
    """The ten methods of the service."""

    def __init__(self, sessions: SessionService, settings: Settings) -> None:
        self._sessions = sessions
        self._settings = settings
        # By owner: what its sessions share unless their config isolates the state. All callers
        # who are not authenticated are one owner. Its resources count in each of these sessions, so
        # above the limit all refuse steps until Reset clears it.
        self._shared: dict[str, ResourceManager] = {}

    def methods(self) -> dict[str, Method]:
        """Return the methods of the service by name."""
        limit = self._settings.sessions.max_tensor_bytes
        return {
            "CreateSession": Method(pb.CreateSessionRequest.FromString, self.create_session),
            "ExtendSession": Method(pb.ExtendSessionRequest.FromString, self.extend_session),
            "PartialRunSetup": Method(pb.PartialRunSetupRequest.FromString, self.partial_run_setup),
            "RunStep": Method(functools.partial(receive_run_step, limit), self.run_step),
            "CloseSession": Method(
                pb.CloseSessionRequest.FromString, self.close_session, frees_memory=True
            ),
            "ListDevices": Method(pb.ListDevicesRequest.FromString, self.list_devices),
            "Reset": Method(pb.ResetRequest.FromString, self.reset, frees_memory=True),
            "MakeCallable": Method(pb.MakeCallableRequest.FromString, self.make_callable),
            "RunCallable": Method(
                functools.partial(receive_run_callable, limit), self.run_callable
            ),
            "ReleaseCallable": Method(
                pb.ReleaseCallableRequest.FromString, self.release_callable, frees_memory=True
            ),
        }

    async def create_session(
        self, request: pb.CreateSessionRequest, context: CallContext
    ) -> pb.CreateSessionResponse:
        """Open a session on the graph of the request."""
        opened = await self._sessions.create(
            CreateRequest(
                graph_def=request.graph_def,
                config=request.config,
                lease_seconds=self._settings.sessions.max_lease_seconds,
                resources=self._shared_by(context.caller)
                if not request.config.isolate_session_state
                else None,
                caller=context.caller,
            )
        )
        return pb.CreateSessionResponse(
            session_handle=opened.id, graph_version=opened.graph_version
        )

    async def extend_session(
        self, request: pb.ExtendSessionRequest, context: CallContext
    ) -> pb.ExtendSessionResponse:
        """Add nodes; raise AbortedError if `current_graph_version` is not the current version."""
        opened = self._find(request.session_handle, context)
        version = await self._sessions.extend(
            opened.id, request.graph_def, request.current_graph_version
        )
        return pb.ExtendSessionResponse(new_graph_version=version)

    async def partial_run_setup(
        self, request: pb.PartialRunSetupRequest, context: CallContext
    ) -> pb.PartialRunSetupResponse:
        """Begin a partial run."""
        opened = self._find(request.session_handle, context)
        _check_names(opened, request.feed, request.fetch)
        handle = await self._sessions.partial_run_setup(
            opened.id,
            list(request.feed),
            list(request.fetch),
            list(request.target),
            context.caller,
        )
        return pb.PartialRunSetupResponse(partial_run_handle=handle)

    async def run_step(
        self, received: ReceivedRunStep, context: CallContext
    ) -> pb.RunStepResponse | Reply:
        """Run a step or a part of a partial run.

        If `store_errors_in_response_body` is set, an error is returned in the body.
        """
        try:
            return await self._run_step(received, context)
        except OpError as error:
            if not received.message.store_errors_in_response_body:
                raise
            return _error_response(error, context.caller)

    async def _run_step(self, received: ReceivedRunStep, context: CallContext) -> Reply:
        request = received.message
        opened = self._find(request.session_handle, context)
        if received.fault is not None:
            raise received.fault
        options, part = request.options, request.partial_run_handle
        fetches = list(request.fetch)
        _check_names(opened, () if part else received.feeds, fetches)
        is_pool = _is_pool(options.inter_op_thread_pool, opened)
        step = context.step(options, pool_is_chosen=is_pool)
        step.feeds, step.fetches, step.targets = received.feeds, fetches, list(request.target)
        step.body_bytes = sum(feed.nbytes for feed in received.feeds.values())
        runner = self._sessions.runner
        if part:
            step.partial_run_handle = part
            values, size = await runner.run_part(opened.session, step, opened)
        else:
            values, size = await runner.run(opened.session, step, opened)
        write = _write_or_store if request.store_errors_in_response_body else write_run_step
        return Reply(size, write, (step, values))

    async def close_session(
        self, request: pb.CloseSessionRequest, context: CallContext
    ) -> pb.CloseSessionResponse:
        """Close a session; any later call on it, another close too, is ABORTED."""
        opened = self._find(request.session_handle, context)
        await self._sessions.close(opened.id, STEP_CLOSED)
        return pb.CloseSessionResponse()

    async def list_devices(
        self, request: pb.ListDevicesRequest, context: CallContext
    ) -> pb.ListDevicesResponse:
        """List the devices of a session.

        If there is no handle, the devices are those that a session with default options has.
        """
        if request.session_handle:
            opened = self._find(request.session_handle, context)
            return pb.ListDevicesResponse(local_device=opened.session.list_devices())
        opened = await self._sessions.create(CreateRequest(caller=context.caller))
        try:
            return pb.ListDevicesResponse(local_device=opened.session.list_devices())
        finally:
            await self._sessions.close(opened.id)

    async def reset(self, request: pb.ResetRequest, context: CallContext) -> pb.ResetResponse:
        """Clear the containers that the owner's sessions share, and close these sessions."""
        shared = self._shared_by(context.caller)
        if request.container:
            for container in request.container:
                shared.clear(container)
        else:
            shared.clear()
        for opened in self._sessions.open_sessions():
            if opened.session.options.resources is not shared:
                continue
            try:
                await self._sessions.close(opened.id, STEP_CLOSED)
            except NotFoundError:  # another call closed the session in the meantime
                continue
        return pb.ResetResponse()

    async def make_callable(
        self, request: pb.MakeCallableRequest, context: CallContext
    ) -> pb.MakeCallableResponse:
        """Prepare a step."""
        opened = self._find(request.session_handle, context)
        _check_names(opened, request.options.feed, request.options.fetch)
        handle = await self._sessions.make_callable(opened.id, request.options)
        return pb.MakeCallableResponse(handle=handle)

    async def run_callable(self, received: ReceivedRunCallable, context: CallContext) -> Reply:
        """Run a prepared step."""
        opened = self._find(received.message.session_handle, context)
        if received.fault is not None:
            raise received.fault
        prepared = opened.session.callable(received.message.handle)
        options = prepared.options.run_options
        is_pool = _is_pool(options.inter_op_thread_pool, opened)
        step = context.step(options, pool_is_chosen=is_pool)
        step.feeds = prepared.feeds(received.feeds)
        step.body_bytes = sum(feed.nbytes for feed in received.feeds)
        step.fetches, step.targets = prepared.options.fetch, prepared.options.target
        step.compiled = prepared.compiled
        values, size = await self._sessions.runner.run(opened.session, step, opened)
        return Reply(size, write_run_callable, (step, values))

    async def release_callable(
        self, request: pb.ReleaseCallableRequest, context: CallContext
    ) -> pb.ReleaseCallableResponse:
        """Release a prepared step."""
        opened = self._find(request.session_handle, context)
        await self._sessions.release_callable(opened.id, request.handle)
        return pb.ReleaseCallableResponse()

    def _shared_by(self, caller: Caller) -> ResourceManager:
        limit = self._sessions.session_bytes
        made = ResourceManager(sys.maxsize if limit is None else limit)
        return self._shared.setdefault(caller.owner, made)

    def _find(self, handle: str, context: CallContext) -> OpenSession:
        """Return the session of a handle; another owner's is as unknown as any other."""
        try:
            opened = self._sessions.get(handle)
            context.caller.check_session(handle, opened.owner)
            return opened
        except (NotFoundError, SessionGoneError) as error:
            raise AbortedError(
                f"Session {handle} is not found. Possibly, this master has restarted."
            ) from error


def _error_response(error: OpError, caller: Caller) -> pb.RunStepResponse:
    return pb.RunStepResponse(
        status_code=int(error.code),  # type: ignore[arg-type] # the canonical number
        status_error_message=caller.shown_text(error.message),
    )


def _write_or_store(step: StepRequest, values: Sequence[Any]) -> bytes:
    """`write_run_step`, with an error about a value in the answer."""
    try:
        return write_run_step(step, values)
    except OpError as error:
        return _error_response(error, step.caller).SerializeToString()


def _is_pool(index: int, opened: OpenSession) -> bool:
    """Return whether an index selects a pool.

    Other indices are ignored, as in TensorFlow's master.
    """
    return index != 0 and -1 <= index < len(opened.session.thread_pools)


def _check_names(opened: OpenSession, feeds: Iterable[str], fetches: Iterable[str]) -> None:
    """Raise an error with the text of TensorFlow's master if a name is unknown.

    TF: tensorflow/core/graph/subgraph.cc (FeedInputs, FetchOutputs)
    """
    name = ""
    try:
        for name in feeds:
            opened.tensor_info(name)
    except (InvalidArgumentError, OutOfRangeError) as error:
        unknown = f"FeedInputs: unable to find feed output {name}"
        too_large = f"FeedInputs: {name} should have output index <"
        raise _name_error(opened, name, error, unknown, too_large) from None
    try:
        for name in fetches:
            opened.tensor_info(name)
    except (InvalidArgumentError, OutOfRangeError) as error:
        unknown = f"FetchOutputs node {name}: not found"
        too_large = f"FetchOutputs {name}: output index too large, must be <"
        raise _name_error(opened, name, error, unknown, too_large) from None


def _name_error(
    opened: OpenSession, name: str, error: OpError, unknown: str, too_large: str
) -> OpError:
    if isinstance(error, OutOfRangeError):
        return InvalidArgumentError(f"{too_large} {_output_count(opened, name)}")
    return NotFoundError(unknown)


def _output_count(opened: OpenSession, name: str) -> int:
    node, _ = parse_tensor_name(name)
    for count in itertools.count():
        try:
            opened.tensor_info(f"{node}:{count}")
        except OutOfRangeError:
            break
    return count

"""GrpcSession: a session on a TensorFlow master service, ours or TensorFlow's own.

No call is made before the first graph or step, so a session on a port without a listener can be
made; its first call waits for a server until its deadline, or until `close` without one. Variables
live in the server and are shared by its sessions (`isolate_session_state` apart).

Guarantees: every method may be called from any thread. `_graph_lock` orders `create` and `extend`
and is held while they wait for the server. `_lock` guards the handle, the call that creates the
session and whether the session is closed; no wait happens under it. So `close` never waits for
another call, only CLOSE_SECONDS for its own (the operation timeout, if the config has one).

TF: tensorflow/core/distributed_runtime/rpc/grpc_session.cc
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import grpc

import protos as pb
from runtime.foundation.errors import (
    AlreadyExistsError,
    CancelledError,
    Code,
    InternalError,
    InvalidArgumentError,
    OpError,
    error_for_code,
)
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.sessions.master_messages import (
    fetched_values,
    full_name,
    partial_run_setup_request,
    run_step_request,
    timeout_seconds,
    unique_fetches,
)
from runtime.sessions.runtime_session import RunRequest, RuntimeSession, Tensor
from runtime.sessions.session_counts import session_counts
from runtime.sessions.session_options import SessionOptions

SCHEME = "grpc://"
RUNTIME_TYPE = "GRPC_SESSION"
CLOSED = "Session has been closed."
# Of calls in flight, as the server says it when it comes to that.
STEP_CLOSED = "Step was cancelled by an explicit call to `Session::Close()`."
# For CloseSession when the config has no operation timeout: the server ends the session's steps.
CLOSE_SECONDS = 10.0
_UNLIMITED = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
_SERVICE = "/tensorflow.MasterService/"
# Method name → the message that answers; the request is the message of the same name + "Request".
_RESPONSES: dict[str, Any] = {
    "CreateSession": pb.CreateSessionResponse,
    "ExtendSession": pb.ExtendSessionResponse,
    "PartialRunSetup": pb.PartialRunSetupResponse,
    "RunStep": pb.RunStepResponse,
    "CloseSession": pb.CloseSessionResponse,
    "ListDevices": pb.ListDevicesResponse,
    "Reset": pb.ResetResponse,
    "MakeCallable": pb.MakeCallableResponse,
    "RunCallable": pb.RunCallableResponse,
    "ReleaseCallable": pb.ReleaseCallableResponse,
}


class GrpcMaster:
    """The stub of a master service: one channel, the ten methods."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target.removeprefix(SCHEME), options=_UNLIMITED)
        self._is_closed = False
        self._methods: dict[str, Any] = {
            name: self._channel.unary_unary(
                _SERVICE + name,
                request_serializer=_serialize,
                response_deserializer=response.FromString,
            )
            for name, response in _RESPONSES.items()
        }

    def call(
        self,
        method: str,
        request: Any,
        timeout: float | None = None,
        *,
        waits_for_server: bool = True,
    ) -> Any:
        """Call and wait; the answer, or the status as an OpError.

        Without `waits_for_server` a server that can't be reached is UnavailableError at once.
        """
        try:
            return self._methods[method](request, timeout=timeout, wait_for_ready=waits_for_server)
        except (grpc.RpcError, ValueError) as error:  # a closed channel's is ValueError
            raise self.error_of(error) from None

    def start(self, method: str, request: Any, timeout: float | None = None) -> Any:
        """Start a call; its grpc future."""
        try:
            return self._methods[method].future(request, timeout=timeout, wait_for_ready=True)
        except ValueError as error:
            raise self.error_of(error) from None

    def result(self, call: Any) -> Any:
        """Wait for a started call; the answer, or the status as an OpError."""
        try:
            return call.result()
        except (grpc.FutureCancelledError, grpc.RpcError) as error:
            raise self.error_of(error) from None
        finally:
            call.cancel()  # changes nothing but for a wait that was interrupted

    def error_of(self, error: Any) -> OpError:
        """The OpError of a failed call: gRPC's codes are the canonical ones."""
        if isinstance(error, grpc.FutureCancelledError):
            return CancelledError(STEP_CLOSED if self._is_closed else "The step was cancelled.")
        if not isinstance(error, grpc.RpcError):
            return CancelledError(CLOSED) if self._is_closed else InternalError(str(error))
        code = error.code().value[0]
        if self._is_closed and code == Code.CANCELLED:
            return CancelledError(STEP_CLOSED)
        return error_for_code(code, error.details() or "")

    def close(self) -> None:
        """Let go of the channel; calls in flight are cancelled."""
        self._is_closed = True
        self._channel.close()


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


class GrpcSession(RuntimeSession):
    """A session whose graph and steps are a server's."""

    def __init__(self, options: SessionOptions) -> None:
        self.options = options
        self._master = GrpcMaster(options.target)
        self._graph_lock = threading.Lock()
        self._lock = threading.Lock()
        self._handle = ""
        self._creation: Any = None  # the CreateSession call in flight
        self._is_closed = False
        # Handle → (seconds that its steps have, place of each fetch in the answer); single
        # operations on a dict are atomic.
        self._callables: dict[int, tuple[float | None, list[int]]] = {}
        self.graph_version = 0

    @property
    def session_handle(self) -> str:
        """The server's handle; empty before the first graph."""
        return self._handle

    def create(self, graph_def: pb.GraphDef) -> None:
        """Create the session in the server; an empty graph changes nothing."""
        if not graph_def.node:
            return
        with self._graph_lock:
            self._check_open()
            if self._handle:
                raise AlreadyExistsError("A Graph has already been created for this session.")
            self._create(graph_def)

    def _create(self, graph_def: pb.GraphDef) -> None:
        request = pb.CreateSessionRequest(graph_def=graph_def, config=self.options.config)
        with self._lock:
            self._check_open()
            seconds = self._default_seconds()
            call = self._creation = self._master.start("CreateSession", request, seconds)
        response = None
        try:
            response = self._master.result(call)
        finally:
            self._end_creation(response)

    def _end_creation(self, response: pb.CreateSessionResponse | None) -> None:
        """Keep the handle; after a `close` that came meanwhile end the session and raise."""
        with self._lock:
            self._creation = None
            if not self._is_closed:
                if response is not None:
                    self._handle = response.session_handle
                    self.graph_version = response.graph_version
                return
        self._close_in_server("" if response is None else response.session_handle)
        raise CancelledError(CLOSED)

    def extend(self, graph_def: pb.GraphDef) -> None:
        """Add nodes; the server refuses when somebody else has extended meanwhile (ABORTED)."""
        with self._graph_lock:
            self._check_open()
            if not self._handle:
                self._create(graph_def)
                return
            request = pb.ExtendSessionRequest(
                session_handle=self._handle,
                graph_def=graph_def,
                current_graph_version=self.graph_version,
            )
            self.graph_version = self._call("ExtendSession", request).new_graph_version

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step and wait for it, without another thread."""
        message = run_step_request(self._open_handle("Run"), feeds, fetches, targets, options)
        seconds = timeout_seconds(options, self.options.config)
        return fetched_values(self._master.call("RunStep", message, seconds), fetches, metadata)

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step; cancelling the request's manager cancels the call."""
        future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
        cancellation = request.cancellation
        try:
            if cancellation is not None:
                cancellation.check()
            message = run_step_request(
                self._open_handle("Run"),
                request.feeds,
                request.fetches,
                request.targets,
                request.options,
            )
            call = self._master.start("RunStep", message, self._seconds_left(request))
        except OpError as error:
            future.set_exception(error)
            return future
        token = None
        if cancellation is not None:
            token = cancellation.add_callback(call.cancel)
            if token is None:  # it came between the check and here
                call.cancel()

        def done(answered: Any) -> None:
            if cancellation is not None:
                cancellation.remove_callback(token)
            try:
                response = answered.result()
                future.set_result(fetched_values(response, request.fetches, request.metadata))
            except (grpc.FutureCancelledError, grpc.RpcError) as error:
                future.set_exception(self._master.error_of(error))
            except OpError as error:
                future.set_exception(error)

        call.add_done_callback(done)
        return future

    def _seconds_left(self, request: RunRequest) -> float | None:
        if request.deadline is not None:
            return max(0.0, request.deadline - time.monotonic())
        return timeout_seconds(request.options, self.options.config)

    def partial_run_setup(
        self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = ()
    ) -> str:
        """Begin a step in parts in the server."""
        handle = self._open_handle("PRunSetup")
        request = partial_run_setup_request(handle, feeds, fetches, targets)
        made: str = self._call("PartialRunSetup", request).partial_run_handle
        return made

    def partial_run(
        self, handle: str, feeds: Mapping[str, Tensor], fetches: Sequence[str]
    ) -> list[Tensor]:
        """Feed and fetch a part."""
        request = run_step_request(
            self._open_handle("PRun"), feeds, fetches, partial_run_handle=handle
        )
        return fetched_values(self._call("RunStep", request), fetches, None)

    def make_callable(self, options: pb.CallableOptions) -> int:
        """Prepare a step in the server."""
        request = pb.MakeCallableRequest(
            session_handle=self._open_handle("MakeCallable"), options=options
        )
        fetches, places = unique_fetches(options.fetch)
        request.options.fetch[:] = fetches
        request.options.feed[:] = [full_name(name) for name in options.feed]
        handle: int = self._call("MakeCallable", request).handle
        seconds = timeout_seconds(options.run_options, self.options.config)
        self._callables[handle] = (seconds, places)
        return handle

    def run_callable(
        self, handle: int, feeds: Sequence[Tensor], metadata: pb.RunMetadata | None = None
    ) -> list[Tensor]:
        """Run a prepared step."""
        request = pb.RunCallableRequest(
            session_handle=self._open_handle("RunCallable"),
            handle=handle,
            feed=[tensor_to_proto(value) for value in feeds],
        )
        seconds, places = self._callables.get(handle, (self._default_seconds(), []))
        response = self._master.call("RunCallable", request, seconds)
        if metadata is not None:
            metadata.MergeFrom(response.metadata)
        values = [tensor_from_proto(tensor) for tensor in response.fetch]
        return [values[place] for place in places]

    def release_callable(self, handle: int) -> None:
        """Forget a prepared step."""
        request = pb.ReleaseCallableRequest(
            session_handle=self._open_handle("ReleaseCallable"), handle=handle
        )
        self._call("ReleaseCallable", request)
        self._callables.pop(handle, None)

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """The server's devices, its own first."""
        self._check_open()
        request = pb.ListDevicesRequest(session_handle=self._handle)
        response = self._call("ListDevices", request)
        return [*response.local_device, *response.remote_device]

    def close(self) -> None:
        """Close the server's session and end the calls in flight. Closing again changes nothing.

        Raises DeadlineExceededError when the server does not answer in time and UnavailableError
        when it can't be reached; the session is closed here all the same.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            handle, self._handle = self._handle, ""
            creation = self._creation
        session_counts.session_closed(RUNTIME_TYPE)
        if creation is None:
            self._close_in_server(handle)
        else:
            creation.cancel()  # `_create` goes on; it has the handle if there is one after all

    def _close_in_server(self, handle: str) -> None:
        seconds = self._default_seconds()
        request = pb.CloseSessionRequest(session_handle=handle)
        try:
            if handle:
                self._master.call(
                    "CloseSession",
                    request,
                    CLOSE_SECONDS if seconds is None else seconds,
                    waits_for_server=False,
                )
        finally:
            self._master.close()

    def _call(self, method: str, request: Any) -> Any:
        return self._master.call(method, request, self._default_seconds())

    def _default_seconds(self) -> float | None:
        return timeout_seconds(None, self.options.config)

    def _open_handle(self, what: str) -> str:
        with self._lock:
            self._check_open()
            handle = self._handle
        if not handle:
            raise InvalidArgumentError(f"Session was not created with a graph before {what}()!")
        return handle

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError(CLOSED)


def reset(options: SessionOptions, containers: Sequence[str]) -> None:
    """Clear the server's shared containers and close the sessions that used them."""
    master = GrpcMaster(options.target)
    try:
        timeout = timeout_seconds(None, options.config)
        master.call("Reset", pb.ResetRequest(container=containers), timeout)
    finally:
        master.close()

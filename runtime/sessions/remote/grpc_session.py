"""GrpcSession: a session on a TensorFlow master service, in a Runstep or a TensorFlow server.

A session can be made before the server is reachable. Its first call waits for the server until the
deadline of the call; if the call has no deadline, it waits until `close`. Variables are in the
server, and its sessions share them unless the configuration sets `isolate_session_state`.

TF: tensorflow/core/distributed_runtime/rpc/grpc_session.cc
"""

from __future__ import annotations

import concurrent.futures
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from google.protobuf.message import Message

import protos as pb
from runtime.foundation.errors import (
    CancelledError,
    Code,
    InternalError,
    OpError,
    as_op_error,
    error_for_code,
)
from runtime.sessions.remote.http_transport import AFFINITY
from runtime.sessions.remote.master_messages import (
    fetched_values,
    run_step_request,
    timeout_seconds,
)
from runtime.sessions.remote.remote_session import CLOSED, RUN, Method, RemoteSession, Response
from runtime.sessions.runtime_session import RunRequest, Tensor
from runtime.sessions.session_options import SessionOptions

SCHEME = "grpc://"
# The error message of calls that `close` cancels. The server uses the same message.
STEP_CLOSED = "Step was cancelled by an explicit call to `Session::Close()`."
_UNLIMITED = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
_SERVICE = "/tensorflow.MasterService/"
# Method name → class of its response. The name of its request class is method name + "Request".
RESPONSES: dict[str, type[Message]] = {
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
    """The channel to a master service and the service's methods. Thread-safe."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target.removeprefix(SCHEME), options=_UNLIMITED)
        self._is_closed = False
        self._metadata = ((AFFINITY, secrets.token_hex(8)),)
        self._methods: dict[str, Any] = {
            name: self._channel.unary_unary(
                _SERVICE + name,
                request_serializer=_serialize,
                response_deserializer=response.FromString,
            )
            for name, response in RESPONSES.items()
        }

    def call(
        self,
        method: str,
        request: Message,
        timeout: float | None = None,
        *,
        waits_for_server: bool = True,
    ) -> Any:
        """Call a method, wait for its response and return it; raise the OpError of a failed call.

        If `waits_for_server` is false and the server can't be reached, raise UnavailableError at
        once. `timeout` is in seconds.
        """
        try:
            return self._methods[method](
                request, timeout=timeout, wait_for_ready=waits_for_server, metadata=self._metadata
            )
        except (grpc.RpcError, ValueError) as error:  # a closed channel raises ValueError
            raise self.error_of(error) from None

    def start(self, method: str, request: Message, timeout: float | None = None) -> Any:
        """Start a call and return its grpc future, which is an argument for `result`."""
        try:
            return self._methods[method].future(
                request, timeout=timeout, wait_for_ready=True, metadata=self._metadata
            )
        except ValueError as error:
            raise self.error_of(error) from None

    def result(self, call: Any) -> Any:
        """Wait for the response of a started call and return it; raise its OpError if it failed."""
        try:
            return call.result()
        except (grpc.FutureCancelledError, grpc.RpcError) as error:
            raise self.error_of(error) from None
        finally:
            call.cancel()  # has an effect only if the wait was interrupted (KeyboardInterrupt)

    def error_of(self, error: Exception) -> OpError:
        """Return the OpError of a failed call; gRPC's status codes are the codes of OpErrors."""
        if isinstance(error, grpc.FutureCancelledError):
            return CancelledError(STEP_CLOSED if self._is_closed else "The step was cancelled.")
        if not isinstance(error, grpc.RpcError):
            return CancelledError(CLOSED) if self._is_closed else InternalError(str(error))
        code = error.code().value[0]
        if self._is_closed and code == Code.CANCELLED:
            return CancelledError(STEP_CLOSED)
        return error_for_code(code, error.details() or "")

    def close(self) -> None:
        """Close the channel, which cancels the calls in flight."""
        self._is_closed = True
        self._channel.close()


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


class _Creation:
    """A CreateSession call in flight."""

    def __init__(self, master: GrpcMaster, call: Any) -> None:
        self._master = master
        self._call = call

    def result(self) -> pb.CreateSessionResponse:
        response: pb.CreateSessionResponse = self._master.result(self._call)
        return response

    def cancel(self) -> None:
        self._call.cancel()


class GrpcSession(RemoteSession):
    """A session on a master service."""

    runtime_type = "GRPC_SESSION"

    def __init__(self, options: SessionOptions) -> None:
        super().__init__(options)
        self._master = GrpcMaster(options.target)

    def _start_creation(self, request: pb.CreateSessionRequest, seconds: float | None) -> _Creation:
        return _Creation(self._master, self._master.start("CreateSession", request, seconds))

    def _send(
        self, method: Method[Response], handle: str, request: Any, seconds: float | None
    ) -> Response:
        request.session_handle = handle
        response: Response = self._master.call(method.rpc, request, seconds)
        return response

    def run(
        self,
        feeds: Mapping[str, Tensor],
        fetches: Sequence[str] = (),
        targets: Sequence[str] = (),
        options: pb.RunOptions | None = None,
        metadata: pb.RunMetadata | None = None,
    ) -> list[Tensor]:
        """Run one step, wait for its end and return the fetched values."""
        message = run_step_request(feeds, fetches, targets, options)
        response = self._call(RUN, message, timeout_seconds(options, self.options.config))
        return fetched_values(response, fetches, metadata)

    def run_async(self, request: RunRequest) -> concurrent.futures.Future[list[Tensor]]:
        """Start one step and return its future; `request.cancellation` can cancel the call."""
        future: concurrent.futures.Future[list[Tensor]] = concurrent.futures.Future()
        cancellation = request.cancellation
        try:
            if cancellation is not None:
                cancellation.check()
            message = run_step_request(
                request.feeds, request.fetches, request.targets, request.options
            )
            message.session_handle = self._open_handle(RUN.called)
            call = self._master.start(RUN.rpc, message, self._seconds_left(request))
        except OpError as error:
            future.set_exception(error)
            return future
        token = None
        if cancellation is not None:
            token = cancellation.add_callback(call.cancel)
            if token is None:  # cancelled since `check`
                call.cancel()

        def done(answered: Any) -> None:
            if cancellation is not None:
                cancellation.remove_callback(token)
            try:
                response = answered.result()
                future.set_result(fetched_values(response, request.fetches, request.metadata))
            except (grpc.FutureCancelledError, grpc.RpcError) as error:
                future.set_exception(self._master.error_of(error))
            except Exception as error:  # gRPC would only log an error that leaves this callback
                future.set_exception(as_op_error(error))

        call.add_done_callback(done)
        return future

    def list_devices(self) -> list[pb.DeviceAttributes]:
        """Return the devices of the server's own task, then the devices of other tasks."""
        self._check_open()
        request = pb.ListDevicesRequest(session_handle=self._handle)
        response = self._master.call("ListDevices", request, self._default_seconds())
        return [*response.local_device, *response.remote_device]

    def _close_in_server(self, handle: str, seconds: float) -> None:
        request = pb.CloseSessionRequest(session_handle=handle)
        try:
            if handle:
                self._master.call("CloseSession", request, seconds, waits_for_server=False)
        finally:
            self._master.close()


def reset(options: SessionOptions, containers: Sequence[str]) -> None:
    """Clear the server's shared containers and close the sessions that used them."""
    master = GrpcMaster(options.target)
    try:
        timeout = timeout_seconds(None, options.config)
        master.call("Reset", pb.ResetRequest(container=containers), timeout)
    finally:
        master.close()
